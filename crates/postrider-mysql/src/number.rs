//! Numbering: giving committed events their place in the log.
//!
//! The work itself is the procedure `postrider_number` (`0001_log.sql`), which says why it is right. Here is when it runs: where
//! somebody reads and finds too little, sleeps, or has to know all that is committed. What has its number is cleared out of the
//! arrivals by and by, thousands at a time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{ErrorKind, Result};
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::row::{maybe_number, number};
use crate::sql::{Sql, statement};

/// How many events get their numbers in one call.
const MOST: i64 = 10_000;
/// How many calls are made to catch up; more than anybody has committed since the last.
const ROUNDS: u32 = 1_000;
/// How often one looks everywhere, and not only where something is to be expected.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// How many events get their numbers before their arrivals are cleared away.
const CLEAR_EVERY: i64 = 10_000;
/// How often one looks for holes that will not be filled, and clears away what few arrivals there are.
const HOLES_EVERY: Duration = Duration::from_secs(5);
/// How old such a hole has to be. A row is written microseconds after its id was taken; that no row came in so long means that
/// none will. If one does, it is found when one looks everywhere.
const HOLE_AGE: Duration = Duration::from_secs(10);

/// When a process looked for what is rarely there.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    whole: Mutex<Option<Instant>>,
    holes: Mutex<Option<Instant>>,
    /// Up to which number arrivals were cleared away, as far as this process knows.
    cleared: AtomicI64,
}

/// What is known after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// How many events got numbers.
    pub(crate) taken: i64,
    /// The last number.
    pub(crate) seq: i64,
    /// How often relays were woken without an event.
    pub(crate) rings: i64,
}

impl Rounds {
    /// One step; nothing if somebody else held the numbers for too long.
    pub(crate) async fn step(
        &self,
        sql: Sql,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<Option<Step>> {
        let (tidy, whole) = (is_time(&self.holes, HOLES_EVERY), is_time(&self.whole, WHOLE_EVERY));
        if tidy {
            forget_holes(sql, conn, op).await?;
        }
        // All that is left there is what has no number then.
        while whole && self.clear(sql, conn, op).await? {}
        let call = sql.query(statement!("number.sql")).bind(MOST).bind(whole);
        let row = match call.fetch_one(conn, op).await {
            Ok(row) => row,
            // It was rolled back, and what it left is found by the next one.
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
            Err(error) => return Err(error),
        };
        let column = |column: &str| number(&row, column, op);
        let step = Step { taken: column("taken")?, seq: column("seq")?, rings: column("rings")? };
        let kept = step.seq - self.cleared.load(Ordering::Relaxed);
        if kept >= CLEAR_EVERY || (tidy && kept > 0) {
            self.clear(sql, conn, op).await?;
        }
        Ok(Some(step))
    }

    /// Clears some arrivals away; says whether there may be more.
    async fn clear(&self, sql: Sql, conn: &mut MySqlConnection, op: &'static str) -> Result<bool> {
        let cleared = match sql.query(statement!("clear.sql")).fetch_one(conn, op).await {
            Ok(row) => maybe_number(&row, "cleared", op)?,
            Err(error) if error.kind() == ErrorKind::Conflict => None,
            Err(error) => return Err(error),
        };
        // Nothing if somebody else is at it.
        let Some(cleared) = cleared else { return Ok(false) };
        Ok(self.cleared.swap(cleared, Ordering::Relaxed) != cleared)
    }

    /// Numbers everything that is committed by now.
    pub(crate) async fn catch_up(
        &self,
        sql: Sql,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<()> {
        for _ in 0..ROUNDS {
            match self.step(sql, conn, op).await? {
                Some(step) if step.taken < MOST => break,
                _ => {}
            }
        }
        Ok(())
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

async fn forget_holes(sql: Sql, conn: &mut MySqlConnection, op: &'static str) -> Result<()> {
    // For the next statement only.
    let dirty = query("set transaction isolation level read uncommitted");
    dirty.execute(&mut *conn).await.map_err(failed(op))?;
    let age = i64::try_from(HOLE_AGE.as_micros()).unwrap_or(i64::MAX);
    let rows = sql.query(statement!("holes_old.sql")).bind(age).fetch_all(conn, op).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let holes = rows
        .iter()
        .map(|row| Ok(serde_json::json!([number(row, "first_id", op)?, number(row, "last_id", op)?])));
    let holes = serde_json::Value::Array(holes.collect::<Result<_>>()?).to_string();
    sql.query(statement!("holes_forget.sql")).bind(holes).execute(conn, op).await?;
    Ok(())
}
