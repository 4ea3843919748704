//! Times as the log keeps them: to the microsecond, as databases do.

use std::time::Duration;

use time::{OffsetDateTime, PrimitiveDateTime};

/// A time without what a database would drop of it.
pub(crate) fn to_micros(time: OffsetDateTime) -> OffsetDateTime {
    let nanos = time.unix_timestamp_nanos().div_euclid(1_000) * 1_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(time)
}

/// A time that much later, or the last one that the calendar has.
pub(crate) fn later(time: OffsetDateTime, by: Duration) -> OffsetDateTime {
    let later = time::Duration::try_from(by).ok().and_then(|by| time.checked_add(by));
    later.map_or_else(|| PrimitiveDateTime::MAX.assume_utc(), to_micros)
}

/// A time that much earlier, or the first one that the calendar has.
pub(crate) fn earlier(time: OffsetDateTime, by: Duration) -> OffsetDateTime {
    let earlier = time::Duration::try_from(by).ok().and_then(|by| time.checked_sub(by));
    earlier.map_or_else(|| PrimitiveDateTime::MIN.assume_utc(), to_micros)
}

/// How long it is from one time to another; nothing if that has passed.
pub(crate) fn until(from: OffsetDateTime, to: OffsetDateTime) -> Duration {
    Duration::try_from(to - from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_to_the_microsecond_before_1970_too() {
        for (nanos, kept) in [(1_999, 1_000), (0, 0), (-1, -1_000)] {
            let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).expect("in range");
            assert_eq!(to_micros(time).unix_timestamp_nanos(), kept);
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_its_end() {
        assert_eq!(later(OffsetDateTime::UNIX_EPOCH, Duration::MAX).year(), 9999);
        assert_eq!(earlier(OffsetDateTime::UNIX_EPOCH, Duration::MAX).year(), -9999);
        assert_eq!(until(OffsetDateTime::UNIX_EPOCH, PrimitiveDateTime::MIN.assume_utc()), Duration::ZERO);
    }
}
