//! Leader leases: what one process does for all the others; in memory, one task of it.

use std::time::Duration;

use postrider_core::{LeaderLease, OffsetDateTime, Result};

use crate::log::Log;

/// A leader lease: who has it and until when, and what was noted.
#[derive(Debug)]
pub(crate) struct HeldLease {
    owner: Option<String>,
    until: OffsetDateTime,
    lasts: Duration,
    note: Option<String>,
}

/// Acquires a leader lease, or extends it.
pub(crate) fn take(log: &Log, task: &str, owner: &str, lease: Duration) -> Result<Option<LeaderLease>> {
    LeaderLease::check(task, owner, "")?;
    let mut data = log.data();
    let at = log.now();
    let kept = data.leader_leases.entry(task.to_owned()).or_insert(HeldLease {
        owner: None,
        until: at,
        lasts: lease,
        note: None,
    });
    // A lease longer than it was given for is void: the clock went back.
    let runs = kept.until > at && kept.until <= at + kept.lasts + Duration::from_secs(1);
    if runs && kept.owner.as_deref().is_some_and(|holder| holder != owner) {
        return Ok(None);
    }
    kept.owner = Some(owner.to_owned());
    kept.until = at + lease;
    kept.lasts = lease;
    Ok(Some(LeaderLease { at, until: kept.until, note: kept.note.clone() }))
}

/// Writes a note, if the lease is still held.
pub(crate) fn note(log: &Log, task: &str, owner: &str, note: &str) -> Result<bool> {
    LeaderLease::check(task, owner, note)?;
    let mut data = log.data();
    let at = log.now();
    let held = data
        .leader_leases
        .get_mut(task)
        .filter(|kept| kept.owner.as_deref() == Some(owner) && kept.until > at);
    Ok(held.map(|kept| kept.note = Some(note.to_owned())).is_some())
}

/// Releases a leader lease.
pub(crate) fn leave(log: &Log, task: &str, owner: &str) {
    if let Some(kept) = log.data().leader_leases.get_mut(task)
        && kept.owner.as_deref() == Some(owner)
    {
        kept.owner = None;
    }
}
