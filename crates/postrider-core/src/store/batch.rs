//! The batch: the events that one read returns.

use crate::{Position, Recorded};

/// Approximate bytes of events per read, or per query of due deliveries: 16 MiB. See [`Lease::bytes`](crate::Lease::bytes).
pub const BATCH_BYTES: u64 = 16 << 20;

/// The result of one read, in the order of delivery.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The position where the read started.
    pub from: Position,
    /// The position of the lane once the batch is settled. Equal to `from` if the read found nothing.
    pub next: Position,
    /// The lane's events, by id.
    pub events: Vec<ReadEvent>,
    /// Rows that were scanned. The position moves even if the filter dropped them all.
    pub scanned: u32,
    /// Whether a limit of rows or bytes cut the read off: there is more to read now.
    pub more: bool,
    /// Whether the lane is recalled: see [`LeaseStatus::Recalled`](crate::LeaseStatus::Recalled).
    pub recalled: bool,
    /// Proves at settle that this read belongs to the database's history; `None` if nothing was read.
    pub witness: Option<Witness>,
}

impl Batch {
    /// Whether the read found nothing to deliver or settle.
    pub fn is_idle(&self) -> bool {
        self.from == self.next
    }
}

/// A row of the log at or above where a batch ends.
///
/// A server that has this row gives only higher numbers to new rows, so what was read below it does not change. After a
/// failover or a restore the row may be missing or different; then the batch must not be settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its number in the log.
    pub number: i64,
    /// A text that no other row has at that number: the event's id, or what the store wrote when it gave the number.
    pub id: String,
}

/// An event of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEvent {
    /// The event.
    pub event: Recorded,
    /// Whether it was committed after the reader had passed its id.
    pub late: bool,
    /// Whether it must wait, because an earlier event of its key is still open.
    pub held: bool,
    /// Why the event's row can't be read, or `None`. `event` then has its number, its id and whatever else could be read; it is
    /// never delivered, and becomes a dead delivery with this reason.
    pub unreadable: Option<String>,
}

/// The byte limit of a batch.
///
/// A store asks it for each event in order, and stops at the first one that does not fit: that event and those after it belong to
/// the next batch.
#[derive(Debug, Clone, Copy)]
pub struct ByteBudget {
    most: u64,
    taken: Option<u64>,
}

impl ByteBudget {
    /// An empty batch with this limit.
    pub fn new(most: u64) -> Self {
        Self { most, taken: None }
    }

    /// Whether an event of this size fits; if so, counts it. The first event always fits.
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
