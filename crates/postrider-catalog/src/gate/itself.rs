//! Types that can't read what they write: no change is needed to break such an event.

use crate::model::EventEntry;
use crate::problems::Severity;
use crate::report::Finding;
use crate::schema::compare::{Mismatch, NOT_ALWAYS_WRITTEN, mismatches};
use crate::schema::{PROBED, Schema};

use super::finding;

/// What the type of an event writes and does not read.
pub(super) fn unread(event: &EventEntry) -> Vec<Finding> {
    let Some(payload) = &event.payload else { return Vec::new() };
    let (writes, reads) = (Schema::new(&payload.writes), Schema::new(payload.reads()));
    // Such a type has a warning already: its schema does not tell what it reads, or writes.
    if payload.reads.is_none() || reads.is_unasked() || writes.written_otherwise().is_some() {
        return Vec::new();
    }
    // A type that is only written was not asked, and need not read.
    let severity = if reads.get(PROBED).is_some() { Severity::Error } else { Severity::Warning };
    // What values a parser writes is not known of a type that does not read its own sample; which fields it writes is.
    let is_known = |mismatch: &Mismatch| {
        mismatch.certain && mismatch.shown && (!writes.is_unasked() || mismatch.reason == NOT_ALWAYS_WRITTEN)
    };
    let unread = mismatches(&payload.writes, payload.reads()).into_iter().filter(is_known);
    let finding = |mismatch: Mismatch| Finding {
        severity,
        locked_version: None,
        field: mismatch.field,
        reason: format!("{}: its type can't read what it writes", mismatch.reason),
        advice: "Add #[serde(default)] to a field that is not always written.".into(),
        counterexample: Some(mismatch.example),
        ..finding(event, event.version, None)
    };
    unread.map(finding).collect()
}
