//! The settings of the worker: how it delivers.

use std::path::Path;
use std::time::Duration;

use postrider::Retry;
use serde::Deserialize;

use crate::contracts::Answer;

/// The file that lies beside the source.
const USUAL: &str = include_str!("../../worker.toml");

/// How the worker delivers.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// How often the log is read when no bell rings.
    pub poll_interval: Duration,
    /// Whether whoever records an event wakes the worker.
    pub bell: bool,
    /// How many events one read returns.
    pub batch: u32,
    /// How many handlers of a subscription run at a time.
    pub concurrency: usize,
    /// When a failed event is tried again.
    pub retry: Retry,
}

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    poll_interval: String,
    bell: bool,
    batch: u32,
    concurrency: usize,
    retry: WrittenRetry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRetry {
    schedule: Vec<String>,
    max_attempts: u32,
}

impl Delivery {
    /// The settings of a file; without one, those that are built in.
    pub fn read(file: Option<&Path>) -> Answer<Self> {
        let Some(file) = file else { return Self::parse(USUAL) };
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        Ok(Self::parse(&text).map_err(|fault| wrong(&fault))?)
    }

    /// The settings of a text.
    pub fn parse(text: &str) -> Answer<Self> {
        let Written { poll_interval, bell, batch, concurrency, retry } = toml::from_str(text)?;
        let pauses = retry.schedule.iter().map(|pause| duration(pause)).collect::<Answer<Vec<_>>>()?;
        let retry = Retry::schedule(pauses).jitter(0.0).max_attempts(retry.max_attempts);
        retry.check()?;
        if batch == 0 || concurrency == 0 {
            return Err("batch and concurrency must be 1 or more".into());
        }
        Ok(Self { poll_interval: duration(&poll_interval)?, bell, batch, concurrency, retry })
    }
}

/// Reads `2s`, `15m` or `1h`.
fn duration(text: &str) -> Answer<Duration> {
    let split = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok().filter(|number| *number > 0);
    let duration = number.zip(seconds).and_then(|(number, seconds)| number.checked_mul(seconds));
    let duration = duration.ok_or_else(|| format!("{text:?} must be a duration such as \"15m\""))?;
    Ok(Duration::from_secs(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_refused() {
        assert!(Delivery::parse(USUAL).is_ok());
        for (right, wrong) in [
            ("\"2s\"", "\"2\""),
            ("\"2s\"", "\"0s\""),
            ("\"15m\"", "\"a while\""),
            ("bell = true", "bell = 1"),
            ("batch = 50", "batch = 0"),
            ("batch", "bacth"),
            ("max_attempts", "attempts"),
        ] {
            assert!(
                USUAL.contains(right) && Delivery::parse(&USUAL.replace(right, wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
