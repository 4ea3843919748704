//! What a check found.

mod outputs;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

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
    pub reader: Option<Reader>,
    /// The path to the field, such as `lines[].price`. Empty: the payload as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong, in a sentence.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
    /// A payload that one side writes and the other can't read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Value>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It fails the check.
    Error,
    /// It does not.
    Warning,
}

/// The side that can't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
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

impl Finding {
    /// The event and its version, as in `OrderPaid version 2`.
    pub fn subject(&self) -> String {
        match self.version {
            Some(version) => format!("{} version {version}", self.event),
            None => self.event.clone(),
        }
    }

    /// What is wrong, in one sentence with its subject.
    pub fn sentence(&self) -> String {
        let who = match self.reader {
            Some(Reader::Old) => ": an old program can't read new events: ",
            Some(Reader::New) => ": a new program can't read old events: ",
            None => ": ",
        };
        let field = if self.field.is_empty() { String::new() } else { format!("field `{}` ", self.field) };
        format!("{}{who}{field}{}", self.subject(), self.reason)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}: {}", self.sentence())?;
        if let Some(example) = &self.counterexample {
            write!(f, "\n  counterexample: {example}")?;
        }
        write!(f, "\n  {}", self.advice)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}\n")?;
        }
        let warnings = self.findings.len() - self.errors();
        write!(f, "{} schemas compared: {} errors, {warnings} warnings", self.compared, self.errors())
    }
}
