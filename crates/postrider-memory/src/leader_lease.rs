//! Duties: what one process does for all the others; in memory, one task of it.

use std::time::Duration;

use postrider_core::{LeaderLease, OffsetDateTime, Result};

use crate::log::Log;

/// A duty, who does it and until when, and what was noted.
#[derive(Debug)]
pub(crate) struct HeldLease {
    owner: Option<String>,
    until: OffsetDateTime,
    lasts: Duration,
    note: Option<String>,
}

/// Takes a duty, or prolongs it.
pub(crate) fn take(log: &Log, duty: &str, owner: &str, lease: Duration) -> Result<Option<LeaderLease>> {
    LeaderLease::check(duty, owner, "")?;
    let mut data = log.data();
    let at = log.now();
    let kept = data.duties.entry(duty.to_owned()).or_insert(HeldLease {
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

/// Writes a note, if the duty is still held.
pub(crate) fn note(log: &Log, duty: &str, owner: &str, note: &str) -> Result<bool> {
    LeaderLease::check(duty, owner, note)?;
    let mut data = log.data();
    let at = log.now();
    let held =
        data.duties.get_mut(duty).filter(|kept| kept.owner.as_deref() == Some(owner) && kept.until > at);
    Ok(held.map(|kept| kept.note = Some(note.to_owned())).is_some())
}

/// Gives a duty back.
pub(crate) fn leave(log: &Log, duty: &str, owner: &str) {
    if let Some(kept) = log.data().duties.get_mut(duty)
        && kept.owner.as_deref() == Some(owner)
    {
        kept.owner = None;
    }
}
