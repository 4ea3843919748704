//! Subscriptions as operators see them.

use time::OffsetDateTime;

use crate::{AuditEntry, Result, Subscription};

/// A subscription, and where its lanes stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInfo {
    /// As it is in force. A start *now* on a log that was empty is shown as the beginning: they are the same.
    pub subscription: Subscription,
    /// How many lanes it is to have, while they are being changed.
    pub lanes_next: Option<u32>,
    /// Whether it is paused.
    pub paused: bool,
    /// Who paused it, when and why; nothing if it is not, or was paused before that was kept.
    pub pause: Option<Paused>,
    /// When it was first made.
    pub created_at: OffsetDateTime,
    /// Its lanes, by number.
    pub lanes: Vec<LaneInfo>,
}

impl SubscriptionInfo {
    /// Why its destination is away, and since when, by the lane that has said so longest.
    pub fn away(&self) -> Option<(&str, OffsetDateTime)> {
        let said = self.lanes.iter().filter_map(|lane| lane.away.as_deref().zip(lane.away_since));
        said.min_by_key(|(_, since)| *since)
    }
}

/// Where a lane stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneInfo {
    /// Its number, from 0 on.
    pub lane: u32,
    /// The highest id that it has settled.
    pub reached: i64,
    /// How many ids the end of the log is ahead of it: an estimate, and rather too high, because it counts what other lanes
    /// read, what the subscription does not want, and gaps. [`figures`](crate::Store::figures) counts.
    pub behind: u64,
    /// Who holds it now.
    pub owner: Option<String>,
    /// Until when.
    pub lease_until: Option<OffsetDateTime>,
    /// When it was last settled.
    pub settled_at: Option<OffsetDateTime>,
    /// Why its destination is away, as who holds it now says; nothing if it is not, or nobody holds the lane.
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
    /// A pause by somebody, without a reason.
    pub fn by(who: impl Into<String>) -> Self {
        Self { who: who.into(), why: None }
    }

    /// Whether a store can keep it.
    pub fn check(&self) -> Result<()> {
        let what = "pause".to_owned();
        AuditEntry { who: self.who.clone(), what, why: self.why.clone(), ..AuditEntry::default() }.check()
    }
}

/// A pause, and since when it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Who, and why.
    pub by: Pause,
    /// Since when, by the store's clock.
    pub since: OffsetDateTime,
}
