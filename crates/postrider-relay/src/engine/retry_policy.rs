//! What follows from an outcome: delivered, tried again and when, or dead and why. Nothing here does I/O.

use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryFailure, FailedAttempt, OffsetDateTime, Outcome, Recorded, Retry, RetryDecision,
};

/// Whether an outage of the destination counts toward an event's age.
///
/// ```
/// use std::time::Duration;
///
/// use postrider::{Relay, Retry, WhileUnavailable, testing::{Destination, Outbox}};
///
/// // A price that is 10 minutes old is of no use, also after an outage.
/// let retry = Retry::exponential().max_age(Duration::from_secs(600));
/// let relay = Relay::new(&Outbox::new()).subscribe("prices", |s| {
///     s.sink(Destination::new()).retry(retry).while_unavailable(WhileUnavailable::Expire)
/// });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhileUnavailable {
    /// No: an event's age starts at its own first failure, and an outage makes no event dead.
    #[default]
    Wait,
    /// Yes: an event's age starts when it is recorded, and includes outages.
    Expire,
}

/// What is known of an event that is being delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) event: &'a Recorded,
    /// How often it was tried before.
    pub(crate) tried: u32,
    pub(crate) first_failed_at: Option<OffsetDateTime>,
    pub(crate) now: OffsetDateTime,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Delivered { attempts: u32, duplicate: bool },
    Retry { attempts: u32, pause: Duration, failure: DeliveryFailure },
    Dead { attempts: u32, failure: DeliveryFailure, age: Option<Duration> },
}

/// The code of an event whose row can't be read.
const UNREADABLE: &str = "unreadable";

impl Decision {
    /// Its row can't be read, so nothing of it can be delivered.
    pub(crate) fn unreadable(attempts: u32, reason: String) -> Self {
        Self::Dead { attempts, failure: DeliveryFailure::new(UNREADABLE, reason), age: None }
    }

    /// Why the event failed, if it did.
    pub(crate) fn failure(&self) -> Option<&DeliveryFailure> {
        match self {
            Self::Delivered { .. } => None,
            Self::Retry { failure, .. } | Self::Dead { failure, .. } => Some(failure),
        }
    }

    /// The row it leaves; nothing for an event that simply succeeded and has none yet.
    pub(crate) fn row(&self, event: &Recorded, has_row: bool) -> Option<DeliveryChange> {
        match self {
            Self::Delivered { attempts, .. } => has_row.then(|| DeliveryChange::delivered(event, *attempts)),
            Self::Retry { attempts, pause, failure } => {
                Some(DeliveryChange::retrying(event, *attempts, *pause, failure.clone()))
            }
            Self::Dead { attempts, failure, .. } => {
                Some(DeliveryChange::dead(event, *attempts, failure.clone()))
            }
        }
    }
}

/// A subscription's policy.
#[derive(Debug, Clone)]
pub(crate) struct RetryPolicy {
    pub(crate) retry: Retry,
    pub(crate) while_unavailable: WhileUnavailable,
}

impl RetryPolicy {
    /// What follows from an outcome, the event being to blame where that was unclear. `chance` decides the jitter.
    pub(crate) fn retry_policy(&self, case: Case<'_>, outcome: Outcome, chance: f64) -> Decision {
        let attempts = case.tried + 1;
        let (asked, failure) = match outcome {
            Outcome::Delivered => return Decision::Delivered { attempts, duplicate: false },
            Outcome::Duplicate => return Decision::Delivered { attempts, duplicate: true },
            Outcome::Reject { failure } | Outcome::Unclear { failure, rejects: true, .. } => {
                return Decision::Dead { attempts, failure, age: None };
            }
            Outcome::Hold { after, failure } => return self.hold(case, after, failure),
            Outcome::Retry { after, failure } | Outcome::Unclear { after, failure, rejects: false } => {
                (after, failure)
            }
        };
        let age = self.age(case);
        let failed = FailedAttempt { attempts, max_attempts: case.event.max_attempts, age, asked };
        match self.retry.decide(failed, chance) {
            RetryDecision::After(pause) => Decision::Retry { attempts, pause, failure },
            RetryDecision::OutOfAttempts => Decision::Dead { attempts, failure, age: None },
            RetryDecision::TooOld => Decision::Dead { attempts, failure, age: Some(age) },
        }
    }

    /// An event that waits for something else loses no attempt, and is given up only where outages count.
    fn hold(&self, case: Case<'_>, after: Duration, failure: DeliveryFailure) -> Decision {
        let attempts = case.tried;
        match self.retry.age().filter(|_| self.while_unavailable == WhileUnavailable::Expire) {
            Some(most) if self.age(case) >= most => {
                Decision::Dead { attempts, failure, age: Some(self.age(case)) }
            }
            _ => Decision::Retry { attempts, pause: after.min(Retry::LONGEST), failure },
        }
    }

    /// Whether an event that could not be tried has to be given up, because outages count.
    pub(crate) fn expired(&self, case: Case<'_>, reason: &str) -> Option<Decision> {
        let most = self.retry.age().filter(|_| self.while_unavailable == WhileUnavailable::Expire)?;
        let age = self.age(case);
        let failure =
            || DeliveryFailure::new("expired", format!("the destination was unavailable: {reason}"));
        (age >= most).then(|| Decision::Dead { attempts: case.tried, failure: failure(), age: Some(age) })
    }

    fn age(&self, case: Case<'_>) -> Duration {
        let since = match self.while_unavailable {
            WhileUnavailable::Wait => case.first_failed_at.unwrap_or(case.now),
            WhileUnavailable::Expire => case.event.recorded_at,
        };
        Duration::try_from(case.now - since).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::work::tests::event;

    const MINUTE: Duration = Duration::from_secs(60);

    fn retry_policy(retry: Retry, while_unavailable: WhileUnavailable) -> RetryPolicy {
        RetryPolicy { retry, while_unavailable }
    }

    fn refused() -> Outcome {
        Outcome::retry(DeliveryFailure::new("refused", "not now"))
    }

    #[test]
    fn the_last_attempt_that_fails_is_the_end() {
        let (event, retry_policy) =
            (event("a"), retry_policy(Retry::fixed(MINUTE).max_attempts(3), WhileUnavailable::Wait));
        let case = |tried| Case { event: &event, tried, first_failed_at: None, now: event.recorded_at };
        let decision = |tried| retry_policy.retry_policy(case(tried), refused(), 0.5);
        assert!(matches!(decision(0), Decision::Retry { attempts: 1, pause: MINUTE, .. }));
        assert!(matches!(decision(1), Decision::Retry { attempts: 2, .. }));
        assert!(matches!(decision(2), Decision::Dead { attempts: 3, age: None, .. }));
    }

    #[test]
    fn a_reject_needs_no_attempts() {
        let (event, retry_policy) = (event("a"), retry_policy(Retry::default(), WhileUnavailable::Wait));
        let case = Case { event: &event, tried: 0, first_failed_at: None, now: event.recorded_at };
        let outcome = Outcome::reject(DeliveryFailure::new("no", "never"));
        assert!(matches!(retry_policy.retry_policy(case, outcome, 0.5), Decision::Dead { attempts: 1, .. }));
    }

    #[test]
    fn what_is_held_loses_no_attempt() {
        let (event, retry_policy) =
            (event("a"), retry_policy(Retry::fixed(MINUTE).max_attempts(1), WhileUnavailable::Wait));
        let case = Case { event: &event, tried: 0, first_failed_at: None, now: event.recorded_at };
        let outcome =
            Outcome::Hold { after: MINUTE, failure: DeliveryFailure::new("topic", "it is missing") };
        assert!(matches!(
            retry_policy.retry_policy(case, outcome, 0.5),
            Decision::Retry { attempts: 0, pause: MINUTE, .. }
        ));
    }

    #[test]
    fn age_counts_from_the_first_failure_or_from_recording() {
        let event = event("a");
        let retry = Retry::fixed(2 * MINUTE).max_age(5 * MINUTE);
        let (now, failed) = (event.recorded_at + 9 * MINUTE, event.recorded_at + 5 * MINUTE);
        let case = Case { event: &event, tried: 3, first_failed_at: Some(failed), now };
        let waits = retry_policy(retry.clone(), WhileUnavailable::Wait);
        // Four minutes old, by its own failure: a last try in one.
        assert!(matches!(waits.retry_policy(case, refused(), 0.5), Decision::Retry { pause: MINUTE, .. }));
        assert!(waits.expired(case, "down").is_none(), "an outage ends nothing");
        let expires = retry_policy(retry, WhileUnavailable::Expire);
        assert!(matches!(expires.retry_policy(case, refused(), 0.5), Decision::Dead { age: Some(_), .. }));
        let Some(Decision::Dead { attempts: 3, failure, age }) = expires.expired(case, "down") else {
            panic!("it has expired")
        };
        assert_eq!((failure.code.as_str(), age), ("expired", Some(9 * MINUTE)));
    }
}
