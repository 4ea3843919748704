//! What became of a batch.

use uuid::Uuid;

use crate::{Batch, DeliveryChange, EventRef, Position, Witness};

/// What became of a batch (or of due deliveries), to be written in one transaction.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// Where the lane must stand for this to be taken.
    pub from: Position,
    /// Where it stands afterwards.
    pub to: Position,
    /// How far a read that is already under way has got, so that its events show as *processing*.
    pub reading: Option<Position>,
    /// How many events of the batch there were.
    pub count: u32,
    /// The ids of the events that were late.
    pub late: Vec<i64>,
    /// The events that did not simply succeed.
    pub deliveries: Vec<DeliveryChange>,
    /// Events that were running and simply succeeded at their first try: their rows, which must be running under the lease's
    /// epoch, are deleted. One without such a row is left alone.
    pub succeeded: Vec<EventRef>,
    /// Events whose handlers committed their effects together with a mark in the subscription's inbox. A settle is taken only
    /// if the marks are there: after a failover the events may be in the log, and what was done about them gone.
    pub effects: Vec<Uuid>,
    /// The witness of the batch.
    pub witness: Option<Witness>,
    /// Asks the store to write the deliveries one by one: what the database refuses becomes a dead delivery with the code
    /// [`UNWRITABLE`], without a message, and the rest is written as it is.
    pub one_by_one: bool,
}

/// The code of a delivery that the database refused to write as it was.
pub const UNWRITABLE: &str = "unwritable";

impl Settlement {
    /// All of a batch was delivered; what was not is to be pushed to `deliveries`.
    pub fn of(batch: &Batch) -> Self {
        Self {
            from: batch.from.clone(),
            to: batch.next.clone(),
            reading: None,
            count: u32::try_from(batch.events.len()).unwrap_or(u32::MAX),
            late: batch.events.iter().filter(|read| read.late).map(|read| read.event.id).collect(),
            deliveries: Vec::new(),
            succeeded: Vec::new(),
            effects: Vec::new(),
            witness: batch.witness.clone(),
            one_by_one: false,
        }
    }

    /// Only deliveries changed; the lane stays where it is.
    pub fn at(position: Position) -> Self {
        Self {
            from: position.clone(),
            to: position,
            reading: None,
            count: 0,
            late: Vec::new(),
            deliveries: Vec::new(),
            succeeded: Vec::new(),
            effects: Vec::new(),
            witness: None,
            one_by_one: false,
        }
    }
}
