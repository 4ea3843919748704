//! The gate: a catalog against the lock, as serde would read it, in both directions.

mod any_version;
mod itself;
mod linked;
mod lost;
mod moved;
mod otherwise;
mod references;
mod unlocked;

use crate::lock::{Lock, LockedEvent, LockedSchema};
use crate::model::{CatalogFile, EventEntry};
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion, Report};
use crate::schema::Schema;
use crate::schema::compare::{Mismatch, mismatches};

/// Compares a catalog with every schema of the lock.
///
/// Each version must be readable by both sides. An older version must have upcasters that lead to the newest; what they make of it
/// is known only where the types are linked in: see `Catalog::check`. A program with an older version lets newer events wait.
pub fn check(catalog: &CatalogFile, lock: &Lock) -> Report {
    let mut report = Report::default();
    let twin = |(event, reason): (&EventEntry, String)| Finding {
        locked_version: None,
        reason,
        advice: "Give one of them another name or version.".into(),
        ..finding(event, event.version, None)
    };
    report.findings.extend(catalog.twins().into_iter().map(twin));
    report.findings.extend(catalog.events.iter().filter(|event| is_unasked(event)).map(unasked));
    report.findings.extend(catalog.events.iter().filter_map(otherwise::warning));
    report.findings.extend(catalog.events.iter().flat_map(references::warnings));
    report.findings.extend(catalog.events.iter().flat_map(itself::unread));
    let events = catalog.by_name();
    for (name, locked) in &lock.events {
        match events.get(name.as_str()) {
            Some(entries) => {
                compare(entries, locked, &mut report);
                report.findings.extend(any_version::warnings(catalog, entries, locked));
            }
            None if locked.retired => {}
            None => report.findings.push(removed(name, locked)),
        }
    }
    report
}

fn compare(entries: &[&EventEntry], locked: &LockedEvent, report: &mut Report) {
    let Some(newest) = entries.last().copied() else { return };
    let mut found = Vec::new();
    for (version, schemas) in &locked.versions {
        if let Some(event) = entries.iter().find(|event| event.version == *version) {
            report.compared += schemas.len();
            for schema in schemas {
                same_version(event, *version, schema, &mut found);
            }
            // An older schema would say it again forever.
            if let Some(last) = schemas.last() {
                lost::warn(event, *version, last, &mut found);
                lost_schema(event, *version, last, &mut found);
                moved::warn(event, *version, last, &mut found);
            }
        }
        if *version > newest.version {
            found.push(Finding {
                reason: format!("the lock has version {version}, which is newer"),
                advice: "A version must never go back: raise it above every version in the lock.".into(),
                ..finding(newest, *version, None)
            });
        } else if *version < newest.version && !newest.upcast_from.contains(version) {
            let payload = schemas.iter().rev().find_map(|schema| schema.payload.as_ref());
            found.push(Finding {
                reason: format!("no upcaster leads from version {version} to version {}", newest.version),
                advice: format!("Add upcasters starting at version {version}; such events may be replayed."),
                counterexample: payload.map(|payload| Schema::new(&payload.writes).sample()),
                ..finding(newest, *version, Some(ReaderVersion::New))
            });
        }
    }
    report.findings.extend(found);
}

fn same_version(event: &EventEntry, version: u32, locked: &LockedSchema, all: &mut Vec<Finding>) {
    if let (Some(new), Some(old)) = (&event.payload, &locked.payload) {
        let next = event.version + 1;
        let advice = format!(
            "Raise the version to {next} and add an upcaster from version {version}, or keep it readable."
        );
        let unread = |mismatch: Mismatch, reader: ReaderVersion| Finding {
            severity: if mismatch.certain { Severity::Error } else { Severity::Warning },
            field: mismatch.field,
            reason: mismatch.reason,
            advice: advice.clone(),
            counterexample: mismatch.shown.then_some(mismatch.example),
            ..finding(event, version, Some(reader))
        };
        let mut new_reader = mismatches(&old.writes, new.reads());
        new_reader.extend(otherwise::unread(old, new, false));
        let is_hidden = Schema::new(new.reads()).is_unasked() && !Schema::new(&old.writes).is_unasked();
        if new_reader.is_empty() && is_hidden {
            let reason = "can't be compared, because the type rejects a payload that matches its own schema";
            let example = Schema::new(&old.writes).sample();
            add(
                unread(
                    Mismatch {
                        field: String::new(),
                        reason: reason.into(),
                        example,
                        certain: true,
                        shown: true,
                    },
                    ReaderVersion::New,
                ),
                all,
            );
        }
        let mut old_reader = mismatches(&new.writes, old.reads());
        old_reader.extend(otherwise::unread(new, old, true));
        for mismatch in new_reader {
            add(unread(mismatch, ReaderVersion::New), all);
        }
        for mismatch in old_reader {
            add(unread(mismatch, ReaderVersion::Old), all);
        }
    }
}

/// A type that has no schema any more is not compared.
fn lost_schema(event: &EventEntry, version: u32, locked: &LockedSchema, all: &mut Vec<Finding>) {
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

fn is_unasked(event: &EventEntry) -> bool {
    event.payload.as_ref().is_some_and(|payload| Schema::new(payload.reads()).is_unasked())
}

/// What such a type reads is not known: it has a parser or rules that its schema does not tell.
fn unasked(event: &EventEntry) -> Finding {
    let example = event.payload.as_ref().map(|payload| Schema::new(payload.reads()).sample());
    Finding {
        severity: Severity::Warning,
        locked_version: None,
        reason: "its type rejects a payload that matches its own schema, so a change of what it reads may not be noticed".into(),
        advice: "Let its schema say what it reads, for instance with #[schemars(with = \"…\")], or read it in a test.".into(),
        counterexample: example,
        ..finding(event, event.version, None)
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
