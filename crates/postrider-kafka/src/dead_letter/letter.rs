//! A dead letter as people see it: why, where and when a record failed, without its payload.

use postrider_core::{OffsetDateTime, Uuid};
use time::format_description::well_known::Rfc3339;

use crate::consume::arrived::{Arrived, TOPIC};
use crate::dead_letter::record;

/// A record that failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic of the record.
    pub topic: String,
    /// The partition of the record.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// The partition of the letter in the dead-letter topic.
    pub letter_partition: i32,
    /// Its offset there.
    pub letter_offset: i64,
    /// The consumer group that failed on it.
    pub group: String,
    /// The id of its event, if the record is an event.
    pub event_id: Option<Uuid>,
    /// The type of its event, if the record is an event.
    pub event_type: Option<String>,
    /// Its key, if it is text.
    pub key: Option<String>,
    /// Why it failed.
    pub error: String,
    /// The code of that error, one word.
    pub error_code: String,
    /// The number of attempts.
    pub attempts: u32,
    /// When it became a dead letter.
    pub time: Option<OffsetDateTime>,
    /// Whether it was requeued for its group.
    pub requeued: bool,
}

impl DeadLetter {
    pub(crate) fn of(letter: &Arrived, requeued: bool) -> Self {
        let text = |name: &str| letter.text(name).unwrap_or_default().to_owned();
        let event = letter.event().ok();
        Self {
            topic: text(TOPIC),
            partition: text(record::PARTITION).parse().unwrap_or(-1),
            offset: text(record::OFFSET).parse().unwrap_or(-1),
            letter_partition: letter.partition,
            letter_offset: letter.offset,
            group: text(record::GROUP),
            event_id: event.as_ref().map(|event| event.event_id),
            event_type: event.map(|event| event.event_type.to_string()),
            key: letter.key.as_deref().and_then(|key| std::str::from_utf8(key).ok()).map(ToOwned::to_owned),
            error: text(record::ERROR),
            error_code: text(record::CODE),
            attempts: text(record::ATTEMPTS).parse().unwrap_or(0),
            time: OffsetDateTime::parse(&text(record::TIME), &Rfc3339).ok(),
            requeued,
        }
    }
}
