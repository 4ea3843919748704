//! Relays as they make themselves known.

use postrider_core::{OffsetDateTime, RelayInfo, RelayReport, Result};
use uuid::Uuid;

use crate::log::{Data, Log};

/// Makes a relay known, or says that it is still there.
pub(crate) fn heartbeat(log: &Log, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
    relay.check()?;
    let mut data = log.data();
    let now = log.now();
    let started_at = data.relays.get(&relay.id).map_or(now, |known| known.started_at);
    let info = RelayInfo { report: relay.clone(), started_at, seen_at: now, live: true };
    data.relays.insert(relay.id, info);
    data.relays.retain(|_, known| !RelayInfo::is_forgotten(known.seen_at, now));
    Ok(known(&data, now))
}

/// Forgets a relay that has ended.
pub(crate) fn deregister(log: &Log, relay: Uuid) {
    log.data().relays.remove(&relay);
}

/// The relays that are known.
pub(crate) fn known(data: &Data, now: OffsetDateTime) -> Vec<RelayInfo> {
    let live = |relay: &RelayInfo| RelayInfo::is_live(relay.seen_at, now);
    let listed = data.relays.values().filter(|relay| !RelayInfo::is_forgotten(relay.seen_at, now));
    let mut known: Vec<_> = listed.map(|relay| RelayInfo { live: live(relay), ..relay.clone() }).collect();
    known.sort_by(|a, b| (&a.report.name, a.started_at).cmp(&(&b.report.name, b.started_at)));
    known
}
