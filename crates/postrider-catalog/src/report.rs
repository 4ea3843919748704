//! What a check found.

mod exact;
mod outputs;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

pub(crate) use exact::text as exact_text;

use crate::check_log::LogReport;
use crate::model::{CatalogFile, EventEntry};
use crate::names::Conventions;
use crate::problems::{Severity, problems};

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The number of schemas that were compared.
    pub compared: usize,
    /// What was found, by event.
    pub findings: Vec<Finding>,
}

/// A change that breaks a reader, or that somebody should know about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Whether it fails the check.
    pub severity: Severity,
    /// The event type.
    pub event: String,
    /// Its version in the catalog. Absent: the catalog does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The version in the lock that it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_version: Option<u32>,
    /// Who can't read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader: Option<ReaderVersion>,
    /// The path to the field, such as `lines[].price`. Empty: the payload as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong, in a sentence.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
    /// A payload that one side writes and the other can't read.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exact::serialize")]
    pub counterexample: Option<Value>,
}

/// The side that can't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderVersion {
    /// A program with the old type, on new events: one that is not deployed yet, or belongs to somebody else.
    Old,
    /// A program with the new type, on old events: those that are under way, or replayed.
    New,
}

impl Report {
    /// Whether nothing fails the check.
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// The number of findings that fail the check.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    }
}

impl Report {
    /// Adds the names that break a convention.
    pub fn check_names(&mut self, catalog: &CatalogFile, conventions: &Conventions) {
        let newest = catalog.newest();
        // A name is said once, with the newest version that is in the stream.
        let is_older = |event: &EventEntry| {
            let newest = newest.get(event.name.as_str());
            newest.is_some_and(|newest| newest.version != event.version && newest.stream == event.stream)
        };
        for event in catalog.events.iter().filter(|event| !is_older(event)) {
            if let Err(refusal) = conventions.check(&event.stream, &event.name) {
                self.findings.push(Finding::of(
                    Severity::Error,
                    &event.name,
                    Some(event.version),
                    refusal.to_string(),
                ));
            }
        }
    }

    /// Adds a warning for each name that ends with another version than the event has, as `acme.order.paid.v1` with version 2.
    pub fn check_versions(&mut self, catalog: &CatalogFile) {
        for event in &catalog.events {
            let named = event.name.rsplit_once(".v").and_then(|(_, number)| number.parse::<u32>().ok());
            if let Some(named) = named.filter(|named| *named != event.version) {
                let reason = format!("its name ends with v{named}, but its version is {}", event.version);
                let finding = Finding::of(Severity::Warning, &event.name, Some(event.version), reason);
                let advice = "Readers go by the version. A new name is a new event: raise the version with upcasters, or publish both names for a time.";
                self.findings.push(Finding { advice: advice.into(), ..finding });
            }
        }
    }

    /// Adds what is odd in the catalog itself, such as a handler for an event that nobody publishes.
    pub fn check_routes(&mut self, catalog: &CatalogFile) {
        for problem in problems(catalog).iter().filter(|problem| problem.severity() != Severity::Information)
        {
            self.findings.push(Finding::of(problem.severity(), &catalog.system, None, problem.to_string()));
        }
    }
}

impl Report {
    /// Adds the events of a log that can't be read, and those whose type the catalog does not have. No finding holds a payload.
    pub fn check_log(&mut self, log: &LogReport) {
        for event in &log.unreadable {
            let place = if event.archived { "the archive" } else { "the log" };
            let reason = format!("event {} of {place} can't be read: {}", event.event_id, event.reason);
            let advice = "Fix the type or its upcasters, so that they read it.".to_owned();
            let finding = Finding::of(Severity::Error, &event.event_type, Some(event.version), reason);
            self.findings.push(Finding { advice, ..finding });
        }
        for (name, count) in &log.unknown {
            let events = if *count == 1 { "event" } else { "events" };
            let reason =
                format!("the log has {count} {events} of this type, which the catalog does not have");
            self.findings.push(Finding::of(Severity::Warning, name, None, reason));
        }
    }
}

impl Finding {
    pub(crate) fn of(severity: Severity, event: &str, version: Option<u32>, reason: String) -> Self {
        Self {
            severity,
            event: event.to_owned(),
            version,
            locked_version: None,
            reader: None,
            field: String::new(),
            reason,
            advice: String::new(),
            counterexample: None,
        }
    }

    /// The event and its version, as in `OrderPaid version 2`.
    pub fn subject(&self) -> String {
        match self.version {
            Some(version) => format!("{} version {version}", self.event),
            None => self.event.clone(),
        }
    }

    /// What is wrong, in one sentence with its subject.
    pub fn sentence(&self) -> String {
        // What only warns and has no payload to show for it may be read.
        let is_sure = self.severity == Severity::Error || self.counterexample.is_some();
        let who = match self.reader {
            Some(ReaderVersion::Old) if is_sure => ": an old program can't read new events: ",
            Some(ReaderVersion::New) if is_sure => ": a new program can't read old events: ",
            Some(ReaderVersion::Old) => ": an old program on new events: ",
            Some(ReaderVersion::New) => ": a new program on old events: ",
            None => ": ",
        };
        let field = if self.field.is_empty() { String::new() } else { format!("field `{}` ", self.field) };
        format!("{}{who}{field}{}", self.subject(), self.reason)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.sentence())?;
        if let Some(example) = &self.counterexample {
            write!(f, "\n  counterexample: {}", exact::text(example))?;
        }
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}\n")?;
        }
        let warnings = self.findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
        let count =
            |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
        write!(
            f,
            "{} compared: {}, {}",
            count(self.compared, "schema"),
            count(self.errors(), "error"),
            count(warnings, "warning")
        )
    }
}
