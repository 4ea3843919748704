//! The gate: a catalog against the lock, as serde would read it, in both directions.

use serde_json::Value;

use crate::Catalog;
use crate::lock::{Lock, LockedEvent, LockedSchema};
use crate::model::{CatalogFile, EventEntry};
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion, Report};
use crate::schema::Schema;
use crate::schema::compare::{Mismatch, mismatches};

/// Compares a catalog with every schema of the lock.
///
/// The same version must be readable by both sides. An older version must have upcasters that lead to the newest; what they make of it
/// is known only where the types are linked in: see [`Catalog::check`]. A program with an older version lets newer events wait.
pub fn check(catalog: &CatalogFile, lock: &Lock) -> Report {
    let mut report = Report::default();
    let twin = |(event, reason): (&EventEntry, &str)| Finding {
        locked_version: None,
        reason: reason.into(),
        advice: "Give one of them another name or version.".into(),
        ..finding(event, event.version, None)
    };
    report.findings.extend(catalog.twins().into_iter().map(twin));
    let newest = catalog.newest();
    for (name, locked) in &lock.events {
        match newest.get(name.as_str()).copied() {
            Some(event) => compare(event, locked, &mut report),
            None if locked.retired => {}
            None => report.findings.push(removed(name, locked)),
        }
    }
    report
}

impl Catalog {
    /// Compares the catalog with every schema of the lock, with the types linked in: what the schemas can't tell is tried on the
    /// types themselves, and payloads of older versions go through the upcasters.
    pub fn check(&self, lock: &Lock) -> Report {
        let mut report = check(self.file(), lock);
        // What the type reads after all: an alias, or a deserializer of its own.
        report.findings.retain(|finding| !self.reads(finding));
        let newest = self.file().newest();
        for (name, locked) in &lock.events {
            let Some(event) = newest.get(name.as_str()).copied() else { continue };
            for (version, schemas) in locked.versions.range(..event.version) {
                if event.upcast_from.contains(version) {
                    report.findings.extend(
                        schemas.iter().find_map(|schema| self.try_upcasters(event, *version, schema)),
                    );
                }
            }
        }
        report
    }

    fn reads(&self, finding: &Finding) -> bool {
        let (Some(ReaderVersion::New), Some(payload)) = (finding.reader, &finding.counterexample) else {
            return false;
        };
        finding.version == finding.locked_version && self.read(&finding.event, payload).is_ok()
    }

    /// A payload of an older version that does not come through the upcasters, or that the type can't read then.
    fn try_upcasters(&self, event: &EventEntry, version: u32, schema: &LockedSchema) -> Option<Finding> {
        let payload = schema.payload.as_ref()?;
        Schema::new(&payload.writes).variety().into_iter().find_map(|old| {
            let converted = self.convert(&event.name, version, event.version, old.clone());
            let failed = match converted {
                Ok(new) => self.read(&event.name, &new).err()?,
                Err(failed) => failed,
            };
            Some(Finding {
                reason: format!("version {version} is not readable after its upcasters: {failed}"),
                advice: "Mend the upcaster, so that it converts this payload.".into(),
                counterexample: Some(old),
                ..finding(event, version, Some(ReaderVersion::New))
            })
        })
    }

    /// Whether the type of an event reads a payload of its newest version.
    fn read(&self, name: &str, payload: &Value) -> Result<(), String> {
        let Some((version, reader)) = self.reader(name) else {
            return Err("its type is not linked in".into());
        };
        reader(&crate::check_log::recorded(name, version, payload), None)
    }
}

fn compare(event: &EventEntry, locked: &LockedEvent, report: &mut Report) {
    let mut found = Vec::new();
    for (version, schemas) in &locked.versions {
        if *version == event.version {
            report.compared += schemas.len();
            for schema in schemas {
                same_version(event, *version, schema, &mut found);
            }
        } else if *version > event.version {
            found.push(Finding {
                reason: format!("the lock has version {version}, which is newer"),
                advice: "A version must never go back: raise it above every version in the lock.".into(),
                ..finding(event, *version, None)
            });
        } else if !event.upcast_from.contains(version) {
            let payload = schemas.iter().rev().find_map(|schema| schema.payload.as_ref());
            found.push(Finding {
                reason: format!("no upcaster leads from version {version} to version {}", event.version),
                advice: format!(
                    "Add the upcasters from version {version} on: events of that version may be replayed."
                ),
                counterexample: payload.map(|payload| Schema::new(&payload.writes).sample()),
                ..finding(event, *version, Some(ReaderVersion::New))
            });
        }
    }
    report.findings.extend(found);
}

fn same_version(event: &EventEntry, version: u32, locked: &LockedSchema, all: &mut Vec<Finding>) {
    if let (Some(new), Some(old)) = (&event.payload, &locked.payload) {
        let next = event.version + 1;
        let unread = |found: Vec<Mismatch>, reader: ReaderVersion| {
            found.into_iter().map(move |mismatch| Finding {
                field: mismatch.field,
                reason: mismatch.reason,
                advice: format!("Raise the version to {next} and add an upcaster from version {version}, or keep it readable."),
                counterexample: Some(mismatch.example),
                ..finding(event, version, Some(reader))
            })
        };
        let old_reader = unread(mismatches(&new.writes, old.reads()), ReaderVersion::Old);
        let new_reader = unread(mismatches(&old.writes, new.reads()), ReaderVersion::New);
        for finding in new_reader.chain(old_reader) {
            add(finding, all);
        }
    }
    if event.payload.is_none() && locked.payload.is_some() {
        let warning = Finding {
            severity: Severity::Warning,
            reason: "its type no longer has a schema, so a change of its fields is not noticed".into(),
            advice:
                "Derive JsonSchema for it, or make sure that both sides still read what the other writes."
                    .into(),
            ..finding(event, version, None)
        };
        add(warning, all);
    }
    let moved = [
        ("stream", &locked.stream, &event.stream),
        ("ordering key", &locked.ordering_key, &event.ordering_key),
    ];
    for (what, before, now) in moved.into_iter().filter(|(_, before, now)| before != now) {
        let advice = match what {
            "stream" => {
                "Subscriptions and topics that name the old stream no longer get it: check each of them."
            }
            _ => "Events that are recorded before and after the change are not in order with each other.",
        };
        let warning = Finding {
            severity: Severity::Warning,
            reason: format!("its {what} changes from `{before}` to `{now}`"),
            advice: advice.into(),
            ..finding(event, version, None)
        };
        add(warning, all);
    }
}

/// Adds a finding that none of the event's others says already: a lock has many schemas that are alike.
fn add(finding: Finding, all: &mut Vec<Finding>) {
    let same = |other: &Finding| {
        (other.reader, &other.field, &other.reason) == (finding.reader, &finding.field, &finding.reason)
    };
    if !all.iter().any(same) {
        all.push(finding);
    }
}

fn removed(name: &str, locked: &LockedEvent) -> Finding {
    Finding {
        severity: Severity::Error,
        event: name.to_owned(),
        version: None,
        locked_version: locked.versions.keys().next_back().copied(),
        reader: None,
        field: String::new(),
        reason: "the catalog no longer has it, but its events may be in the log or awaited by others".into(),
        advice: format!(
            "If it was renamed, keep the old name. If it is gone for good, run: postrider catalog check --update --retire {name}"
        ),
        counterexample: None,
    }
}

fn finding(event: &EventEntry, locked_version: u32, reader: Option<ReaderVersion>) -> Finding {
    Finding {
        severity: Severity::Error,
        event: event.name.clone(),
        version: Some(event.version),
        locked_version: Some(locked_version),
        reader,
        field: String::new(),
        reason: String::new(),
        advice: String::new(),
        counterexample: None,
    }
}

#[cfg(test)]
mod tests;
