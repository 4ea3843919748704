//! What an answer means.

use std::time::Duration;

use postrider_core::{DeliveryFailure, OffsetDateTime, Outcome};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE: &[BorrowedFormatItem<'static>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");
/// A server that asks for more patience than this is asked again after it.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What a status means for the event.
pub(crate) fn outcome(status: u16, retry_after: Option<&str>, now: OffsetDateTime) -> Outcome {
    let failure = DeliveryFailure::new(format!("http_{status}"), format!("the endpoint answered {status}"));
    match status {
        200..=299 => Outcome::Delivered,
        408 | 425 | 429 | 500..=599 => {
            Outcome::Retry { after: retry_after.and_then(|value| pause(value, now)), failure }
        }
        300..=399 => Outcome::reject(DeliveryFailure::new(
            failure.code,
            format!(
                "the endpoint answered {status}, a redirect, and those are not followed: set its final address"
            ),
        )),
        _ => Outcome::Reject { failure },
    }
}

/// `Retry-After`: seconds, or a date.
fn pause(value: &str, now: OffsetDateTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let date = time::PrimitiveDateTime::parse(value, DATE).ok()?.assume_utc();
    Some(Duration::try_from(date - now).unwrap_or_default().min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_means_one_thing() {
        let now = OffsetDateTime::UNIX_EPOCH;
        for status in [200, 201, 202, 204] {
            assert_eq!(outcome(status, None, now), Outcome::Delivered, "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(matches!(outcome(status, None, now), Outcome::Retry { after: None, .. }), "{status}");
        }
        for status in [301, 302, 307, 308, 400, 401, 403, 404, 409, 410, 413, 422] {
            assert!(matches!(outcome(status, None, now), Outcome::Reject { .. }), "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = time::macros::datetime!(1994-11-06 08:49:07 UTC);
        let after = |value| match outcome(429, Some(value), now) {
            Outcome::Retry { after, .. } => after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after("120"), Some(Duration::from_secs(120)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO), "it is over");
        assert_eq!(after("soon"), None);
        assert_eq!(after("99999999999"), Some(LONGEST));
    }
}
