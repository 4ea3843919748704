//! Where time comes from: the database, or a clock that a test turns.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;

/// The clock of leases, retries and retention.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The clock of the database, which all relays share.
    #[default]
    Database,
    /// A clock for tests, which moves only when it is set.
    Manual(ManualClock),
}

impl Clock {
    /// The time of a manual clock; `None` for the clock of the database.
    pub fn now(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Database => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}

/// A clock for tests, which moves only when it is set. Clones share the time.
///
/// ```
/// # mod postrider { pub use postrider_core::OffsetDateTime; pub mod testing { pub use postrider_core::{Clock, ManualClock}; } }
/// use std::time::Duration;
///
/// use postrider::OffsetDateTime;
/// use postrider::testing::{Clock, ManualClock};
///
/// let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH);
/// // For an outbox: `Outbox::builder().clock(of_outbox)`.
/// let of_outbox = Clock::Manual(clock.clone());
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(of_outbox.now(), Some(OffsetDateTime::UNIX_EPOCH + Duration::from_secs(60)));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<OffsetDateTime>>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: OffsetDateTime) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// Its time.
    pub fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }

    /// Sets it, also backwards, as the clock of a database may go.
    pub fn set(&self, to: OffsetDateTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}
