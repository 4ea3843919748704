//! The gate with the types linked in: what schemas can't tell is tried on the types themselves.

mod dropped;

use std::collections::HashSet;

use serde_json::Value;

use super::{check, finding};
use crate::Catalog;
use crate::check_log::recorded;
use crate::lock::{Lock, LockedSchema};
use crate::model::EventEntry;
use crate::problems::Severity;
use crate::report::{Finding, ReaderVersion, Report};
use crate::schema::Schema;

impl Catalog {
    /// Compares the catalog with every schema of the lock, with the types linked in: what the schemas can't tell is tried on the
    /// types themselves, and payloads of older versions go through the upcasters.
    ///
    /// Many payloads that a program with a locked schema writes are made, and each must be readable. A payload that the schemas
    /// refuse and the type reads is no finding.
    pub fn check(&self, lock: &Lock) -> Report {
        let mut report = check(self.file(), lock);
        // What the type reads after all: an alias, or a deserializer of its own.
        report.findings.retain(|finding| !self.reads(finding));
        report.findings.extend(self.steps_of_no_relay().into_iter().map(step_of_no_relay));
        let said = said_already(&report);
        let events = self.file().by_name();
        for (name, locked) in &lock.events {
            let Some(entries) = events.get(name.as_str()) else { continue };
            let Some(newest) = entries.last().copied() else { continue };
            for (version, schemas) in &locked.versions {
                if let Some(event) = entries.iter().find(|event| event.version == *version)
                    && !said.contains(&(name.clone(), *version))
                {
                    let unread = schemas.iter().find_map(|schema| self.try_type(event, schema));
                    report.findings.extend(unread);
                    // An older schema would say it again forever.
                    let last = schemas.last().into_iter();
                    let dropped: Vec<_> = last.flat_map(|schema| self.dropped(event, schema)).collect();
                    dropped.into_iter().for_each(|finding| dropped::add(finding, &mut report.findings));
                }
                if *version < newest.version && newest.upcast_from.contains(version) {
                    report.findings.extend(self.try_older(newest, *version, schemas));
                }
            }
        }
        report
    }

    fn reads(&self, finding: &Finding) -> bool {
        let (Some(payload), Some(version)) = (&finding.counterexample, finding.version) else { return false };
        let is_asked = match finding.reader {
            Some(ReaderVersion::New) => finding.version == finding.locked_version,
            Some(ReaderVersion::Old) => false,
            // What it writes itself.
            None => finding.severity == Severity::Error,
        };
        is_asked && self.read(&finding.event, version, payload).is_some_and(|read| read.is_ok())
    }

    /// A payload of a locked schema of the same version that the type can't read.
    fn try_type(&self, event: &EventEntry, schema: &LockedSchema) -> Option<Finding> {
        let written = Written::of(schema)?;
        written.payloads.into_iter().find_map(|old| {
            let failed = self.read(&event.name, event.version, &old)?.err()?;
            let (version, next) = (event.version, event.version + 1);
            Some(Finding {
                severity: written.severity,
                reason: format!("its type does not read this payload: {failed}"),
                advice: format!(
                    "Raise the version to {next} and add an upcaster from version {version}, or keep it readable."
                ),
                counterexample: Some(old),
                ..finding(event, version, Some(ReaderVersion::New))
            })
        })
    }

    /// What the upcasters make of an older version, or that it can't be tried.
    fn try_older(&self, event: &EventEntry, version: u32, schemas: &[LockedSchema]) -> Option<Finding> {
        let untried = |what: &str| Finding {
            severity: Severity::Warning,
            reason: format!(
                "upcasters from version {version} were not tested: {what} not linked into this program"
            ),
            advice: "Check it in the application that has them.".into(),
            ..finding(event, version, None)
        };
        if self.reader_of(&event.name, event.version).is_none() {
            return Some(untried("its type is"));
        }
        if self.needs_the_application(event, version) {
            return Some(untried("they are"));
        }
        schemas.iter().find_map(|schema| self.try_upcasters(event, version, schema))
    }

    /// A payload of an older version that does not come through the upcasters, or that the type can't read then.
    fn try_upcasters(&self, event: &EventEntry, version: u32, schema: &LockedSchema) -> Option<Finding> {
        let written = Written::of(schema)?;
        written.payloads.into_iter().find_map(|old| {
            let converted = self.convert(&event.name, version, event.version, old.clone());
            let failed = match converted {
                // As a relay reads it: the value itself, not its text.
                Ok(new) => {
                    let reader = self.reader_of(&event.name, event.version)?;
                    let event = recorded(&event.name, version, &old);
                    reader(&event, Some(new)).err()?
                }
                Err(failed) => failed,
            };
            Some(Finding {
                severity: written.severity,
                reason: format!("version {version} is not readable after its upcasters: {failed}"),
                advice: "Fix the upcaster, so that it converts this payload.".into(),
                counterexample: Some(old),
                ..finding(event, version, Some(ReaderVersion::New))
            })
        })
    }

    /// Whether the type of an event reads a payload of its version; nothing if it is not linked in.
    fn read(&self, name: &str, version: u32, payload: &Value) -> Option<Result<(), String>> {
        let reader = self.reader_of(name, version)?;
        Some(reader(&recorded(name, version, payload), None))
    }
}

/// An upcaster that is checked here, while the relay that delivers such events does without it.
fn step_of_no_relay((name, from): (&str, u32)) -> Finding {
    let reason = format!(
        "the upcaster from version {from} was given to the catalog, but no relay of it has that step"
    );
    Finding {
        advice: "Give it to the relay as well: Relay::upcasters.".into(),
        ..Finding::of(Severity::Warning, name, None, reason)
    }
}

/// The payloads that a program with a locked schema writes.
struct Written {
    payloads: Vec<Value>,
    /// A type that does not read a payload of its own schema does not write these either, as far as is known.
    severity: Severity,
}

impl Written {
    fn of(schema: &LockedSchema) -> Option<Self> {
        let schema = Schema::new(&schema.payload.as_ref()?.writes);
        let severity = if schema.is_unasked() { Severity::Warning } else { Severity::Error };
        Some(Self { payloads: schema.variety(), severity })
    }
}

/// The events, with their versions, that are refused already because the new type can't read them.
fn said_already(report: &Report) -> HashSet<(String, u32)> {
    let is_said = |finding: &&Finding| {
        (finding.reader, finding.severity) == (Some(ReaderVersion::New), Severity::Error)
    };
    let said = report.findings.iter().filter(is_said);
    said.filter_map(|finding| Some((finding.event.clone(), finding.locked_version?))).collect()
}
