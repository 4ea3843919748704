//! The circuit breaker: while a destination is unavailable, it is asked rarely, and said so once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{Backoff, Lease, RelayAway, Unavailable, chance};
use tokio::sync::Notify;

use crate::observe::metrics;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// No pause is longer, whatever a destination asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30 * 24 * 3600);

/// One destination's breaker, shared by the lanes of a subscription in this relay.
pub(crate) struct Breaker {
    subscription: String,
    longest: Duration,
    state: Mutex<Option<Open>>,
    /// When the destination was last found to be back.
    back: Mutex<Option<Instant>>,
    /// Told of every change.
    changed: Arc<Notify>,
}

struct Open {
    since: Instant,
    backoff: Backoff,
    pause: Pause,
}

/// A destination that is away is left alone for so long.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    pub(crate) until: Instant,
    /// Whether nothing shows yet that the destination and not the events are to blame: it may be asked with another key.
    pub(crate) undecided: bool,
    pub(crate) reason: Unavailable,
}

impl Pause {
    /// Whether the destination asked for it: then it is kept to.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.reason.pause.is_some()
    }
}

impl Breaker {
    pub(crate) fn new(subscription: &str, longest: Duration) -> Self {
        Self {
            subscription: subscription.to_owned(),
            longest,
            state: Mutex::new(None),
            back: Mutex::new(None),
            changed: Arc::default(),
        }
    }

    /// Tells of every change.
    pub(crate) fn telling(mut self, changed: &Arc<Notify>) -> Self {
        self.changed = Arc::clone(changed);
        self
    }

    /// Whether the destination was unavailable when last asked: then ask with one event, not with a batch.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// How long the destination is to be left alone still; nothing if it is not away, or may be asked.
    pub(crate) fn pause(&self) -> Option<Pause> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = state.as_ref().map(|open| &open.pause);
        pause.filter(|pause| pause.until > Instant::now()).cloned()
    }

    /// What operators are told while the destination is away.
    pub(crate) fn away(&self) -> Option<RelayAway> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, now) = (state.as_ref()?, Instant::now());
        let probe_in = open.pause.until.checked_duration_since(now);
        let reason = open.pause.reason.reason.chars().take(Lease::LONGEST_REASON);
        Some(RelayAway {
            reason: reason.map(|letter| if letter.is_control() { ' ' } else { letter }).collect(),
            seconds: (now - open.since).as_secs_f64(),
            probe_in: probe_in.map(|probe_in| probe_in.as_secs_f64()),
        })
    }

    /// The destination is unavailable, or seems to be: that is `undecided`. It is left alone for as long as it asked for, or for
    /// longer each time.
    pub(crate) fn unavailable(&self, reason: &Unavailable, undecided: bool) -> Pause {
        self.changed.notify_one();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut backoff = match state.as_ref() {
            Some(open) => open.backoff.clone(),
            None => Backoff::new(FIRST_PAUSE, self.longest),
        };
        let grown = backoff.next_delay();
        let time = match reason.pause {
            Some(pause) => pause.max(FIRST_PAUSE.min(self.longest)),
            None => grown.mul_f64(0.8 + 0.4 * chance()),
        };
        let mut pause = Pause { until: now + time.min(LONGEST_PAUSE), undecided, reason: reason.clone() };
        match state.as_mut() {
            Some(open) => {
                open.backoff = backoff;
                // A relay that lost its lanes showed 0.
                metrics::breaker(&self.subscription).set(1.0);
                // What was asked for counts, also when an answer that asks for nothing comes after it.
                if open.pause.is_asked_for() && open.pause.until > pause.until {
                    pause = open.pause.clone();
                }
                open.pause = pause.clone();
            }
            None => {
                tracing::warn!(subscription = %self.subscription, reason = %reason,
                    "the destination is unavailable; its events wait and lose no attempts");
                metrics::breaker(&self.subscription).set(1.0);
                *state = Some(Open { since: now, backoff, pause: pause.clone() });
            }
        }
        pause
    }

    /// When the destination was last found to be back. A try that began before that may have met it while it was away.
    pub(crate) fn back_since(&self) -> Option<Instant> {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The destination has taken something.
    pub(crate) fn available(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = state.take() {
            self.changed.notify_one();
            *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            tracing::info!(subscription = %self.subscription, seconds = open.since.elapsed().as_secs_f64(),
                "the destination is available again");
            metrics::breaker(&self.subscription).set(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_start_anew() {
        let breaker = Breaker::new("s", Duration::from_secs(2));
        let down = Unavailable::new("refused");
        let pause = || breaker.unavailable(&down, true).until - Instant::now();
        let pauses: Vec<Duration> = (0..8).map(|_| pause()).collect();
        assert!(pauses[0] <= FIRST_PAUSE.mul_f64(1.2));
        assert!(pauses[7] >= Duration::from_millis(1500) && pauses[7] <= Duration::from_millis(2400));
        assert!(breaker.is_open());
        breaker.available();
        assert!(!breaker.is_open());
        assert!(breaker.pause().is_none());
        assert!(pause() <= FIRST_PAUSE.mul_f64(1.2));
    }

    #[test]
    fn the_pause_that_a_destination_asks_for_is_kept() {
        let breaker = Breaker::new("s", Duration::from_secs(2));
        let asked =
            |seconds| Unavailable { pause: Some(Duration::from_secs(seconds)), ..Unavailable::new("busy") };
        let now = Instant::now();
        let first = breaker.unavailable(&asked(0), true).until;
        assert!(first >= now + FIRST_PAUSE, "but never none at all");
        let minute = breaker.unavailable(&asked(60), true);
        assert!(minute.until >= now + Duration::from_secs(60) && minute.is_asked_for());
        let after = breaker.unavailable(&Unavailable::new("busy"), true);
        assert_eq!(after.until, minute.until, "an answer that asks for nothing does not end it");
        assert_eq!(breaker.pause().map(|pause| pause.until), Some(minute.until));
        let forever = Unavailable { pause: Some(Duration::MAX), ..Unavailable::new("busy") };
        assert!(breaker.unavailable(&forever, true).until <= Instant::now() + LONGEST_PAUSE);
    }
}
