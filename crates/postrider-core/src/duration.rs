//! Durations as people write them: `500ms`, `5m`, `1h30m`, `7d`. It is the grammar of Postrider's settings file.
//!
//! In a settings file of your own:
//!
//! ```
//! # extern crate postrider_core as postrider;
//! use std::time::Duration;
//!
//! #[derive(serde::Deserialize)]
//! struct Settings {
//!     #[serde(deserialize_with = "postrider::duration::deserialize")]
//!     poll_interval: Duration,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings: Settings = serde_json::from_str(r#"{ "poll_interval": "1m30s" }"#)?;
//! assert_eq!(settings.poll_interval, Duration::from_secs(90));
//! assert_eq!(postrider::duration::show(settings.poll_interval), "1m30s");
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::{Error, ErrorKind, Result};

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A year, of 365 days: it is read and never written, because it is not always as long.
const YEAR: (&str, u64) = ("y", 365 * 86_400_000);

/// Reads a duration: whole numbers, each with one of the units `ms`, `s`, `m`, `h`, `d` and `y` (365 days), from large to small, each unit
/// once.
pub fn parse(text: &str) -> Result<Duration> {
    read(text).ok_or_else(|| {
        let message =
            format!("{text:?} is not a duration; write it as \"500ms\", \"2s\", \"5m\", \"1h30m\" or \"7d\"");
        Error::new(ErrorKind::Invalid, "duration", message)
    })
}

fn read(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let (mut total, mut last) = (0_u64, u64::MAX);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let end = unit.find(|letter: char| letter.is_ascii_digit()).unwrap_or(unit.len());
        let (_, millis) = UNITS.iter().chain([&YEAR]).find(|(name, _)| *name == unit[..end].trim())?;
        // From large to small, each once.
        if *millis >= last {
            return None;
        }
        last = *millis;
        total = total.checked_add(number.checked_mul(*millis)?)?;
        rest = &unit[end..];
    }
    Some(Duration::from_millis(total))
}

/// Writes a duration in the form that [`parse`] reads. Fractions of a millisecond are dropped.
pub fn show(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, millis) in UNITS.iter().rev() {
        let count = left / millis;
        left %= millis;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    text
}

/// For `#[serde(deserialize_with = "postrider::duration::deserialize")]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&Cow::<str>::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them_and_written_the_same_way() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
            ("90s", 90_000),
            ("5y", 157_680_000_000),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(text).expect(text), duration, "{text}");
            assert_eq!(parse(&show(duration)).expect(text), duration);
        }
        for text in ["", "5", "m", "5 minutes", "-1s", "1m1h", "1s1s", "1.5s", "99999999999999999999s"] {
            let error = parse(text).expect_err(text);
            assert!(error.message().starts_with(&format!("{text:?} is not a duration")), "{error}");
        }
    }
}
