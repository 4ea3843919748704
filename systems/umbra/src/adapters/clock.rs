//! The clock of the application.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::contracts::Timestamp;

/// The time of the machine.
pub fn machine() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::try_from(since.as_secs()).unwrap_or(Timestamp::MAX)
}
