//! Types that write something else than their schema says: a `serialize_with`, or a `Serialize` by hand.

use crate::model::{EventEntry, PayloadSchema};
use crate::problems::Severity;
use crate::report::Finding;
use crate::schema::Schema;
use crate::schema::compare::Mismatch;

use super::finding;

/// What such a type writes is not known.
pub(super) fn warning(event: &EventEntry) -> Option<Finding> {
    let written = Schema::new(&event.payload.as_ref()?.writes).written_otherwise()?;
    Some(Finding {
        severity: Severity::Warning,
        locked_version: None,
        reason: "its type writes a payload that its schema does not allow, so a change of what it writes may not be noticed".into(),
        advice: "Let its schema say what it writes, for instance with #[schemars(with = \"…\")].".into(),
        counterexample: Some(written.clone()),
        ..finding(event, event.version, None)
    })
}

/// What is known to be written and can't be read, or that nothing is known any more.
pub(super) fn unread(writes: &serde_json::Value, old: &PayloadSchema) -> Option<Mismatch> {
    let written = Schema::new(writes).written_otherwise()?;
    let shown = !Schema::new(old.reads()).accepts(written);
    let before = Schema::new(&old.writes);
    let was_known = before.written_otherwise().is_none() && !before.is_unasked();
    let reason = "its type writes a payload that its schema does not allow";
    (shown || was_known).then(|| Mismatch {
        field: String::new(),
        reason: if shown {
            reason.to_owned()
        } else {
            format!("{reason}, so what it writes is not known any more")
        },
        example: written.clone(),
        certain: true,
        shown,
    })
}
