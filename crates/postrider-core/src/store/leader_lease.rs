//! The leader lease: one relay does a task for all, such as retention or alerts.

use time::OffsetDateTime;

use crate::{Error, ErrorKind, Limits, Result};

/// A leader lease that was acquired or extended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderLease {
    /// When, by the store's clock.
    pub at: OffsetDateTime,
    /// When it expires.
    pub until: OffsetDateTime,
    /// The note of its last holder for the next one.
    pub note: Option<String>,
}

impl LeaderLease {
    /// The longest note, in bytes.
    pub const NOTE: usize = 1 << 20;

    /// Checks that a store can keep these.
    pub fn check(task: &str, owner: &str, note: &str) -> Result<()> {
        for (name, text) in [("name", task), ("owner", owner)] {
            if text.is_empty() || text.len() > Limits::NAME || text.contains('\0') {
                let message = format!(
                    "the {name} of a leader lease must have 1 to {} bytes and no NUL character",
                    Limits::NAME
                );
                return Err(Error::new(ErrorKind::Invalid, "lead", message));
            }
        }
        if note.len() > Self::NOTE || note.contains('\0') {
            let message = format!(
                "the note of a leader lease must have at most {} bytes and no NUL character",
                Self::NOTE
            );
            return Err(Error::new(ErrorKind::Invalid, "lead", message));
        }
        Ok(())
    }
}
