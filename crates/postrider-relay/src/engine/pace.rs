//! How soon to read again: at once while there is little, after a moment while there is much.
//!
//! A relay that is faster than its publishers finds a few events at every look, and pays a read and a settle for them. With
//! thousands of events a second it waits a moment for more to come, so that a batch is worth its settle; its publishers,
//! who share the database, are served better, and the events are late by no more than that moment.

use std::time::{Duration, Instant};

/// From this many events a second on, a batch is waited for.
const MANY: f64 = 3000.0;
/// The moment.
const MOMENT: Duration = Duration::from_millis(15);

/// The recent rate of events.
#[derive(Debug)]
pub struct Pace {
    rate: f64,
    last: Instant,
}

impl Pace {
    /// No events yet.
    pub fn new(now: Instant) -> Self {
        Self { rate: 0.0, last: now }
    }

    /// Notes that this many events were found at `now`, and no more. Returns how long to wait before the next read.
    pub fn found(&mut self, events: u32, now: Instant) -> Duration {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64().max(1e-4);
        self.last = now;
        // The longer ago the last look, the more this one says.
        let weight = (seconds / 0.05).min(1.0);
        self.rate += weight * (f64::from(events) / seconds - self.rate);
        if self.rate > MANY { MOMENT } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events arrive evenly; a look takes two milliseconds. The pause it settles at.
    fn pause_at(rate: f64) -> Duration {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        let mut pause = Duration::ZERO;
        for _ in 0..500 {
            let passed = Duration::from_millis(2) + pause;
            now += passed;
            pause = pace.found((rate * passed.as_secs_f64()) as u32, now);
        }
        pause
    }

    #[test]
    fn little_is_read_at_once_and_much_is_waited_for() {
        assert_eq!(pause_at(1000.0), Duration::ZERO);
        assert_eq!(pause_at(2000.0), Duration::ZERO);
        assert_eq!(pause_at(6000.0), MOMENT);
    }

    #[test]
    fn a_hiccup_does_not_make_it_slow() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        now += Duration::from_millis(40);
        assert_eq!(pace.found(40, now), Duration::ZERO);
    }
}
