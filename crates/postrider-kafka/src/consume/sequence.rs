//! Checks the sequence numbers of keys and reports gaps.

use std::collections::HashMap;
use std::sync::Arc;

use postrider_core::{Recorded, Uuid};

/// `sequence` numbers that are missing within a key: an event that its producer numbered did not arrive.
///
/// ```
/// use postrider::testing::Outbox;
/// use postrider_kafka::{Consumer, Gap};
///
/// fn warn(gap: &Gap) {
///     eprintln!("{}/{}: {} goes from {} to {}", gap.topic, gap.partition, gap.key, gap.expected - 1, gap.got);
/// }
///
/// let consumer = Consumer::new(&Outbox::new(), "broker:9092", "billing").topics(["orders"]).on_gap(warn);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The group that noticed.
    pub group: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset of the record after the gap.
    pub offset: i64,
    /// The key.
    pub key: String,
    /// The number that was expected.
    pub expected: i64,
    /// The number that arrived.
    pub got: i64,
    /// The event that arrived.
    pub event_id: Uuid,
}

/// The last number of each key, of the keys seen last: two generations, of which the older is forgotten as a whole.
#[derive(Debug)]
pub(crate) struct Sequences {
    keys: usize,
    young: HashMap<String, i64>,
    old: HashMap<String, i64>,
}

impl Sequences {
    /// A memory for so many keys at most; for none, nothing is noticed.
    pub(crate) fn new(keys: usize) -> Self {
        Self { keys, young: HashMap::new(), old: HashMap::new() }
    }

    /// Notes the number of an event: which one should have come instead, if this one is too high. A key that is not known,
    /// and a number that was here before, say nothing.
    pub(crate) fn note(&mut self, event: &Recorded, key: &str) -> Option<i64> {
        let number = event.sequence.filter(|_| self.keys > 0)?;
        let last = match self.young.get_mut(key) {
            Some(last) => {
                let before = *last;
                *last = number.max(before);
                Some(before)
            }
            None => {
                let before = self.old.remove(key);
                if self.young.len() >= self.keys.div_ceil(2) {
                    self.old = std::mem::take(&mut self.young);
                }
                self.young.insert(key.to_owned(), before.map_or(number, |before| number.max(before)));
                before
            }
        };
        last.map(|last| last.saturating_add(1)).filter(|expected| number > *expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::{Headers, OffsetDateTime, Payload};

    fn event(sequence: Option<i64>) -> Recorded {
        Recorded {
            id: 0,
            event_id: Uuid::nil(),
            stream: "s".into(),
            event_type: "t".into(),
            aggregate_type: "A".into(),
            aggregate_id: "1".into(),
            ordering_key: None,
            sequence,
            payload: Payload::Json("1".into()),
            headers: Headers::new(),
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            recorded_at: OffsetDateTime::UNIX_EPOCH,
            max_attempts: None,
        }
    }

    #[test]
    fn a_number_too_high_is_a_gap_and_a_repetition_is_none() {
        let mut sequences = Sequences::new(10);
        let mut note = |number: i64| sequences.note(&event(Some(number)), "a");
        assert_eq!([note(5), note(6), note(6), note(2)], [None; 4], "it may begin anywhere");
        assert_eq!(note(9), Some(7));
        assert_eq!([note(7), note(8), note(10)], [None; 3], "told once");
        assert_eq!(sequences.note(&event(None), "a"), None);
    }

    #[test]
    fn the_keys_seen_last_are_remembered_and_no_more_than_asked_for() {
        let mut sequences = Sequences::new(4);
        for key in ["a", "b", "c", "b", "d", "e"] {
            sequences.note(&event(Some(1)), key);
            assert!(sequences.young.len() + sequences.old.len() <= 4);
        }
        assert_eq!(sequences.note(&event(Some(3)), "e"), Some(2));
        assert_eq!(sequences.note(&event(Some(3)), "a"), None, "forgotten");
        assert_eq!(Sequences::new(0).note(&event(Some(1)), "a"), None);
    }
}
