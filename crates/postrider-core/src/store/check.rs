//! What is wrong with a database, or will be.

use std::fmt;
use std::str::FromStr;

use crate::policy::subscription::words;
use crate::{Error, ErrorKind, Result};

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked, in a word or two that no version changes: `clock`, `long transactions`.
    pub name: &'static str,
    /// How it is.
    pub severity: Severity,
    /// What was found, in a sentence.
    pub what: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// As it should be.
    Good,
    /// It works, but not as well as it could, or not for long.
    Warn,
    /// Something does not work, or will be lost.
    Bad,
}

words!(Severity, Good = "ok", Warn = "warn", Bad = "bad");

impl Check {
    /// All is well.
    pub fn good(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, severity: Severity::Good, what: what.into(), remedy: None }
    }

    /// Something to look at.
    pub fn warn(name: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, severity: Severity::Warn, what: what.into(), remedy: Some(remedy.into()) }
    }

    /// Something to mend.
    pub fn bad(name: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, severity: Severity::Bad, what: what.into(), remedy: Some(remedy.into()) }
    }
}
