//! Retention: what leaves the log.

use std::time::Duration;

use time::{OffsetDateTime, UtcOffset};

use crate::ArchiveOptions;

/// One round of retention. It works in batches of `limit` and is called again while there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sweep {
    /// Moves events into the archive, where they can be read but not delivered again.
    Archive {
        /// How long ago every subscription must have settled them.
        older_than: Duration,
        /// At most this many in one go.
        limit: u32,
        /// What of them is masked, and where they go.
        archiving: ArchiveOptions,
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
    /// Deletes from the archive by whole months (UTC): a month goes when all that was recorded in it is old enough.
    Archived {
        /// How long ago they must have been recorded.
        older_than: Duration,
        /// At most this many in one go, where a month is not dropped as a whole.
        limit: u32,
    },
}

impl Sweep {
    /// How old things must be.
    pub fn older_than(&self) -> Duration {
        match self {
            Self::Archive { older_than, .. }
            | Self::Prune { older_than, .. }
            | Self::Inbox { older_than, .. }
            | Self::Archived { older_than, .. } => *older_than,
        }
    }

    /// How many at most in one go.
    pub fn limit(&self) -> u32 {
        match self {
            Self::Archive { limit, .. }
            | Self::Prune { limit, .. }
            | Self::Inbox { limit, .. }
            | Self::Archived { limit, .. } => *limit,
        }
    }
}

/// How the rounds of a sweep follow each other, so that publishers notice little of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    /// How many rows at once.
    pub batch: u32,
    /// How long to wait between two rounds, at least.
    pub pause: Duration,
    /// The share of the time that the sweep works, above 0 and up to 1; it waits for the rest.
    pub share: f64,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { batch: 1000, pause: Duration::from_millis(50), share: 0.25 }
    }
}

impl Pacing {
    /// How long to wait after a round that took so long.
    pub fn after(&self, took: Duration) -> Duration {
        let rest = (1.0 / self.share.clamp(0.001, 1.0)) - 1.0;
        self.pause.max(took.mul_f64(rest))
    }
}

/// When a month (UTC) began: what was recorded before it is in earlier months.
pub fn month_of(time: OffsetDateTime) -> OffsetDateTime {
    let time = time.to_offset(UtcOffset::UTC);
    time.replace_day(1).unwrap_or(time).replace_time(time::Time::MIDNIGHT)
}

/// What one round took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many rows of its kind were moved or deleted.
    pub taken: u64,
    /// Whether there may be more, so that another round is worth it.
    pub more: bool,
}

/// How much a sweep would take, all its rounds together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sweepable {
    /// So many rows.
    pub rows: u64,
    /// Whether these are all: it stops counting at [`Sweepable::MOST`].
    pub counted: bool,
}

impl Sweepable {
    /// How many rows are counted at most.
    pub const MOST: u32 = 1_000_000;

    /// So many, of which no more than [`Sweepable::MOST`] were counted.
    pub fn of(rows: u64) -> Self {
        Self { rows, counted: rows < u64::from(Self::MOST) }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day_in_utc() {
        assert_eq!(month_of(datetime!(2026-11-16 07:24:00.5 UTC)), datetime!(2026-11-01 00:00 UTC));
        assert_eq!(month_of(datetime!(2026-11-01 00:30 +01)), datetime!(2026-10-01 00:00 UTC));
        assert_eq!(month_of(datetime!(2024-02-29 00:00 UTC)), datetime!(2024-02-01 00:00 UTC));
    }

    #[test]
    fn a_pace_leaves_the_rest_of_the_time_to_others() {
        let pacing = Pacing { batch: 1000, pause: Duration::from_millis(50), share: 0.25 };
        assert_eq!(pacing.after(Duration::from_millis(10)), Duration::from_millis(50));
        assert_eq!(pacing.after(Duration::from_millis(100)), Duration::from_millis(300));
        let hurried = Pacing { pause: Duration::ZERO, share: 1.0, ..pacing };
        assert_eq!(hurried.after(Duration::from_secs(1)), Duration::ZERO);
    }
}
