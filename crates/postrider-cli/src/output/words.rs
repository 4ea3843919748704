//! Times and numbers, for people and for programs.

use std::time::Duration;

use postrider::OffsetDateTime;
use serde::{Serialize, Serializer};
use time::format_description::well_known::Rfc3339;

/// A time in JSON: RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) OffsetDateTime);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.format(&Rfc3339).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

/// A time for people: to the second, in UTC.
pub(crate) fn when(time: OffsetDateTime) -> String {
    let time = time.to_offset(time::UtcOffset::UTC);
    let (date, clock) = (time.date(), time.time());
    format!("{date} {:02}:{:02}:{:02}Z", clock.hour(), clock.minute(), clock.second())
}

/// How long ago a time was, or `in` how long it is to come.
pub(crate) fn since(time: OffsetDateTime, now: OffsetDateTime) -> String {
    let gone = now - time;
    let shown = age(gone.unsigned_abs());
    if gone.is_negative() { format!("in {shown}") } else { shown }
}

/// A span in its two largest units: `3m 12s`.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (large, small) = match seconds {
        0 if span.as_millis() > 0 => return format!("{}ms", span.as_millis()),
        0..60 => return format!("{seconds}s"),
        60..3600 => ((seconds / 60, "m"), (seconds % 60, "s")),
        3600..86_400 => ((seconds / 3600, "h"), (seconds % 3600 / 60, "m")),
        _ => ((seconds / 86_400, "d"), (seconds % 86_400 / 3600, "h")),
    };
    if small.0 == 0 {
        format!("{}{}", large.0, large.1)
    } else {
        format!("{}{} {}{}", large.0, large.1, small.0, small.1)
    }
}

/// A span that was measured in seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    age(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 event`, `2 events`.
pub(crate) fn count(many: u64, thing: &str) -> String {
    format!("{} {thing}{}", number(many), if many == 1 { "" } else { "s" })
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+=,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_numbers_are_short() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (59_999, "59s"),
            (60_000, "1m"),
            (192_000, "3m 12s"),
            (7_800_000, "2h 10m"),
            (93_600_000, "1d 2h"),
        ] {
            assert_eq!(age(Duration::from_millis(millis)), text);
        }
        assert_eq!((number(0), number(999), number(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!((count(1, "event"), count(2000, "event")), ("1 event".into(), "2,000 events".into()));
    }

    #[test]
    fn a_time_to_come_is_told_from_one_that_was() {
        let now = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(since(now, now + Duration::from_secs(5)), "5s");
        assert_eq!(since(now + Duration::from_secs(5), now), "in 5s");
        assert_eq!(when(now), "1970-01-01 00:00:00Z");
    }
}
