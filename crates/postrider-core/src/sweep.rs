//! Retention: what leaves the log.

use std::time::Duration;

/// One round of retention. It works in batches of `limit` and is called again until it takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Moves events into the archive, where they can be read but not delivered again.
    Archive {
        /// How long ago every subscription must have settled them.
        older_than: Duration,
        /// At most this many in one go.
        limit: u32,
    },
    /// Deletes events.
    Prune {
        /// How long ago every subscription must have settled them.
        older_than: Duration,
        /// At most this many in one go.
        limit: u32,
    },
    /// Deletes what consumers have handled, once its event is settled everywhere or gone.
    Inbox {
        /// How long ago it must have been handled.
        older_than: Duration,
        /// At most this many in one go.
        limit: u32,
    },
}

/// What one round took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many rows of its kind were moved or deleted.
    pub taken: u64,
    /// Whether the limit ended it, so that another round may find more.
    pub more: bool,
}
