//! Subscriptions as operators see them.

use time::OffsetDateTime;

use crate::{AuditEntry, Result, Subscription};

/// A subscription and its lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInfo {
    /// Its current settings. A start of *now* on an empty log is shown as the beginning, which is the same.
    pub subscription: Subscription,
    /// The new number of lanes, while it is being changed.
    pub lanes_next: Option<u32>,
    /// Whether it is paused.
    pub paused: bool,
    /// Who paused it, when and why; `None` if it is not paused, or if an old version paused it.
    pub pause: Option<Paused>,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Its lanes, by number.
    pub lanes: Vec<LaneInfo>,
}

impl SubscriptionInfo {
    /// Why its destination is unavailable, and since when, as reported by the lane with the longest outage.
    pub fn away(&self) -> Option<(&str, OffsetDateTime)> {
        let said = self.lanes.iter().filter_map(|lane| lane.away.as_deref().zip(lane.away_since));
        said.min_by_key(|(_, since)| *since)
    }
}

/// The state of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneInfo {
    /// Its number, from 0 on.
    pub lane: u32,
    /// The highest id that it has settled.
    pub reached: i64,
    /// How many ids it is behind the end of the log: an estimate that tends to be too high, because it includes events of other
    /// lanes, events that the filter does not match, and gaps. [`figures`](crate::Inspect::figures) counts exactly.
    pub behind: u64,
    /// Its current holder.
    pub owner: Option<String>,
    /// When the lease expires.
    pub lease_until: Option<OffsetDateTime>,
    /// When it was last settled.
    pub settled_at: Option<OffsetDateTime>,
    /// Why its destination is unavailable, according to its holder; `None` if it is available, or nobody holds the lane.
    pub away: Option<String>,
    /// Since when.
    pub away_since: Option<OffsetDateTime>,
}

/// Who pauses a subscription, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who.
    pub who: String,
    /// Why.
    pub why: Option<String>,
}

impl Pause {
    /// A pause without a reason.
    pub fn by(who: impl Into<String>) -> Self {
        Self { who: who.into(), why: None }
    }

    /// Checks that a store can keep it.
    pub fn check(&self) -> Result<()> {
        let what = "pause".to_owned();
        AuditEntry { who: self.who.clone(), what, why: self.why.clone(), ..AuditEntry::default() }.check()
    }
}

/// A pause, and when it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Who, and why.
    pub by: Pause,
    /// Since when, by the store's clock.
    pub since: OffsetDateTime,
}
