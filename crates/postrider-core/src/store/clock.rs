//! Where time comes from: the database, or a clock that a test turns.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;

/// The clock that leases, retries and retention go by.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The database's own clock: the only one that all relays share.
    #[default]
    Database,
    /// A clock that stands still until it is turned.
    Manual(ManualClock),
}

impl Clock {
    /// The time of a manual clock; nothing for the database's, which answers for itself.
    pub fn now(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Database => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}

/// A clock that stands still until somebody turns it. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<OffsetDateTime>>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: OffsetDateTime) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// What it shows.
    pub fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns it forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }

    /// Sets it, backwards too: databases' clocks do that.
    pub fn set(&self, to: OffsetDateTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}
