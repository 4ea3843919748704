//! Failed attempts, as they are stored with their delivery.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::delivery::excerpt::one_line;
use crate::{DeliveryFailure, Excerpt};

/// A failed attempt: when, by which relay, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAttempt {
    /// When it started, by the store's clock.
    pub at: OffsetDateTime,
    /// The relay that made it.
    pub relay: String,
    /// How long it took; `None` if the relay died before it ended.
    pub took: Option<Duration>,
    /// The code of its failure.
    pub code: String,
    /// The message of its failure, cut to [`MESSAGE`](PastAttempt::MESSAGE) characters.
    pub message: String,
    /// The response of the destination, if there was one and the sink keeps responses.
    pub answer: Option<Excerpt>,
}

/// How one is written down.
#[derive(Serialize, Deserialize)]
struct Line {
    at: String,
    #[serde(default)]
    relay: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    millis: Option<u64>,
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

impl PastAttempt {
    /// How many attempts are kept per delivery: the last ones.
    pub const MOST: usize = 10;
    /// How many characters of a message are kept.
    pub const MESSAGE: usize = 300;
    /// So many characters of a code and of a relay's name are kept.
    const NAME: usize = 100;
    /// Maximum bytes stored per delivery; the oldest attempts are dropped first.
    pub const BYTES: usize = 32 << 10;

    /// A failed attempt.
    pub fn new(at: OffsetDateTime, relay: &str, took: Option<Duration>, failure: &DeliveryFailure) -> Self {
        Self {
            at,
            relay: one_line(relay, Self::NAME),
            took: took.map(|took| Duration::from_millis(millis(took))),
            code: one_line(&failure.code, Self::NAME),
            message: one_line(&failure.message, Self::MESSAGE),
            answer: failure.answer.clone(),
        }
    }

    /// About how many bytes it takes when it is written down.
    pub(crate) fn size(&self) -> usize {
        let answer = self.answer.as_ref().map_or(0, |answer| answer.as_str().len());
        100 + self.relay.len() + self.code.len() + self.message.len() + answer
    }

    /// Appends an attempt; drops the oldest if there are too many.
    #[must_use]
    pub fn with(mut past: Vec<Self>, last: Self) -> Vec<Self> {
        past.push(last);
        let many = past.len().saturating_sub(Self::MOST);
        past.drain(..many);
        past
    }

    /// The attempts as a store keeps them: a JSON array, oldest first. It is ASCII, so that a database with another encoding
    /// accepts every response.
    pub fn encode(past: &[Self]) -> String {
        Self::encode_within(past, Self::BYTES).unwrap_or_else(|| "[]".to_owned())
    }

    /// Like [`encode`](PastAttempt::encode), in at most `bytes` bytes: the oldest attempts are dropped first; `None` if not even the
    /// last one fits. For a store that sends many deliveries at once to a server with a limit.
    pub fn encode_within(past: &[Self], bytes: usize) -> Option<String> {
        let first = past.len().saturating_sub(Self::MOST);
        let mut lines: Vec<String> = past[first..].iter().filter_map(Self::line).collect();
        // The brackets, and a comma for each.
        let size = |lines: &[String]| 2 + lines.iter().map(|line| line.len() + 1).sum::<usize>();
        while !lines.is_empty() && size(&lines) > bytes.min(Self::BYTES) {
            lines.remove(0);
        }
        (!lines.is_empty()).then(|| format!("[{}]", lines.join(",")))
    }

    fn line(&self) -> Option<String> {
        let line = Line {
            at: self.at.to_offset(time::UtcOffset::UTC).format(&Rfc3339).ok()?,
            relay: self.relay.clone(),
            millis: self.took.map(millis),
            code: self.code.clone(),
            message: self.message.clone(),
            answer: self.answer.as_ref().map(|answer| answer.as_str().to_owned()),
        };
        Some(ascii(&serde_json::to_string(&line).ok()?))
    }

    /// Reads [encoded](PastAttempt::encode) attempts. Entries that can't be read are skipped, so that they never block a delivery.
    pub fn decode(text: &str) -> Vec<Self> {
        let lines: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let first = lines.len().saturating_sub(Self::MOST);
        lines.into_iter().skip(first).filter_map(Self::of_line).collect()
    }

    fn of_line(line: serde_json::Value) -> Option<Self> {
        let line: Line = serde_json::from_value(line).ok()?;
        let mut failure = DeliveryFailure::new(line.code, line.message);
        failure.answer = line.answer.and_then(|answer| Excerpt::new(answer.as_bytes()));
        let at = OffsetDateTime::parse(&line.at, &Rfc3339).ok()?;
        Some(Self::new(at, &line.relay, line.millis.map(Duration::from_millis), &failure))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// JSON with escapes for all that is not ASCII, which can only be within its strings.
pub(crate) fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// The failed attempts of a delivery, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAttempts {
    /// The subscription.
    pub subscription: String,
    /// The attempts that were kept: the last ones.
    pub attempts: Vec<PastAttempt>,
}

impl PastAttempts {
    /// Reads the [encoded](PastAttempt::encode) attempts of a delivery; `None` if there are none.
    pub fn decode(subscription: &str, text: &str) -> Option<Self> {
        let attempts = PastAttempt::decode(text);
        (!attempts.is_empty()).then(|| Self { subscription: subscription.to_owned(), attempts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: OffsetDateTime = time::macros::datetime!(2026-05-01 12:00:00.123456 UTC);

    fn attempt(message: &str, answer: &str) -> PastAttempt {
        let mut failure = DeliveryFailure::new("http_500", message);
        failure.answer = Excerpt::new(answer.as_bytes());
        PastAttempt::new(AT, "relay-1", Some(Duration::from_micros(1_234_567)), &failure)
    }

    #[test]
    fn what_is_written_down_comes_back_and_is_ascii() {
        let past = vec![
            attempt("the endpoint answered 500", "{\"error\": \"Größe → 😀\", \"path\": \"C:\\\\x\"}"),
            PastAttempt { took: None, ..attempt("it died", "") },
        ];
        let text = PastAttempt::encode(&past);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(PastAttempt::decode(&text), past);
        assert_eq!(past[0].took, Some(Duration::from_millis(1234)), "whole milliseconds");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json[0]["at"], "2026-05-01T12:00:00.123456Z");
        assert_eq!((&json[0]["millis"], &json[1]["millis"]), (&1234.into(), &serde_json::Value::Null));
    }

    #[test]
    fn only_the_last_ten_are_kept() {
        let mut past = Vec::new();
        for number in 0..25 {
            past = PastAttempt::with(past, attempt(&number.to_string(), ""));
        }
        let numbers: Vec<_> = past.iter().map(|each| each.message.clone()).collect();
        assert_eq!(numbers, (15..25).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(PastAttempt::decode(&PastAttempt::encode(&past)), past);
    }

    #[test]
    fn what_is_written_down_is_bounded() {
        let wide = attempt(&"😀".repeat(2000), &"😀".repeat(2000));
        assert_eq!(wide.message.chars().count(), PastAttempt::MESSAGE);
        let text = PastAttempt::encode(&vec![wide.clone(); 10]);
        assert!(text.len() <= PastAttempt::BYTES, "{}", text.len());
        let back = PastAttempt::decode(&text);
        assert!(!back.is_empty() && back.iter().all(|each| *each == wide), "the last ones are whole");
        let usual = attempt(&"x".repeat(2000), &"\"".repeat(2000));
        assert_eq!(PastAttempt::decode(&PastAttempt::encode(&vec![usual; 10])).len(), 10);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert!(PastAttempt::decode("not JSON").is_empty());
        assert!(PastAttempt::decode("{}").is_empty());
        let text = PastAttempt::encode(&[attempt("a", "")]).replace('[', "[7,{\"at\":\"x\",\"code\":\"y\"},");
        assert_eq!(PastAttempt::decode(&text).len(), 1);
    }
}
