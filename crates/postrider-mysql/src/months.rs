//! The archive by months: partitions that are made ahead and dropped as a whole.
//!
//! It is the table that says whether it is partitioned, not the setting: that only asks for it. The changes themselves are
//! procedures (`0003_retention.sql`), which say who waits for them.

use std::time::Duration;

use postrider_core::{Check, Error, ErrorKind, OffsetDateTime, Result, month_of};
use postrider_sql::clock::{micros, time_of};
use postrider_sql::{Columns, statement};
use sqlx_mysql::MySqlConnection;

use crate::store::MySqlStore;

const OP: &str = "archive";
/// What brings the begin of a month into the next.
const A_MONTH: Duration = Duration::from_secs(32 * 86_400);

/// How the archive is partitioned.
struct Months {
    partitions: i64,
    /// Whether by something else than the time of recording.
    strange: bool,
    /// Whether something later than all months has a place.
    open: bool,
    /// When the last month ends.
    upto: Option<i64>,
    /// Whether there is something in it.
    events: bool,
}

impl Months {
    async fn look(store: &MySqlStore, conn: &mut MySqlConnection) -> Result<Self> {
        let row = store.sql.query(statement!("months.sql")).fetch_one(conn, OP).await?;
        Ok(Self {
            partitions: row.number("partitions", OP)?,
            strange: row.flag("strange", OP)?,
            open: row.flag("open", OP)?,
            upto: row.maybe_number("upto", OP)?,
            events: row.flag("events", OP)?,
        })
    }

    /// Refuses an archive that can't be partitioned just so.
    fn check(&self) -> Result<()> {
        let message = if self.strange {
            "the archive is partitioned by another column than recorded_at; leave by_month out, or remove the partitions"
        } else if self.partitions == 0 && self.events {
            "the archive has events and is not partitioned yet; run `call postrider_archive_months(null)` on the database \
             once, at a time when it may be copied, or leave by_month out"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Invalid, OP, message))
    }

    /// Whether the month of a time and the one after it are there.
    fn are_there(&self, at: i64) -> bool {
        let next = month_of(month_of(time_of(at)) + A_MONTH);
        self.upto.is_some_and(|upto| upto >= micros(month_of(next + A_MONTH)))
    }
}

/// Whether the archive is partitioned by month, or can be.
pub(crate) async fn check(store: &MySqlStore) -> Result<()> {
    Months::look(store, &mut *store.conn(OP).await?).await?.check()
}

/// Sees to it that the archive is partitioned, and has this month and the next.
pub(crate) async fn make(store: &MySqlStore) -> Result<()> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let months = Months::look(store, &mut conn).await?;
    months.check()?;
    if months.are_there(now) {
        return Ok(());
    }
    let make = store.sql.query(statement!("months_make.sql")).bind(now);
    match make.execute(&mut conn, OP).await {
        // Somebody reads the archive. What has no month yet has a place all the same, until the next round.
        Err(error) if error.kind() == ErrorKind::Conflict && months.open => Ok(()),
        made => made.map(|_| ()),
    }
}

/// Drops the first month if it ended by a time, and says how many events it had; nothing if it did not.
pub(crate) async fn drop_first(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    before: i64,
) -> Result<Option<u64>> {
    let row = store.sql.query(statement!("months_drop.sql")).bind(before).fetch_one(conn, OP).await?;
    Ok(row.maybe_number("taken", OP)?.map(i64::unsigned_abs))
}

/// What is to be said of it.
pub(crate) async fn doctor(store: &MySqlStore, conn: &mut MySqlConnection) -> Result<Check> {
    const NAME: &str = "archive";
    let months = Months::look(store, conn).await?;
    Ok(match months.upto {
        _ if months.partitions == 0 => {
            Check::good(NAME, "it is not partitioned: old months are deleted in batches")
        }
        _ if months.strange => Check::warn(
            NAME,
            "it is partitioned by another column than recorded_at: old months are deleted in batches",
            "remove its partitions and set retention.by_month, or leave it as it is",
        ),
        _ if !months.open => Check::bad(
            NAME,
            "it has no partition for later months: their events could not be archived",
            "alter table postrider_archive add partition (partition later values less than (maxvalue))",
        ),
        Some(upto) => Check::good(NAME, format!("it has months up to {}", last_day(time_of(upto)))),
        None => Check::good(NAME, "it is partitioned, and has no months yet"),
    })
}

/// The last day before a time.
fn last_day(time: OffsetDateTime) -> time::Date {
    (time - Duration::from_secs(1)).date()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn this_month_and_the_next_are_wanted() {
        let months = |upto| Months { partitions: 2, strange: false, open: true, upto, events: true };
        let until = |time| months(Some(micros(time)));
        let december = micros(datetime!(2026-12-31 23:59:59.999999 UTC));
        assert!(until(datetime!(2027-02-01 00:00 UTC)).are_there(december));
        assert!(!until(datetime!(2027-01-01 00:00 UTC)).are_there(december));
        assert!(!until(datetime!(2027-02-01 00:00 UTC)).are_there(december + 1));
        assert!(!months(None).are_there(december));
    }
}
