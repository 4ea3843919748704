//! Times as the tables keep them: microseconds since 1970.

use std::time::Duration;

use postrider_core::{Clock, month_of};
use time::{OffsetDateTime, PrimitiveDateTime};

/// A hundred years: no lease and no retry is longer.
const LONGEST: i64 = 100 * 366 * 24 * 3_600 * 1_000_000;

/// A time as the tables keep it.
pub fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000)).unwrap_or(i64::MAX)
}

/// A time from the tables; one that no calendar has is the nearest that it has.
pub fn time_of(micros: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).unwrap_or(if micros < 0 {
        PrimitiveDateTime::MIN.assume_utc()
    } else {
        PrimitiveDateTime::MAX.assume_utc()
    })
}

/// A duration as the tables keep it.
pub fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// What a statement is given as the time: nothing means that the database's own clock answers.
pub fn given(clock: &Clock) -> Option<i64> {
    clock.now().map(micros)
}

/// When the month of a time began.
pub fn month(time: i64) -> i64 {
    micros(month_of(time_of(time)))
}

/// The time from one to another, in seconds.
pub fn seconds_between(earlier: i64, later: i64) -> f64 {
    (later - earlier) as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_to_the_microsecond_before_1970_too() {
        for nanos in [1_700_000_000_123_456_000_i128, 0, -1_000, -1_700_000_000_123_456_000] {
            let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).expect("in range");
            assert_eq!(time_of(micros(time)), time);
        }
        assert_eq!(time_of(i64::MAX).year(), 9999);
    }
}
