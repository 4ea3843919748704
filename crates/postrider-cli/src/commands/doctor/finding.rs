//! What was found, and what to do about it.

use postrider::store::{Check, Severity};
use serde::{Serialize, Serializer};

/// What was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at: a part of the database, a sink, a topic.
    pub(super) about: String,
    /// How it is.
    #[serde(rename = "verdict", serialize_with = "word")]
    pub(super) severity: Severity,
    /// What was found, in a sentence.
    pub(super) what: String,
    /// What to do about it.
    pub(super) remedy: Option<String>,
}

fn word<S: Serializer>(verdict: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.as_str())
}

impl Finding {
    fn new(
        about: impl Into<String>,
        severity: Severity,
        what: impl Into<String>,
        remedy: Option<String>,
    ) -> Self {
        Self { about: about.into(), severity, what: what.into(), remedy }
    }

    /// All is well.
    pub(super) fn good(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(about, Severity::Good, what, None)
    }

    /// Something to look at.
    pub(super) fn warn(about: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(about, Severity::Warn, what, Some(remedy.into()))
    }

    /// Something to mend.
    pub(super) fn bad(about: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(about, Severity::Bad, what, Some(remedy.into()))
    }

    /// Something to mend, in a sentence that says how.
    pub(super) fn bad_as_it_says(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(about, Severity::Bad, what, None)
    }
}

impl From<Check> for Finding {
    fn from(check: Check) -> Self {
        Self::new(check.name, check.severity, check.what, check.remedy)
    }
}
