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

/// What is known to be written and can't be read, or that it is no longer known what is written.
pub(super) fn unread(writer: &PayloadSchema, reader: &PayloadSchema, is_new: bool) -> Option<Mismatch> {
    let written = Schema::new(&writer.writes).written_otherwise()?;
    let other = Schema::new(&reader.writes);
    // A type that writes the same reads it as well, although its schema does not say so.
    if other.written_otherwise() == Some(written) {
        return None;
    }
    let shown = !Schema::new(reader.reads()).accepts(written);
    let was_known = is_new && other.written_otherwise().is_none() && !other.is_unasked();
    let reason = "its type writes a payload that its schema does not allow";
    let unknown = format!("{reason}, so what it writes is not known any more");
    (shown || was_known).then(|| Mismatch {
        field: String::new(),
        reason: if shown { reason.to_owned() } else { unknown },
        example: written.clone(),
        certain: true,
        shown,
    })
}
