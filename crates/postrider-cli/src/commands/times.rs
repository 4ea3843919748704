//! Times on the command line.

use std::time::Duration;

use clap::Args;
use postrider::OffsetDateTime;
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, UtcOffset};

use crate::config::duration;

/// The flags for a span of time.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Span {
    /// Only within this time, as in 90s, 15m, 1h30m or 7d
    #[arg(long, value_name = "AGO", value_parser = since, allow_hyphen_values = true, conflicts_with = "from")]
    since: Option<Duration>,
    /// Only from this time on, as in 2026-01-31T08:00:00Z or 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<OffsetDateTime>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<OffsetDateTime>,
}

impl Span {
    /// Where it begins.
    pub(crate) fn from(&self) -> Option<OffsetDateTime> {
        self.from.or_else(|| self.since.map(|since| OffsetDateTime::now_utc() - since))
    }

    /// Where it ends.
    pub(crate) fn until(&self) -> Option<OffsetDateTime> {
        self.until
    }

    /// Whether it restricts anything.
    pub(crate) fn is_set(&self) -> bool {
        self.since.is_some() || self.from.is_some() || self.until.is_some()
    }
}

/// Reads a span of time.
pub(crate) fn ago(text: &str) -> Result<Duration, String> {
    // A century: further back than any log.
    const MOST: Duration = Duration::from_secs(100 * 366 * 86_400);
    duration::parse(text)
        .filter(|span| *span <= MOST)
        .ok_or_else(|| "expected a duration, as in 90s, 15m, 1h30m or 7d".to_owned())
}

/// The same for a begin, which may be written as what lies behind: `-5m`.
pub(crate) fn since(text: &str) -> Result<Duration, String> {
    ago(text.strip_prefix('-').unwrap_or(text))
}

/// Reads a time, or a day.
pub(crate) fn time(text: &str) -> Result<OffsetDateTime, String> {
    let parsed = OffsetDateTime::parse(text, &Rfc3339).map(|time| time.to_offset(UtcOffset::UTC));
    let day = || Date::parse(text, &Iso8601::DATE).map(|day| day.midnight().assume_utc());
    parsed
        .or_else(|_| day())
        .map_err(|_| "expected a time such as 2026-01-31T08:00:00Z, or a day such as 2026-01-31".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rfc_3339_or_a_day() {
        let day = time("2026-01-31").expect("a day");
        assert_eq!(time("2026-01-31T02:00:00+02:00"), Ok(day));
        for wrong in ["", "yesterday", "2026-13-01", "2026-01-31 08:00", "31.1.2026"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(ago("99999999999d").is_err() && ago("1h").is_ok());
        assert_eq!(since("-5m"), since("5m"));
        assert!(since("--5m").is_err() && since("-").is_err() && ago("-5m").is_err());
    }
}
