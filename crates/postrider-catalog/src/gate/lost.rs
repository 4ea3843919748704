//! Optional fields that are removed or renamed: both sides still read, and what such a field held is lost.

use crate::lock::LockedSchema;
use crate::model::EventEntry;
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion};
use crate::schema::compare::lost;

use super::{add, finding};

/// Warns of the fields of the last schema that its successor does not have, unless they break a reader.
pub(super) fn warn(event: &EventEntry, version: u32, locked: &LockedSchema, all: &mut Vec<Finding>) {
    let (Some(new), Some(old)) = (&event.payload, &locked.payload) else { return };
    let unwritten = lost::unwritten(&new.writes, old.reads());
    // A field that the old type only reads, or only writes, was none.
    let unknown = lost::unknown(&old.writes, new.reads());
    let warning = |field: &str, reader: ReaderVersion, reason: &str, advice: &str| Finding {
        severity: Severity::Warning,
        field: field.to_owned(),
        reason: reason.to_owned(),
        advice: advice.to_owned(),
        ..finding(event, version, Some(reader))
    };
    for field in &unknown {
        if all.iter().any(|known| known.field == *field && known.locked_version == Some(version)) {
            continue;
        }
        let reason = "is no longer known to the reader: what it held is lost";
        let advice =
            "Keep the field. If it was renamed, read its old name: #[serde(alias)], stated by x-aliases.";
        add(warning(field, ReaderVersion::New, reason, advice), all);
        if unwritten.contains(field) {
            let reason = "is no longer written: the reader treats it as missing";
            let advice = "Write it until no program reads it any more.";
            add(warning(field, ReaderVersion::Old, reason, advice), all);
        }
    }
}
