//! Checks: problems of a database, current or expected.

use std::fmt;
use std::str::FromStr;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Result};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The name of the check, which never changes: `clock`, `long transactions`.
    pub name: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// What was found, in a sentence.
    pub what: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How serious the result of a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No problem.
    Good,
    /// It works, but not as well as it should, or not for long.
    Warn,
    /// Something does not work, or will be lost.
    Bad,
}

words!(Severity, Good = "ok", Warn = "warn", Bad = "bad");

impl Check {
    /// No problem.
    pub fn good(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, severity: Severity::Good, what: what.into(), remedy: None }
    }

    /// A warning.
    pub fn warn(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, severity: Severity::Warn, what: what.into(), remedy: Some(hint.into()) }
    }

    /// A problem to fix.
    pub fn bad(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, severity: Severity::Bad, what: what.into(), remedy: Some(hint.into()) }
    }
}
