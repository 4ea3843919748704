//! What one read found.

use crate::{Position, Recorded};

/// About how many bytes of events one read, or one look at what is due, takes: 16 MiB. See [`Lease::bytes`](crate::Lease::bytes).
pub const BATCH_BYTES: u64 = 16 << 20;

/// What one read found, in the order in which it is to be delivered.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Where the read began.
    pub from: Position,
    /// Where the lane stands once all of it is settled. Equal to `from` when the read found nothing.
    pub next: Position,
    /// The lane's events, by id.
    pub events: Vec<ReadEvent>,
    /// How many rows were looked at; a filter may have dropped them all and the position still moves.
    pub scanned: u32,
    /// Whether the read was cut off, by its rows or by its bytes: there is more to read at once.
    pub more: bool,
    /// Whether the lane is wanted back: see [`LeaseStatus::Recalled`](crate::LeaseStatus::Recalled).
    pub recalled: bool,
    /// What a settle proves by that this read is of its database's past; nothing where nothing was read.
    pub witness: Option<Witness>,
}

impl Batch {
    /// Whether there was nothing: no event, and nothing to settle.
    pub fn is_idle(&self) -> bool {
        self.from == self.next
    }
}

/// A row of the log at or above where a batch ends.
///
/// A server that has it hands out only higher numbers from then on, so what was read below it stays as it was read. After a
/// failover or a restore it may be missing, or be another: then the batch is of a past that never was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its number in the log.
    pub number: i64,
    /// What no other row has at that number: the event's id, or what the store wrote when it gave the number.
    pub id: String,
}

/// An event of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEvent {
    /// The event.
    pub event: Recorded,
    /// Whether it was committed after the reader had passed its id.
    pub late: bool,
    /// Whether an earlier event of its key is still open, so that it has to wait behind it.
    pub held: bool,
    /// Why the event's row can't be read, if it can't. `event` then has its number and its id, and of the rest what could be
    /// read; it is never delivered, and becomes a dead delivery with this reason.
    pub unreadable: Option<String>,
}

/// How far a batch is filled, in bytes.
///
/// A store asks it of each event, in their order, and stops at the first that no longer fits: that one, and what follows it, is of
/// the next batch.
#[derive(Debug, Clone, Copy)]
pub struct ByteBudget {
    most: u64,
    taken: Option<u64>,
}

impl ByteBudget {
    /// Nothing yet, of so many bytes.
    pub fn new(most: u64) -> Self {
        Self { most, taken: None }
    }

    /// Whether an event of this size still fits; if so, it is counted. The first one always fits.
    pub fn takes(&mut self, size: u64) -> bool {
        let sum = self.taken.unwrap_or(0).saturating_add(size);
        let fits = self.taken.is_none() || sum <= self.most;
        if fits {
            self.taken = Some(sum);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_bytes_is_left_for_the_next_batch_unless_it_is_the_first() {
        let mut fill = ByteBudget::new(10);
        assert_eq!([4, 6, 1].map(|size| fill.takes(size)), [true, true, false]);
        let mut fill = ByteBudget::new(10);
        assert_eq!([11, 0, 1].map(|size| fill.takes(size)), [true, false, false], "it comes alone");
    }
}
