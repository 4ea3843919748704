//! A dead letter as a record: the original, with headers that say why it was given up.

use postrider_core::{DeliveryFailure, OffsetDateTime};
use rdkafka::message::{Header, OwnedHeaders};
use time::format_description::well_known::Rfc3339;

use crate::consume::arrived::{Arrived, RECORD_TIME, REQUEUED_FOR, TOPIC};
use crate::produce::receipt_producer::OutgoingRecord;

pub(crate) const ERROR: &str = "postrider_error";
pub(crate) const CODE: &str = "postrider_error_code";
pub(crate) const ATTEMPTS: &str = "postrider_attempts";
pub(crate) const GROUP: &str = "postrider_group";
pub(crate) const PARTITION: &str = "postrider_partition";
pub(crate) const OFFSET: &str = "postrider_offset";
pub(crate) const TIME: &str = "postrider_time";

/// What the headers of a letter begin with; none of them is the record's own.
const OURS: &str = "postrider_";
/// Longer reasons are cut: a record near the topic's limit must still fit.
const LONGEST: usize = 1000;

/// The headers of a dead letter: the record's own, then why, where and when it ended.
fn headers(record: &Arrived, group: &str, failure: &DeliveryFailure, attempts: u32) -> OwnedHeaders {
    // What an earlier life left behind says nothing any more.
    let headers = record.headers_but(|name| !name.starts_with(OURS) || name == REQUEUED_FOR);
    let mut end = failure.message.len().min(LONGEST);
    while !failure.message.is_char_boundary(end) {
        end -= 1;
    }
    let time = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let headers = match record.time() {
        Some(millis) => headers.insert(Header { key: RECORD_TIME, value: Some(&millis.to_string()) }),
        None => headers,
    };
    [
        (ERROR, &failure.message[..end]),
        (CODE, &failure.code),
        (ATTEMPTS, &attempts.to_string()),
        (GROUP, group),
        (TOPIC, &record.topic),
        (PARTITION, &record.partition.to_string()),
        (OFFSET, &record.offset.to_string()),
        (TIME, &time),
    ]
    .into_iter()
    .fold(headers, |headers, (key, value)| headers.insert(Header { key, value: Some(value) }))
}

/// A dead letter as it is sent: key and value byte for byte. Its time is that of its death: with the record's own, a topic that
/// takes no such time would refuse it, and one that keeps letters for a week would drop it at once if the record is older.
pub(crate) fn dead<'a>(
    record: &'a Arrived,
    topic: &'a str,
    group: &str,
    failure: &DeliveryFailure,
    attempts: u32,
) -> OutgoingRecord<'a> {
    OutgoingRecord {
        topic,
        partition: None,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: headers(record, group, failure, attempts),
    }
}

/// The record that a dead letter was, to be put back for its group. Its time in the topic is that of now, so that the topic keeps
/// it; the time that it had goes along in a header.
pub(crate) fn revived<'a>(letter: &'a Arrived, topic: &'a str, group: &str) -> OutgoingRecord<'a> {
    let headers = letter.headers_but(|name| !name.starts_with(OURS));
    let headers = headers.insert(Header { key: REQUEUED_FOR, value: Some(group) });
    // Letters of earlier versions have it as their own.
    let headers =
        match letter.text(RECORD_TIME).map(ToOwned::to_owned).or(letter.time.map(|time| time.to_string())) {
            Some(millis) => headers.insert(Header { key: RECORD_TIME, value: Some(&millis) }),
            None => headers,
        };
    OutgoingRecord {
        topic,
        // Where it was: its key's other records are there, whatever its producer partitions by.
        partition: letter.text(PARTITION).and_then(|partition| partition.parse().ok()),
        key: letter.key.as_deref(),
        value: letter.value.as_deref(),
        headers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::Headers as _;

    fn record() -> Arrived {
        let header = |name: &str, value: &str| (name.to_owned(), Some(value.as_bytes().to_vec()));
        Arrived {
            topic: "orders".into(),
            partition: 3,
            offset: 9,
            key: None,
            value: None,
            is_legible: true,
            headers: vec![header("own", "1"), header(REQUEUED_FOR, "mailer"), header(ERROR, "old")],
            time: None,
        }
    }

    fn shown(headers: &OwnedHeaders) -> Vec<(String, String)> {
        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
    }

    #[test]
    fn a_letter_says_how_it_ended_and_comes_back_without_that() {
        let failure = DeliveryFailure::new("failed", "é".repeat(800));
        let headers = headers(&record(), "mailer", &failure, 4);
        let seen = shown(&headers);
        for (name, value) in
            [("own", "1"), (ATTEMPTS, "4"), (TOPIC, "orders"), (PARTITION, "3"), (OFFSET, "9")]
        {
            assert_eq!(seen.iter().filter(|(key, found)| key == name && found == value).count(), 1, "{name}");
        }
        assert_eq!(seen.iter().filter(|(key, _)| key == ERROR).count(), 1, "an earlier end is forgotten");
        assert!(seen.iter().any(|(key, value)| key == ERROR && value.len() == LONGEST));
        let letter = Arrived {
            headers: seen.into_iter().map(|(name, value)| (name, Some(value.into_bytes()))).collect(),
            ..record()
        };
        let back = revived(&letter, "orders", "mailer");
        let headers: Vec<_> = shown(&back.headers);
        assert_eq!(
            headers,
            [("own".to_owned(), "1".to_owned()), (REQUEUED_FOR.to_owned(), "mailer".to_owned())]
        );
        assert_eq!(back.partition, Some(3));
        // The topic keeps it as any other; what it had for a time is known all the same, also when it ends again.
        let dated = Arrived { time: Some(5), ..record() };
        let own = |headers: &OwnedHeaders| -> Vec<(String, Option<Vec<u8>>)> {
            shown(headers).into_iter().map(|(name, value)| (name, Some(value.into_bytes()))).collect()
        };
        let letter = Arrived {
            headers: own(&super::headers(&dated, "mailer", &failure, 1)),
            time: Some(9),
            ..record()
        };
        let back = Arrived {
            headers: own(&revived(&letter, "orders", "mailer").headers),
            time: Some(11),
            ..record()
        };
        assert_eq!(back.time(), Some(5));
        let again = shown(&super::headers(&back, "mailer", &failure, 1));
        assert!(again.contains(&(RECORD_TIME.to_owned(), "5".to_owned())), "{again:?}");
    }
}
