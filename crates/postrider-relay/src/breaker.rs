//! The circuit breaker: while a destination is unavailable, it is asked rarely, and said so once.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::Unavailable;
use uuid::Uuid;

use crate::meter;

const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// One destination's breaker, shared by the lanes of a subscription in this relay.
pub(crate) struct Breaker {
    subscription: String,
    longest: Duration,
    state: Mutex<Option<Open>>,
    /// When the destination was last found to be back.
    back: Mutex<Option<Instant>>,
}

struct Open {
    since: Instant,
    pause: Duration,
}

impl Breaker {
    pub(crate) fn new(subscription: &str, longest: Duration) -> Self {
        Self {
            subscription: subscription.to_owned(),
            longest,
            state: Mutex::new(None),
            back: Mutex::new(None),
        }
    }

    /// Whether the destination was unavailable when last asked: then ask with one event, not with a batch.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The destination is unavailable. How long to leave it alone: as long as it asked for, or longer each time.
    pub(crate) fn unavailable(&self, reason: &Unavailable) -> Duration {
        let grown = self.grown(reason);
        match reason.pause {
            Some(pause) => pause.max(FIRST_PAUSE.min(self.longest)),
            None => grown.mul_f64(0.8 + 0.4 * chance()),
        }
    }

    fn grown(&self, reason: &Unavailable) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.as_mut() {
            Some(open) => {
                open.pause = (open.pause * 2).min(self.longest);
                open.pause
            }
            None => {
                tracing::warn!(subscription = %self.subscription, reason = %reason,
                    "the destination is unavailable; its events wait and lose no attempt");
                meter::breaker(&self.subscription).set(1.0);
                *state = Some(Open { since: Instant::now(), pause: FIRST_PAUSE.min(self.longest) });
                FIRST_PAUSE.min(self.longest)
            }
        }
    }

    /// When the destination was last found to be back. A try that began before that may have met it while it was away.
    pub(crate) fn back_since(&self) -> Option<Instant> {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The destination has taken something.
    pub(crate) fn available(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = state.take() {
            *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            tracing::info!(subscription = %self.subscription, seconds = open.since.elapsed().as_secs_f64(),
                "the destination is available again");
            meter::breaker(&self.subscription).set(0.0);
        }
    }
}

/// A random number from 0 to 1.
pub(crate) fn chance() -> f64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 32) as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_start_anew() {
        let breaker = Breaker::new("s", Duration::from_secs(2));
        let down = Unavailable::new("refused");
        let pauses: Vec<Duration> = (0..8).map(|_| breaker.unavailable(&down)).collect();
        assert!(pauses[0] <= FIRST_PAUSE.mul_f64(1.2));
        assert!(pauses[7] >= Duration::from_millis(1600) && pauses[7] <= Duration::from_millis(2400));
        assert!(breaker.is_open());
        breaker.available();
        assert!(!breaker.is_open());
        assert!(breaker.unavailable(&down) <= FIRST_PAUSE.mul_f64(1.2));
    }

    #[test]
    fn the_pause_that_a_destination_asks_for_is_kept() {
        let breaker = Breaker::new("s", Duration::from_secs(2));
        let asked =
            |seconds| Unavailable { pause: Some(Duration::from_secs(seconds)), ..Unavailable::new("busy") };
        assert_eq!(breaker.unavailable(&asked(60)), Duration::from_secs(60));
        assert_eq!(breaker.unavailable(&asked(0)), FIRST_PAUSE, "but never none at all");
    }

    #[test]
    fn chances_are_between_none_and_certain() {
        assert!((0..1000).map(|_| chance()).all(|chance| (0.0..=1.0).contains(&chance)));
    }
}
