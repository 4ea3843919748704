//! When failed events are tried again: `retry` of a subscription.

use std::time::Duration;

use postrider::Retry;

use super::subscription::{at_least_one, some_time};
use super::{Problem, Section, duration};

/// When a failed event is tried again, and when it is dead.
#[derive(Debug, Clone)]
pub(crate) struct RetrySection {
    /// How long until the next attempt.
    pub(crate) pauses: Pauses,
    /// After how many attempts it is dead.
    pub(crate) max_attempts: Option<u32>,
    /// How long after its first failure it is dead.
    pub(crate) max_age: Option<Duration>,
}

/// How long until the next attempt.
#[derive(Debug, Clone)]
pub(crate) enum Pauses {
    /// `every`.
    Every(Duration),
    /// `schedule`.
    Schedule(Vec<Duration>),
    /// `base`, `factor`, `max` and `jitter`.
    Exponential { base: Duration, factor: f64, max: Duration, jitter: f64 },
}

impl RetrySection {
    const USUAL: Pauses = Pauses::Exponential {
        base: Retry::BASE,
        factor: Retry::FACTOR,
        max: Retry::MAX,
        jitter: Retry::JITTER,
    };

    /// Reads it from the table of a subscription.
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, Problem> {
        let Some(mut table) = section.section("retry")? else {
            return Ok(Self { pauses: Self::USUAL, max_attempts: Some(Retry::ATTEMPTS), max_age: None });
        };
        let pauses = pauses(&mut table)?;
        let max_attempts = at_least_one(&mut table, "max_attempts")?;
        let max_age = some_time(&mut table, "max_age")?;
        // The same as the library: without both there would be no end.
        let max_attempts = max_attempts.or(max_age.is_none().then_some(Retry::ATTEMPTS));
        let read = Self { pauses, max_attempts, max_age };
        read.retry().check().map_err(|error| table.own_problem(error.message()))?;
        table.finish()?;
        Ok(read)
    }

    /// As the library has it.
    pub(crate) fn retry(&self) -> Retry {
        let mut retry = match &self.pauses {
            Pauses::Every(every) => Retry::fixed(*every),
            Pauses::Schedule(pauses) => Retry::schedule(pauses.iter().copied()),
            Pauses::Exponential { base, factor, max, jitter } => {
                Retry::exponential().base(*base).factor(*factor).max(*max).jitter(*jitter)
            }
        };
        if let Some(attempts) = self.max_attempts {
            retry = retry.max_attempts(attempts);
        }
        match self.max_age {
            Some(age) => retry.max_age(age),
            None => retry,
        }
    }
}

fn pauses(table: &mut Section<'_>) -> Result<Pauses, Problem> {
    let every = some_time(table, "every")?;
    let schedule = table.list("schedule")?;
    let (base, max) = (some_time(table, "base")?, some_time(table, "max")?);
    let factor: Option<f64> = table.parsed("factor", "a number")?;
    let jitter: Option<f64> = table.parsed("jitter", "a number from 0 to 1")?;
    let exponential = base.is_some() || max.is_some() || factor.is_some() || jitter.is_some();
    match (every, schedule) {
        (Some(_), Some(_)) => Err(table.own_problem("every and schedule can't be used together")),
        (Some(_), None) | (None, Some(_)) if exponential => {
            Err(table
                .own_problem("base, factor, max and jitter can't be used together with every or schedule"))
        }
        (Some(every), None) => Ok(Pauses::Every(every)),
        (None, Some(texts)) => {
            let pause = |text: &String| {
                let wrong =
                    || table.problem("schedule", format!("{text:?} is not a duration such as \"5m\""));
                duration::parse(text).ok_or_else(wrong)
            };
            texts.iter().map(pause).collect::<Result<_, _>>().map(Pauses::Schedule)
        }
        (None, None) => Ok(Pauses::Exponential {
            base: base.unwrap_or(Retry::BASE),
            factor: factor.unwrap_or(Retry::FACTOR),
            max: max.unwrap_or(Retry::MAX),
            jitter: jitter.unwrap_or(Retry::JITTER),
        }),
    }
}
