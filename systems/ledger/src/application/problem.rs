//! Why a service did not do what it was asked for.

use std::error::Error;
use std::fmt;

use crate::domain::refusal::Refusal;

/// What a service or a port answers.
pub type Answer<T> = Result<T, Problem>;

/// Why a service did not do what it was asked for. Nothing of it was done.
#[derive(Debug)]
pub enum Problem {
    /// The rules don't allow it.
    Refused(Refusal),
    /// It can't be kept: asking again does not help.
    Invalid(String),
    /// Somebody else changed the same balance meanwhile: ask again.
    Conflict,
    /// Something that it needs is broken.
    Broken(Box<dyn Error + Send + Sync>),
}

impl Problem {
    /// Something that it needs is broken.
    pub fn broken(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Broken(error.into())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Invalid(sentence) => f.write_str(sentence),
            Self::Conflict => f.write_str("the balance was changed by others; ask again"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl Error for Problem {}
