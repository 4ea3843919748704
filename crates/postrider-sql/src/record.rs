//! Many events in one statement.

use postrider_core::{NewEvent, Payload};

use crate::value::Value;

/// How many rows, and how many bytes, go into one statement.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    /// The number of rows.
    pub rows: usize,
    /// The bytes of the events together.
    pub bytes: usize,
}

impl Portion {
    /// The events in parts that fit into a statement each.
    pub fn parts(self, events: &[NewEvent]) -> Vec<&[NewEvent]> {
        let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0_usize);
        for (place, event) in events.iter().enumerate() {
            let size = event.size();
            if place > begin && (place - begin == self.rows || bytes.saturating_add(size) > self.bytes) {
                parts.push(&events[begin..place]);
                (begin, bytes) = (place, 0);
            }
            bytes = bytes.saturating_add(size);
        }
        if begin < events.len() {
            parts.push(&events[begin..]);
        }
        parts
    }
}

/// The parameters of record.sql. What stands for no limit of attempts is for the store to know.
pub fn values(event: &NewEvent, max_attempts: Option<i64>) -> [Value; 13] {
    let (json, content_type, content) = payload(&event.payload);
    [
        event.event_id.into(),
        Value::from(&event.stream),
        Value::from(&event.event_type),
        Value::from(&event.aggregate_type),
        Value::from(&event.aggregate_id),
        event.ordering_key.clone().into(),
        event.sequenced.then_some(0_i64).into(),
        max_attempts.into(),
        event.occurred_at.into(),
        event.headers.to_json().into(),
        json,
        content_type,
        content,
    ]
}

/// A payload as the columns `payload`, `content_type` and `content` take it.
pub(crate) fn payload(payload: &Payload) -> (Value, Value, Value) {
    match payload {
        Payload::Json(text) => (Value::from(text), Value::Text(None), Value::Bytes(None)),
        Payload::Bytes { content_type, bytes } => {
            (Value::Text(None), Value::from(content_type), Value::Bytes(Some(bytes.clone())))
        }
    }
}

/// The text of a statement that inserts one row, for several.
pub fn rows(record: &str, events: usize) -> String {
    const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let head = record.split_once("values (").map_or(record, |(head, _)| head);
    format!("{head}values {}", vec![ROW; events].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_in_one_part_that_is_not_too_large() {
        let event = NewEvent::of("orders", "Paid", "Order", "1", &1).expect("JSON");
        let (size, events) = (event.size(), vec![event; 7]);
        let lengths = |rows, bytes| {
            let parts = Portion { rows, bytes }.parts(&events);
            parts.into_iter().map(<[NewEvent]>::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(3, usize::MAX), [3, 3, 1]);
        assert_eq!(lengths(100, size * 2), [2, 2, 2, 1]);
        assert_eq!(lengths(100, 1), [1; 7], "one alone goes, whatever its size");
        assert_eq!(Portion { rows: 3, bytes: 9 }.parts(&[]).len(), 0);
    }
}
