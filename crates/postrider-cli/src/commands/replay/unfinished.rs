//! A replay that has paused its subscription and has not let it go on: it is under way, or it was cut short.
//!
//! A replay writes into the audit that it pauses a subscription, before it does, and what came of it afterwards. So one that
//! was killed in between is found by who looks.

use postrider::store::{Audit, Store, SubscriptionInfo};
use serde::Serialize;

use crate::Failure;
use crate::output::{self, Time};

/// What the audit says before a replay pauses its subscription.
pub(super) const PAUSES: &str = "pause for a replay";
/// What it says when a replay has changed nothing and the subscription goes on.
pub(super) const GIVEN_UP: &str = "resume: the replay was given up";
/// How far back the audit is searched.
const MOST: u32 = 1000;

/// The replay that a subscription is paused for.
#[derive(Serialize, Clone)]
pub(crate) struct Unfinished {
    /// Who began it.
    pub(crate) who: String,
    /// When.
    pub(crate) since: Time,
}

/// What the audit says of replays, if any of these subscriptions is paused.
pub(crate) async fn audits(log: &dyn Store, infos: &[SubscriptionInfo]) -> Result<Vec<Audit>, Failure> {
    if infos.iter().any(|info| info.paused) { Ok(log.audits(MOST).await?) } else { Ok(Vec::new()) }
}

impl Unfinished {
    /// The one that this subscription is paused for; none if somebody paused it for another reason.
    pub(crate) fn of(info: &SubscriptionInfo, audits: &[Audit]) -> Option<Self> {
        let steers = |what: &str| ["pause", "resume", "replay"].iter().any(|verb| what.starts_with(verb));
        let is_its = |audit: &&Audit| {
            audit.entry.subscription.as_deref() == Some(&info.subscription.name) && steers(&audit.entry.what)
        };
        let last = audits.iter().filter(is_its).max_by_key(|audit| audit.id)?;
        (info.paused && last.entry.what == PAUSES)
            .then(|| Self { who: last.entry.who.clone(), since: Time(last.at) })
    }

    /// That it is so.
    pub(crate) fn what(&self, name: &str) -> String {
        format!(
            "{name} is paused for a replay that {} started at {} and that has not finished",
            self.who,
            output::when(self.since.0)
        )
    }

    /// What to do about it.
    pub(crate) fn remedy(name: &str) -> String {
        format!(
            "wait for it; if it was interrupted, run `postrider subscriptions resume {name}` and replay again"
        )
    }
}
