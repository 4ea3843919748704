//! Times as the tables keep them: microseconds since 1970, and those of events as dates in UTC.

use std::time::Duration;

use postrider_core::{Clock, Result};
use sqlx_mysql::MySqlConnection;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

use crate::row::number;
use crate::sql::{Sql, statement};

/// A hundred years: no lease and no retry is longer.
const LONGEST: i64 = 100 * 366 * 24 * 3_600 * 1_000_000;

/// A time as the tables keep it.
pub(crate) fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000)).unwrap_or(i64::MAX)
}

/// A time from the tables; one that no calendar has is the nearest that it has.
pub(crate) fn time_of(micros: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).unwrap_or(if micros < 0 {
        PrimitiveDateTime::MIN.assume_utc()
    } else {
        PrimitiveDateTime::MAX.assume_utc()
    })
}

/// A time as the log keeps it.
pub(crate) fn date(time: OffsetDateTime) -> PrimitiveDateTime {
    let time = time.to_offset(UtcOffset::UTC);
    PrimitiveDateTime::new(time.date(), time.time())
}

/// A duration as the tables keep it.
pub(crate) fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// What a statement is given as the time: nothing means that the database's own clock answers.
pub(crate) fn given(clock: &Clock) -> Option<i64> {
    clock.now().map(micros)
}

/// The time, by the manual clock or the database's.
pub(crate) async fn now(
    clock: &Clock,
    sql: Sql,
    conn: &mut MySqlConnection,
    op: &'static str,
) -> Result<i64> {
    if let Some(now) = given(clock) {
        return Ok(now);
    }
    number(&sql.query(statement!("now.sql")).fetch_one(conn, op).await?, "now", op)
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
