//! What one read found.

use crate::{Position, Recorded};

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
    /// Whether the lane is wanted back: see [`Standing::Recalled`](crate::Standing::Recalled).
    pub recalled: bool,
    /// For the store's own use.
    pub mark: String,
}

impl Batch {
    /// Whether there was nothing: no event, and nothing to settle.
    pub fn is_idle(&self) -> bool {
        self.from == self.next
    }
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
