//! The maintenance of the numbering, in the background: it deletes arrivals that have their numbers, forgets gaps that will not be
//! filled, and from time to time searches everywhere for events without a number.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::Result;
use postrider_sql::{Columns, statement};
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::{failed, is_in_the_way};
use crate::number::{Done, MOST, Rounds};
use crate::sql::{Sql, call};

/// How many arrivals may have a number before they are deleted.
const CLEAR_EVERY: i64 = 10_000;
/// How often gaps that will not be filled are forgotten, and arrivals deleted even if they are few.
const EVERY: Duration = Duration::from_secs(5);
/// How long one run may take: one that is not answered must not be the last.
const LONGEST: Duration = Duration::from_secs(120);
/// How often it searches everywhere, and not only where events are expected.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// How old a gap must be to be forgotten. A row is written microseconds after its id was taken, so a row that is still missing will
/// not come. If it does, the search everywhere finds it.
const HOLE_AGE: Duration = Duration::from_secs(10);

const OP: &str = "number";

/// When this process last did the maintenance, and whether it is doing it now.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    at_it: AtomicBool,
    last: Mutex<Option<Instant>>,
    whole: Mutex<Option<Instant>>,
    /// Up to which number arrivals were cleared away, as far as this process knows.
    cleared: AtomicI64,
}

impl Rounds {
    /// Starts the maintenance that is due, in the background. While numbering is `behind`, a large number of arrivals is no reason.
    pub(crate) fn tend(self: &Arc<Self>, sql: Sql, seq: i64, behind: bool) {
        let kept = seq - self.maintenance.cleared.load(Ordering::Relaxed);
        let due = (kept >= CLEAR_EVERY && !behind) || is_time(&self.maintenance.last, EVERY);
        if !due || self.maintenance.at_it.swap(true, Ordering::AcqRel) {
            return;
        }
        let done = Done(Arc::clone(self), |rounds| &rounds.maintenance.at_it);
        tokio::spawn(async move {
            // The next one tries again; a database that is away is said by those who need it.
            match tokio::time::timeout(LONGEST, done.0.maintain(sql, seq)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(error = %error, "cleanup of postrider_arrival failed"),
                Err(_) => tracing::debug!("cleanup of postrider_arrival timed out"),
            }
        });
    }

    /// Runs up to the number `seq`, so that it ends although others give new numbers.
    async fn maintain(&self, sql: Sql, seq: i64) -> Result<()> {
        let mut conn = self.pools.conn(OP).await?;
        forget_holes(sql, &mut conn).await?;
        let mut before = None;
        loop {
            match self.clear(sql, &mut conn).await? {
                None => return Ok(()),
                // A database that was set back never gets as far as it was.
                cleared if cleared == before => break,
                Some(cleared) if cleared < seq => before = Some(cleared),
                Some(_) => break,
            }
        }
        if is_time(&self.maintenance.whole, WHOLE_EVERY) {
            let whole = sql.query(statement!("number.sql")).bind(MOST).bind(true);
            match call(whole, &mut conn, OP).await {
                Err(error) if !is_in_the_way(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes some arrivals. Returns the number up to which that is done, or `None` if another process is doing it.
    async fn clear(&self, sql: Sql, conn: &mut MySqlConnection) -> Result<Option<i64>> {
        let cleared = match call(sql.query(statement!("clear.sql")), conn, OP).await {
            Ok(row) => row.maybe_number("cleared", OP)?,
            Err(error) if is_in_the_way(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(cleared) = cleared {
            self.maintenance.cleared.store(cleared, Ordering::Relaxed);
        }
        Ok(cleared)
    }
}

fn is_time(last: &Mutex<Option<Instant>>, every: Duration) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < every) {
        return false;
    }
    *last = Some(Instant::now());
    true
}

async fn forget_holes(sql: Sql, conn: &mut MySqlConnection) -> Result<()> {
    // For the next statement only.
    let dirty = query("set transaction isolation level read uncommitted");
    dirty.execute(&mut *conn).await.map_err(failed(OP))?;
    let age = i64::try_from(HOLE_AGE.as_micros()).unwrap_or(i64::MAX);
    let rows = sql.query(statement!("holes_old.sql")).bind(age).fetch_all(conn, OP).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let holes = rows
        .iter()
        .map(|row| Ok(serde_json::json!([row.number("first_id", OP)?, row.number("last_id", OP)?])));
    let holes = serde_json::Value::Array(holes.collect::<Result<_>>()?).to_string();
    sql.query(statement!("holes_forget.sql")).bind(holes).execute(conn, OP).await?;
    Ok(())
}
