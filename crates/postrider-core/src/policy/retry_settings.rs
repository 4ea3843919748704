//! The settings of a retry policy, as a settings file or one line of text has them.

use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::retry::{Pause, Retry};
use crate::{Error, ErrorKind, Result, duration, nearest};

/// The settings of a [`Retry`]: the table `retry` of Postrider's settings file. A setting that is `None` has the default of
/// [`Retry::exponential`].
///
/// `every` and `schedule` can't be used together, nor with `base`, `factor`, `max` and `jitter`, which are of exponential backoff.
///
/// ```
/// use std::time::Duration;
/// use postrider_core::{Retry, RetrySettings};
///
/// let settings = RetrySettings { base: Some(Duration::from_secs(2)), max_attempts: Some(5), ..RetrySettings::default() };
/// assert_eq!(settings.retry()?, Retry::exponential().base(Duration::from_secs(2)).max_attempts(5));
///
/// let conflict = RetrySettings { every: Some(Duration::from_secs(10)), factor: Some(3.0), ..RetrySettings::default() };
/// assert!(conflict.retry().is_err());
/// # Ok::<(), postrider_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetrySettings {
    /// A fixed pause between attempts.
    pub every: Option<Duration>,
    /// Pauses between attempts, one after the other; the last one repeats.
    pub schedule: Option<Vec<Duration>>,
    /// The first pause of exponential backoff.
    pub base: Option<Duration>,
    /// The factor by which each pause grows.
    pub factor: Option<f64>,
    /// The longest pause.
    pub max: Option<Duration>,
    /// The fraction by which a pause is randomly shortened or extended: 0 to 1.
    pub jitter: Option<f64>,
    /// The event is dead after this many failed attempts.
    pub max_attempts: Option<u32>,
    /// The event is dead if an attempt fails this long after its first failure.
    pub max_age: Option<Duration>,
}

const NAMES: [&str; 8] = ["every", "schedule", "base", "factor", "max", "jitter", "max_attempts", "max_age"];

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, "retry", message)
}

impl RetrySettings {
    /// The policy; an error if settings conflict or are out of range.
    pub fn retry(self) -> Result<Retry> {
        let exponential =
            self.base.is_some() || self.max.is_some() || self.factor.is_some() || self.jitter.is_some();
        let mut retry = match (self.every, self.schedule) {
            (Some(_), Some(_)) => return Err(invalid("every and schedule can't be used together")),
            (Some(_), None) | (None, Some(_)) if exponential => {
                let message = "base, factor, max and jitter can't be used together with every or schedule";
                return Err(invalid(message));
            }
            (Some(every), None) => Retry::fixed(every),
            (None, Some(pauses)) => Retry::schedule(pauses),
            (None, None) => Retry::exponential()
                .base(self.base.unwrap_or(Retry::BASE))
                .factor(self.factor.unwrap_or(Retry::FACTOR))
                .max(self.max.unwrap_or(Retry::MAX))
                .jitter(self.jitter.unwrap_or(Retry::JITTER)),
        };
        if let Some(attempts) = self.max_attempts {
            retry = retry.max_attempts(attempts);
        }
        if let Some(age) = self.max_age {
            retry = retry.max_age(age);
        }
        retry.check()?;
        Ok(retry)
    }
}

/// All that counts, defaults included.
impl From<&Retry> for RetrySettings {
    fn from(retry: &Retry) -> Self {
        let mut settings =
            Self { max_attempts: retry.attempts(None), max_age: retry.age(), ..Self::default() };
        match &retry.pause {
            Pause::Fixed(every) => settings.every = Some(*every),
            Pause::Schedule(pauses) => settings.schedule = Some(pauses.clone()),
            Pause::Exponential { base, factor, max, jitter } => {
                (settings.base, settings.max) = (Some(*base), Some(*max));
                (settings.factor, settings.jitter) = (Some(*factor), Some(*jitter));
            }
        }
        settings
    }
}

/// As the table `retry` of Postrider's settings file is written: `{ schedule = ["1m", "5m"], max_attempts = 10 }`. Durations are
/// text such as `5m`; what is not known is refused.
impl<'de> Deserialize<'de> for Retry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let one = |written: Option<Text>| written.map(|Text(duration)| duration);
        let settings = RetrySettings {
            every: one(written.every),
            schedule: written.schedule.map(|pauses| pauses.into_iter().map(|Text(pause)| pause).collect()),
            base: one(written.base),
            factor: written.factor,
            max: one(written.max),
            jitter: written.jitter,
            max_attempts: written.max_attempts,
            max_age: one(written.max_age),
        };
        settings.retry().map_err(|error| D::Error::custom(error.message()))
    }
}

#[derive(Deserialize)]
struct Text(#[serde(deserialize_with = "duration::deserialize")] Duration);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    every: Option<Text>,
    schedule: Option<Vec<Text>>,
    base: Option<Text>,
    factor: Option<f64>,
    max: Option<Text>,
    jitter: Option<f64>,
    max_attempts: Option<u32>,
    max_age: Option<Text>,
}

/// In one line, as for a variable of the environment: `base=500ms, max=1m, max_attempts=6` or `schedule=1m 5m 15m, max_age=1d`. The names
/// are those of the settings file; an empty text is the default.
impl FromStr for Retry {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut settings = RetrySettings::default();
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=').map(|(name, value)| (name.trim(), value.trim()))
            else {
                return Err(invalid(format!("{part:?} must have a name, as in max_attempts=10")));
            };
            if seen.contains(&name) {
                return Err(invalid(format!("{name} must be given only once")));
            }
            seen.push(name);
            settings.set(name, value)?;
        }
        settings.retry()
    }
}

impl RetrySettings {
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let time = || duration::parse(value).map(Some);
        let number = || {
            value.parse().map(Some).map_err(|_| invalid(format!("{name} must be a number, not {value:?}")))
        };
        match name {
            "every" => self.every = time()?,
            "schedule" => {
                let pauses = value.split_whitespace().map(duration::parse);
                self.schedule = Some(pauses.collect::<Result<_>>()?);
            }
            "base" => self.base = time()?,
            "max" => self.max = time()?,
            "max_age" => self.max_age = time()?,
            "factor" => self.factor = number()?,
            "jitter" => self.jitter = number()?,
            "max_attempts" => {
                let whole = value
                    .parse()
                    .map_err(|_| invalid(format!("{name} must be a whole number, not {value:?}")));
                self.max_attempts = Some(whole?);
            }
            other => {
                let what = match nearest(other, NAMES) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("the known ones are {}", NAMES.join(", ")),
                };
                return Err(invalid(format!("a retry has no {other:?}; {what}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn json(text: &str) -> Result<Retry, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_is_read_from_a_table_and_from_a_line() {
        let schedule = Retry::schedule([MINUTE, 5 * MINUTE]).max_attempts(10);
        assert_eq!(json(r#"{"schedule": ["1m", "5m"], "max_attempts": 10}"#).expect("read"), schedule);
        assert_eq!("schedule=1m 5m, max_attempts=10".parse::<Retry>().expect("read"), schedule);
        let usual = Retry::exponential();
        assert_eq!((json("{}").expect("read"), "".parse::<Retry>().expect("read")), (usual.clone(), usual));
        let half = Retry::exponential().base(Duration::from_millis(500)).max(MINUTE).jitter(0.0);
        assert_eq!(json(r#"{"base": "500ms", "max": "1m", "jitter": 0}"#).expect("read"), half);
        assert_eq!("base=500ms,max = 1m, jitter=0".parse::<Retry>().expect("read"), half);
        let aged = Retry::fixed(MINUTE).max_age(24 * 60 * MINUTE);
        assert_eq!("every=1m,max_age=1d".parse::<Retry>().expect("read"), aged);
        for retry in [schedule, half, aged] {
            let again = RetrySettings::from(&retry).retry().expect("read");
            assert_eq!(RetrySettings::from(&again), RetrySettings::from(&retry), "{retry}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (table, line, what) in [
            (r#"{"every": "5"}"#, "every=5", "\"5\" is not a duration"),
            (r#"{"every": "5s", "schedule": ["1s"]}"#, "every=5s,schedule=1s", "every and schedule can't"),
            (r#"{"every": "5s", "max": "1s"}"#, "every=5s,max=1s", "base, factor, max and jitter can't"),
            (r#"{"schedule": []}"#, "schedule=", "must have at least one pause"),
            (r#"{"max_attempts": 0}"#, "max_attempts=0", "max_attempts must be at least 1"),
            (r#"{"max_attemps": 3}"#, "max_attemps=3", "max_attempts"),
            (r#"{"factor": 0.5}"#, "factor=0.5", "must be at least 1"),
        ] {
            let of_table = json(table).expect_err(table);
            assert!(of_table.contains(what), "{of_table}");
            let of_line = line.parse::<Retry>().expect_err(line);
            assert!(of_line.message().contains(what), "{of_line}");
        }
        for (line, what) in [
            ("5s", "must have a name"),
            ("jitter=much", "jitter must be a number"),
            ("max_attempts=1.5", "must be a whole number"),
            ("every=1s, every=2s", "every must be given only once"),
        ] {
            let error = line.parse::<Retry>().expect_err(line);
            assert!(error.message().contains(what), "{error}");
        }
    }
}
