//! The results of a batch, which a settle writes.

use uuid::Uuid;

use crate::{Batch, DeliveryChange, EventRef, Position, Witness};

/// The outcome of a batch (or of due deliveries), written in one transaction.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The position that the lane must have for this to be accepted.
    pub from: Position,
    /// The position of the lane afterwards.
    pub to: Position,
    /// The position of a read that is already in progress, so that its events show as *processing*.
    pub reading: Option<Position>,
    /// Number of events in the batch.
    pub count: u32,
    /// The ids of the late events.
    pub late: Vec<i64>,
    /// The events that did not succeed at their first attempt.
    pub deliveries: Vec<DeliveryChange>,
    /// Events that were running and succeeded at their first attempt: their rows, which must be running under the lease's epoch,
    /// are deleted. An event without such a row is ignored.
    pub succeeded: Vec<EventRef>,
    /// Events whose handlers committed their effects together with a mark in the subscription's inbox. A settle is accepted only
    /// if the marks exist: after a failover the log may have the events while their effects are lost.
    pub effects: Vec<Uuid>,
    /// The witness of the batch.
    pub witness: Option<Witness>,
    /// Asks the store to write the deliveries one by one. A row that the database rejects becomes a dead delivery with the code
    /// [`UNWRITABLE`] and no message; the rest is written as it is.
    pub one_by_one: bool,
}

/// The code of a delivery whose row the database rejected.
pub const UNWRITABLE: &str = "unwritable";

impl Settlement {
    /// Settles a batch as delivered; push events that were not to `deliveries`.
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

    /// Settles deliveries only; the lane keeps its position.
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
