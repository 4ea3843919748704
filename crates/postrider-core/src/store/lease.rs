//! The right to work on a lane for a while.

use time::OffsetDateTime;

use crate::{Filter, Order, Position};

/// The right to work on one lane until a time, as the store granted it.
///
/// The epoch fences: once somebody else has claimed the lane, everything done under an older epoch is
/// refused.
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
    /// Until when it lasts, by the store's clock.
    pub until: OffsetDateTime,
    /// Where the lane stands: what the last settle left.
    pub position: Position,
    /// How often the lane was claimed since it was last given back, this claim included, and at most one claim before its
    /// last settle: more than 1 means that a holder went away without a word.
    pub claims: u32,
    /// Whether the subscription had open deliveries when last looked at (at claim, extend and settle).
    pub open: bool,
    /// Which events the subscription wants.
    pub filter: Filter,
    /// Nothing recorded before this belongs to the subscription.
    pub since: Option<OffsetDateTime>,
    /// What a failing event holds up.
    pub order: Order,
    /// Where a change of lanes wants this lane to stop, if one is under way.
    pub target: Option<Position>,
    /// About how many bytes of events its holder takes at once: [`BATCH_BYTES`](crate::BATCH_BYTES) unless it sets less. A read and
    /// a look at what is due stop before the event that would exceed it; an event that is larger by itself comes alone.
    pub bytes: u64,
    /// Where the store keeps the lane's row, if it can find it faster by that; empty otherwise.
    pub row_location: String,
    /// Why its destination is away, in the words of its holder and without secrets; nothing while it is not.
    /// [`extend`](crate::Store::extend) writes it down for operators.
    pub away: Option<String>,
}

impl Lease {
    /// As much as is kept of why a destination is away, in characters.
    pub const LONGEST_REASON: usize = 300;

    /// Why the destination is away, as every store can keep it: one line, cut to [`LONGEST_REASON`](Self::LONGEST_REASON).
    pub fn away_to_keep(&self) -> Option<String> {
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        self.away.as_deref().map(|reason| reason.chars().take(Self::LONGEST_REASON).map(plain).collect())
    }
}

/// How a holder stands with its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease is held.
    Held,
    /// The lease is held, but the lane is wanted back (its subscription is paused, or changes its lanes):
    /// finish what is in flight, read nothing more, release.
    Recalled,
    /// The lane belongs to somebody else, or the database's past changed: drop everything and claim anew.
    Lost,
}
