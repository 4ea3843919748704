//! When failed events are tried again: `retry` of a subscription. What its parts mean together is the library's.

use postrider::{Retry, RetrySettings};

use super::subscription::{at_least_one, some_time};
use super::{Problem, Section, duration};

/// Reads it from the table of a subscription.
pub(super) fn read(section: &mut Section<'_>) -> Result<Retry, Problem> {
    let Some(mut table) = section.section("retry")? else { return Ok(Retry::exponential()) };
    let settings = RetrySettings {
        every: some_time(&mut table, "every")?,
        schedule: schedule(&mut table)?,
        base: some_time(&mut table, "base")?,
        factor: table.parsed("factor", "a number")?,
        max: some_time(&mut table, "max")?,
        jitter: table.parsed("jitter", "a number from 0 to 1")?,
        max_attempts: at_least_one(&mut table, "max_attempts")?,
        max_age: some_time(&mut table, "max_age")?,
    };
    let retry = settings.retry().map_err(|error| table.own_problem(error.message()))?;
    table.finish()?;
    Ok(retry)
}

fn schedule(table: &mut Section<'_>) -> Result<Option<Vec<std::time::Duration>>, Problem> {
    let Some(texts) = table.list("schedule")? else { return Ok(None) };
    let pause = |text: &String| {
        let wrong = || table.problem("schedule", format!("{text:?} is not a duration such as \"5m\""));
        duration::parse(text).ok_or_else(wrong)
    };
    texts.iter().map(pause).collect::<Result<_, _>>().map(Some)
}
