//! When to look for deliveries that are due.

use std::time::{Duration, Instant};

use postrider_core::{DeliveryChange, DeliveryState, DueBatch};

/// A look is not repeated before this many times what it cost has passed, so that it never costs more than a small part of
/// a lane's time.
const COST: u32 = 10;
const SHORTEST: Duration = Duration::from_millis(5);
/// Where nothing says when the next one is due, somebody may still have changed something.
const LONGEST: Duration = Duration::from_secs(60);

/// When to look for deliveries that are due.
#[derive(Debug, Default)]
pub(crate) struct DueSchedule {
    /// Not before this: a look just cost something.
    not_before: Option<Instant>,
    /// When the next one is due, as far as is known.
    at: Option<Instant>,
    holds: bool,
}

impl DueSchedule {
    /// Whether it is time, `open` saying whether there is anything open at all.
    pub(crate) fn is_time(&mut self, open: bool) -> bool {
        if !open {
            *self = Self::default();
            return false;
        }
        self.next_look(open).is_none_or(|look| look <= Instant::now())
    }

    /// When to look next; nothing if there is nothing open.
    pub(crate) fn next_look(&self, open: bool) -> Option<Instant> {
        if !open {
            return None;
        }
        let at = self.at.unwrap_or_else(Instant::now);
        Some(self.not_before.map_or(at, |not_before| at.max(not_before)))
    }

    /// A look has found this, and took so long. `at_most` is how long a sleep may be.
    pub(crate) fn looked(
        &mut self,
        found: &DueBatch,
        took: Duration,
        at_most: impl Fn(Duration) -> Duration,
    ) {
        let now = Instant::now();
        self.holds = found.holds;
        self.at = if found.deliveries.is_empty() {
            Some(now + at_most(found.next_in.unwrap_or(LONGEST).min(LONGEST)))
        } else {
            None
        };
        self.not_before = found.deliveries.is_empty().then(|| now + at_most((took * COST).max(SHORTEST)));
    }

    /// Nothing can be done about what was found: look again after a while, or when [something changes](Self::soon).
    pub(crate) fn put_off(&mut self, time: Duration) {
        self.at = Some(Instant::now() + time);
    }

    /// Something may have changed: look as soon as it may be.
    pub(crate) fn soon(&mut self) {
        self.at = None;
    }

    /// These rows were written: look when the first of them is due.
    pub(crate) fn after(&mut self, rows: &[DeliveryChange]) {
        let now = Instant::now();
        for row in rows {
            let at = match row.state {
                DeliveryState::Retrying => now + row.retry_in.min(LONGEST),
                DeliveryState::Waiting => now,
                // Whether it holds what comes after it, only a look can tell.
                DeliveryState::Dead => {
                    self.soon();
                    continue;
                }
                _ => continue,
            };
            self.holds = true;
            if let Some(known) = self.at {
                self.at = Some(known.min(at));
            }
        }
    }

    /// Whether anything of the lane kept later events waiting at the last look.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }
}
