//! The right to work on a lane for a while.

use time::OffsetDateTime;

use crate::{Error, ErrorKind, Filter, Order, Position};

/// The right to work on one lane until a given time.
///
/// The epoch is a fencing token: once another owner has claimed the lane, the store rejects everything under an older epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The subscription.
    pub subscription: String,
    /// The lane, counted from 0.
    pub lane: u32,
    /// How many lanes the subscription has.
    pub lanes: u32,
    /// Who holds it.
    pub owner: String,
    /// Grows with every claim.
    pub epoch: i64,
    /// When it expires, by the store's clock.
    pub until: OffsetDateTime,
    /// The position of the lane after the last settle.
    pub position: Position,
    /// Number of claims since the lane was last released, including this one, and at most one claim before its last settle. More
    /// than 1 means that a holder disappeared.
    pub claims: u32,
    /// Whether the subscription had open deliveries at the last claim, extension or settle.
    pub open: bool,
    /// The events that the subscription reads.
    pub filter: Filter,
    /// The subscription ignores events that were recorded before this time.
    pub since: Option<OffsetDateTime>,
    /// What a failing event blocks.
    pub order: Order,
    /// The position where this lane must stop, while the number of lanes is being changed.
    pub target: Option<Position>,
    /// Approximate bytes of events per batch. Default: [`BATCH_BYTES`](crate::BATCH_BYTES). `read` and `due` stop before the event
    /// that would exceed it; an event that is larger than this comes alone.
    pub bytes: u64,
    /// Where the store keeps the lane's row, if that helps it to find the row faster; empty otherwise.
    pub row_location: String,
    /// Why its destination is unavailable, without secrets; `None` while it is available. [`extend`](crate::EventLog::extend) stores it
    /// for operators.
    pub away: Option<String>,
}

impl Lease {
    /// Maximum characters of the reason that are stored.
    pub const LONGEST_REASON: usize = 300;

    /// The reason as every store can keep it: one line, cut to [`LONGEST_REASON`](Self::LONGEST_REASON).
    pub fn away_to_keep(&self) -> Option<String> {
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        self.away.as_deref().map(|reason| reason.chars().take(Self::LONGEST_REASON).map(plain).collect())
    }

    /// The error of a lease that was lost before its handlers began.
    pub fn lost(op: &'static str) -> Error {
        let message =
            "the lease of the lane was lost; nothing was marked, and another relay handles its events";
        Error::new(ErrorKind::LeaseLost, op, message)
    }

    /// The error of a lease whose lane is no longer where the lease says.
    pub fn moved(op: &'static str) -> Error {
        let message = "the position of the lane has changed since this lease read it: another relay claimed it, a replay reset it, or \
                       the database was restored; the relay claims it again";
        Error::new(ErrorKind::LeaseLost, op, message)
    }
}

/// The status of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease is held.
    Held,
    /// The lease is held, but the lane must be released (its subscription is paused, or its lanes change): finish deliveries in
    /// flight, read nothing more, release.
    Recalled,
    /// Another owner has the lane, or the database went back in time: drop everything and claim again.
    Lost,
}
