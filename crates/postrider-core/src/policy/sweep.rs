//! Retention: what leaves the log.

use std::time::Duration;

use time::{OffsetDateTime, UtcOffset};

use crate::ArchiveOptions;

/// One round of retention. It processes up to `limit` rows; call it again while there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sweep {
    /// Moves events to the archive, where they can be read but not delivered again.
    Archive {
        /// How long ago every subscription must have settled them.
        older_than: Duration,
        /// Maximum rows per round.
        limit: u32,
        /// What is masked, and where the events go.
        archiving: ArchiveOptions,
    },
    /// Deletes events.
    Prune {
        /// How long ago every subscription must have settled them.
        older_than: Duration,
        /// Maximum rows per round.
        limit: u32,
    },
    /// Deletes inbox marks whose events are settled everywhere or gone.
    Inbox {
        /// How long ago the event must have been handled.
        older_than: Duration,
        /// Maximum rows per round.
        limit: u32,
    },
    /// Deletes whole months (UTC) of the archive, once all their events are old enough.
    Archived {
        /// How long ago they must have been recorded.
        older_than: Duration,
        /// Maximum rows per round, if a month is not dropped as a whole.
        limit: u32,
    },
}

impl Sweep {
    /// The minimum age.
    pub fn older_than(&self) -> Duration {
        match self {
            Self::Archive { older_than, .. }
            | Self::Prune { older_than, .. }
            | Self::Inbox { older_than, .. }
            | Self::Archived { older_than, .. } => *older_than,
        }
    }

    /// Maximum rows per round.
    pub fn limit(&self) -> u32 {
        match self {
            Self::Archive { limit, .. }
            | Self::Prune { limit, .. }
            | Self::Inbox { limit, .. }
            | Self::Archived { limit, .. } => *limit,
        }
    }
}

/// The pace of the rounds of a sweep, to limit its effect on publishers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    /// Rows per round.
    pub batch: u32,
    /// Shortest pause between two rounds.
    pub pause: Duration,
    /// Fraction of the time that the sweep may work, above 0 and up to 1.
    pub share: f64,
}

impl Default for Pacing {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Pacing {
    /// The default.
    pub const USUAL: Self = Self { batch: 1000, pause: Duration::from_millis(50), share: 0.25 };

    /// The pause after a round that took this long.
    pub fn after(&self, took: Duration) -> Duration {
        let rest = (1.0 / self.share.clamp(0.001, 1.0)) - 1.0;
        self.pause.max(took.mul_f64(rest))
    }
}

/// The start of the month (UTC) of a time.
pub fn month_of(time: OffsetDateTime) -> OffsetDateTime {
    let time = time.to_offset(UtcOffset::UTC);
    time.replace_day(1).unwrap_or(time).replace_time(time::Time::MIDNIGHT)
}

/// The result of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Rows that were moved or deleted.
    pub taken: u64,
    /// Whether there may be more rows for another round.
    pub more: bool,
}

impl Swept {
    /// The result of a round that took this many rows and was to take at most `limit`.
    pub fn of(taken: u64, limit: u32) -> Self {
        Self { taken, more: taken > 0 && taken >= u64::from(limit) }
    }
}

/// How many rows a sweep would process, over all its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sweepable {
    /// The number of rows.
    pub rows: u64,
    /// Whether these are all; counting stops at [`Sweepable::MOST`].
    pub counted: bool,
}

impl Sweepable {
    /// Maximum rows that are counted.
    pub const MOST: u32 = 1_000_000;

    /// A count that stopped at [`Sweepable::MOST`].
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
