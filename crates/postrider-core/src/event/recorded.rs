//! An event as it stands in the log.

use std::borrow::Cow;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Headers, Payload};

/// A committed event. It never changes.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::Recorded;
///
/// /// A line of an audit log.
/// fn line(event: &Recorded) -> String {
///     format!("{} {} {}/{}", event.recorded_at, event.event_type, event.aggregate_type, event.aggregate_id)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its number in the log: unique, but not in the order of commits.
    pub id: i64,
    /// Its id outside of the log.
    pub event_id: Uuid,
    /// Its stream.
    pub stream: Arc<str>,
    /// Its type.
    pub event_type: Arc<str>,
    /// The type of its aggregate.
    pub aggregate_type: Arc<str>,
    /// The id of its aggregate.
    pub aggregate_id: String,
    /// Its ordering key, if that is not its aggregate.
    pub ordering_key: Option<String>,
    /// Its number within its key, if it was recorded as sequenced: 1, 2, 3, … without gaps.
    pub sequence: Option<i64>,
    /// Its payload.
    pub payload: Payload,
    /// Its headers.
    pub headers: Headers,
    /// When it happened, according to the application.
    pub occurred_at: OffsetDateTime,
    /// When it was recorded, by the clock of the database.
    pub recorded_at: OffsetDateTime,
    /// Maximum number of delivery attempts; `None` uses the subscription's.
    pub max_attempts: Option<u32>,
}

impl Recorded {
    /// The key that it is ordered by: the ordering key, or the aggregate as `type:id`.
    pub fn key(&self) -> Cow<'_, str> {
        match &self.ordering_key {
            Some(key) => Cow::Borrowed(key),
            None => Cow::Owned(format!("{}:{}", self.aggregate_type, self.aggregate_id)),
        }
    }

    /// Approximate size in memory in bytes: payload, headers and names.
    pub fn size(&self) -> u64 {
        let texts = self.aggregate_id.len() + self.ordering_key.as_ref().map_or(0, String::len);
        (self.payload.as_bytes().len() + self.headers.size() + texts + std::mem::size_of::<Self>()) as u64
    }

    /// The hash of its key, to keep order within a process. It may change between versions.
    pub fn key_hash(&self) -> u64 {
        match &self.ordering_key {
            Some(key) => fold(START, key),
            None => fold(fold(fold(START, &self.aggregate_type), ":"), &self.aggregate_id),
        }
    }
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

fn fold(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An event of an order.
    pub(crate) fn event(order: &str) -> Recorded {
        let now = OffsetDateTime::now_utc();
        Recorded {
            id: 1,
            event_id: Uuid::now_v7(),
            stream: "orders".into(),
            event_type: "OrderPaid".into(),
            aggregate_type: "Order".into(),
            aggregate_id: order.to_owned(),
            ordering_key: None,
            sequence: None,
            payload: Payload::Json("1".into()),
            headers: Headers::new(),
            occurred_at: now,
            recorded_at: now,
            max_attempts: None,
        }
    }

    #[test]
    fn the_hash_is_that_of_the_key() {
        let by_aggregate = event("7");
        let by_key = Recorded { ordering_key: Some(by_aggregate.key().into_owned()), ..event("8") };
        assert_eq!(by_aggregate.key_hash(), by_key.key_hash());
        assert_ne!(by_aggregate.key_hash(), event("8").key_hash());
    }
}
