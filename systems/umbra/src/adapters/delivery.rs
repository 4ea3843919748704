//! The settings of the worker: how it delivers.

use std::path::Path;
use std::time::Duration;

use postrider::Retry;
use serde::Deserialize;

use crate::contracts::Answer;

/// The file that lies beside the source.
const USUAL: &str = include_str!("../../worker.toml");

/// How the worker delivers. Durations and the retry are written as in Postrider's own settings file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// How often the log is read when no bell rings.
    #[serde(deserialize_with = "postrider::duration::deserialize")]
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
        let delivery: Self = toml::from_str(text)?;
        if delivery.batch == 0 || delivery.concurrency == 0 || delivery.poll_interval.is_zero() {
            return Err("batch, concurrency and poll_interval must be greater than 0".into());
        }
        Ok(delivery)
    }
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
            ("max_attempts = 10", "max_attempts = 0"),
        ] {
            assert!(
                USUAL.contains(right) && Delivery::parse(&USUAL.replace(right, wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
