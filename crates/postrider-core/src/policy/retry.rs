//! When a failed delivery is tried again, and when it is given up.

use std::fmt;
use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// When a failed delivery is retried, and when the event is dead: the policy of a subscription, and of a consumer of Kafka.
///
/// An event is dead after [`max_attempts`](Retry::max_attempts), which includes the first attempt, or
/// [`max_age`](Retry::max_age), whichever comes first. Default: 10 attempts.
///
/// It can be read from text: it implements `serde::Deserialize`, as the table `retry` of Postrider's settings file, and `FromStr`, as in
/// `"base=500ms, max=1m, max_attempts=6"`.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use std::time::Duration;
///
/// use postrider::Retry;
///
/// let minutes = |count: u64| Duration::from_secs(60 * count);
/// let exponential = Retry::exponential().base(Duration::from_secs(2)).max_attempts(5);
/// let fixed = Retry::fixed(minutes(1)).max_age(minutes(24 * 60));
/// let schedule = Retry::schedule([minutes(1), minutes(5), minutes(30)]).max_attempts(4);
/// assert_eq!(exponential.to_string(), "after 2s, then 2 times as long each time, up to 300s, 5 attempts");
/// # assert_eq!((fixed.attempts(None), schedule.attempts(None)), (None, Some(4)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub(super) pause: Pause,
    max_attempts: Option<u32>,
    max_age: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pause {
    Schedule(Vec<Duration>),
    Exponential { base: Duration, factor: f64, max: Duration, jitter: f64 },
    Fixed(Duration),
}

/// An attempt that failed, as far as a [`Retry`] needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The number of attempts so far, this one included.
    pub attempts: u32,
    /// The event's own limit of attempts.
    pub max_attempts: Option<u32>,
    /// The event's age.
    pub age: Duration,
    /// The pause that the handler or the destination asked for.
    pub asked: Option<Duration>,
}

/// The decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Another attempt after this pause.
    After(Duration),
    /// The event is dead: it had all its attempts.
    OutOfAttempts,
    /// The event is dead: it is too old.
    TooOld,
}

/// In words: *after 1s, then 2 times as long each time, up to 300s, 10 attempts*.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pause {
            Pause::Schedule(pauses) => {
                let pauses: Vec<String> = pauses.iter().map(|pause| format!("{pause:?}")).collect();
                write!(f, "after {}", pauses.join(", "))?;
            }
            Pause::Exponential { base, factor, max, .. } => {
                write!(f, "after {base:?}, then {factor} times as long each time, up to {max:?}")?;
            }
            Pause::Fixed(pause) => write!(f, "every {pause:?}")?,
        }
        let most = self.max_attempts.or(self.max_age.is_none().then_some(Self::ATTEMPTS));
        if let Some(most) = most {
            write!(f, ", {most} {}", if most == 1 { "attempt" } else { "attempts" })?;
        }
        if let Some(age) = self.max_age {
            write!(f, ", for {age:?}")?;
        }
        Ok(())
    }
}

impl Retry {
    /// The default number of attempts.
    pub const ATTEMPTS: u32 = 10;

    /// The default first pause of exponential backoff.
    pub const BASE: Duration = Duration::from_secs(1);

    /// The default factor of exponential backoff.
    pub const FACTOR: f64 = 2.0;

    /// The default longest pause of exponential backoff.
    pub const MAX: Duration = Duration::from_secs(300);

    /// The default jitter of exponential backoff.
    pub const JITTER: f64 = 0.2;

    /// No pause is longer than ten years: databases can't count for ever.
    pub const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

    /// Exponential backoff: 1 s, 2 s, 4 s, … up to 5 minutes, each with a jitter of 20 %.
    pub fn exponential() -> Self {
        Self::of(Pause::Exponential {
            base: Self::BASE,
            factor: Self::FACTOR,
            max: Self::MAX,
            jitter: Self::JITTER,
        })
    }

    /// A fixed pause between attempts.
    pub fn fixed(every: Duration) -> Self {
        Self::of(Pause::Fixed(every))
    }

    /// These pauses, one after the other; the last one repeats.
    pub fn schedule(pauses: impl IntoIterator<Item = Duration>) -> Self {
        Self::of(Pause::Schedule(pauses.into_iter().collect()))
    }

    fn of(pause: Pause) -> Self {
        Self { pause, max_attempts: None, max_age: None }
    }

    /// The first pause of exponential backoff.
    #[must_use]
    pub fn base(mut self, first: Duration) -> Self {
        if let Pause::Exponential { base, .. } = &mut self.pause {
            *base = first;
        }
        self
    }

    /// The factor by which each pause of exponential backoff grows.
    #[must_use]
    pub fn factor(mut self, by: f64) -> Self {
        if let Pause::Exponential { factor, .. } = &mut self.pause {
            *factor = by;
        }
        self
    }

    /// The longest pause of exponential backoff.
    #[must_use]
    pub fn max(mut self, longest: Duration) -> Self {
        if let Pause::Exponential { max, .. } = &mut self.pause {
            *max = longest;
        }
        self
    }

    /// The fraction by which a pause of exponential backoff is randomly shortened or extended: 0 to 1.
    #[must_use]
    pub fn jitter(mut self, part: f64) -> Self {
        if let Pause::Exponential { jitter, .. } = &mut self.pause {
            *jitter = part;
        }
        self
    }

    /// The event is dead after this many failed attempts. An event can override it.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// The event is dead if an attempt fails this long after its first failure (or, if outages count, after its recording).
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// The number of attempts of an event with this limit of its own.
    pub fn attempts(&self, own: Option<u32>) -> Option<u32> {
        own.or(self.max_attempts).or(if self.max_age.is_none() { Some(Self::ATTEMPTS) } else { None })
    }

    /// The age at which an event is dead, if there is one.
    pub fn age(&self) -> Option<Duration> {
        self.max_age
    }

    /// The pause after this many failed attempts. `chance` between 0 and 1 decides the jitter.
    pub fn pause(&self, failed: u32, chance: f64) -> Duration {
        let nth = failed.max(1) - 1;
        match &self.pause {
            Pause::Fixed(every) => *every,
            Pause::Schedule(pauses) => {
                pauses.get(nth as usize).or(pauses.last()).copied().unwrap_or_default()
            }
            Pause::Exponential { base, factor, max, jitter } => {
                let power = factor.powi(i32::try_from(nth).unwrap_or(i32::MAX));
                let pause = (base.as_secs_f64() * power).min(max.as_secs_f64());
                let pause = pause * (1.0 + jitter * (2.0 * chance - 1.0));
                Duration::try_from_secs_f64(pause.max(0.0)).unwrap_or(*max)
            }
        }
    }

    /// Decides what to do after a failed attempt. `chance` between 0 and 1 decides the jitter.
    pub fn decide(&self, failed: FailedAttempt, chance: f64) -> RetryDecision {
        if self.attempts(failed.max_attempts).is_some_and(|most| failed.attempts >= most) {
            return RetryDecision::OutOfAttempts;
        }
        let pause = failed.asked.unwrap_or_else(|| self.pause(failed.attempts, chance)).min(Self::LONGEST);
        match self.max_age {
            None => RetryDecision::After(pause),
            Some(most) if failed.age >= most => RetryDecision::TooOld,
            // One last try when its time is over, not later.
            Some(most) => RetryDecision::After(pause.min(most - failed.age)),
        }
    }

    /// Checks that the policy is valid.
    pub fn check(&self) -> Result<()> {
        let invalid = |message: &str| Err(Error::new(ErrorKind::Invalid, "retry", message));
        match &self.pause {
            Pause::Schedule(pauses) if pauses.is_empty() => {
                return invalid("a retry schedule must have at least one pause");
            }
            Pause::Exponential { factor, .. } if !factor.is_finite() || *factor < 1.0 => {
                return invalid("the factor of an exponential retry must be at least 1");
            }
            Pause::Exponential { jitter, .. } if !(0.0..=1.0).contains(jitter) => {
                return invalid("the jitter of an exponential retry must be between 0 and 1");
            }
            _ => {}
        }
        if self.max_attempts == Some(0) {
            return invalid("max_attempts must be at least 1; it includes the first attempt");
        }
        Ok(())
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::exponential()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn it_is_shown_in_words() {
        let shown = |retry: Retry| retry.to_string();
        assert_eq!(
            shown(Retry::exponential()),
            "after 1s, then 2 times as long each time, up to 300s, 10 attempts"
        );
        assert_eq!(shown(Retry::fixed(SECOND).max_age(MINUTE)), "every 1s, for 60s");
        assert_eq!(shown(Retry::fixed(SECOND).max_attempts(1)), "every 1s, 1 attempt");
    }

    #[test]
    fn an_exponential_pause_doubles_up_to_its_limit() {
        let retry = Retry::exponential().jitter(0.0);
        let pauses: Vec<_> = (1..=11).map(|failed| retry.pause(failed, 0.5).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(retry.pause(u32::MAX, 0.5), 5 * MINUTE);
    }

    #[test]
    fn jitter_moves_a_pause_by_its_part_at_most() {
        let retry = Retry::exponential();
        assert_eq!(retry.pause(1, 0.0), SECOND * 4 / 5);
        assert_eq!(retry.pause(1, 1.0), SECOND * 6 / 5);
    }

    /// U11.
    #[test]
    fn a_schedule_ends_with_its_last_pause_for_ever() {
        let retry = Retry::schedule([MINUTE, 5 * MINUTE, 15 * MINUTE, 60 * MINUTE]);
        let minutes: Vec<_> = (1..=6).map(|failed| retry.pause(failed, 0.5).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 5, 15, 60, 60, 60]);
    }

    #[test]
    fn what_is_set_ends_it_and_the_event_has_the_last_word() {
        assert_eq!(Retry::fixed(SECOND).attempts(None), Some(10));
        assert_eq!(Retry::fixed(SECOND).max_age(MINUTE).attempts(None), None);
        assert_eq!(Retry::fixed(SECOND).max_age(MINUTE).attempts(Some(3)), Some(3));
        assert_eq!(Retry::fixed(SECOND).max_attempts(5).attempts(Some(3)), Some(3));
    }

    #[test]
    fn a_failed_attempt_is_followed_by_another_until_attempts_or_time_are_over() {
        let failed = |attempts, age| FailedAttempt { attempts, max_attempts: None, age, asked: None };
        let retry = Retry::fixed(MINUTE).max_attempts(3).max_age(5 * MINUTE);
        assert_eq!(retry.decide(failed(1, SECOND), 0.5), RetryDecision::After(MINUTE));
        assert_eq!(retry.decide(failed(2, 5 * MINUTE - SECOND), 0.5), RetryDecision::After(SECOND));
        assert_eq!(retry.decide(failed(2, 5 * MINUTE), 0.5), RetryDecision::TooOld);
        assert_eq!(retry.decide(failed(3, SECOND), 0.5), RetryDecision::OutOfAttempts);
        let own = FailedAttempt { max_attempts: Some(4), ..failed(3, SECOND) };
        assert_eq!(retry.decide(own, 0.5), RetryDecision::After(MINUTE));
        let asked = FailedAttempt { asked: Some(SECOND), ..failed(1, SECOND) };
        assert_eq!(retry.decide(asked, 0.5), RetryDecision::After(SECOND));
        let endless = FailedAttempt { asked: Some(Duration::MAX), ..failed(1, SECOND) };
        assert_eq!(Retry::fixed(SECOND).decide(endless, 0.5), RetryDecision::After(Retry::LONGEST));
    }

    #[test]
    fn a_policy_that_cannot_be_followed_is_refused() {
        assert!(Retry::schedule([]).check().is_err());
        assert!(Retry::exponential().factor(0.5).check().is_err());
        assert!(Retry::exponential().jitter(2.0).check().is_err());
        assert!(Retry::fixed(SECOND).max_attempts(0).check().is_err());
        assert!(Retry::default().check().is_ok());
    }
}
