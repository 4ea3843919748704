//! Many events in one statement.

use postrider_core::NewEvent;

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
