//! Numbering: giving committed events their place in the log.
//!
//! The work itself is the procedure `postrider_number` (`0001_log.sql`), which says why it is right. Here is when it runs: where
//! somebody reads and finds too little, sleeps, or has to know all that is committed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{ErrorKind, Result};
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::row::number;
use crate::sql::{Sql, statement};

/// How many events get their numbers in one call.
const MOST: i64 = 10_000;
/// How many calls are made to catch up; more than anybody has committed since the last.
const ROUNDS: u32 = 1_000;
/// How often one looks everywhere, and not only where something is to be expected.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// How often one looks for holes that will not be filled.
const HOLES_EVERY: Duration = Duration::from_secs(5);
/// How old such a hole has to be. A row is written microseconds after its id was taken; that no row came in so long means that
/// none will. If one does, it is found when one looks everywhere.
const HOLE_AGE: Duration = Duration::from_secs(10);

/// When a process looked for what is rarely there.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    whole: Mutex<Option<Instant>>,
    holes: Mutex<Option<Instant>>,
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
        if is_time(&self.holes, HOLES_EVERY) {
            forget_holes(sql, conn, op).await?;
        }
        let whole = is_time(&self.whole, WHOLE_EVERY);
        let call = sql.query(statement!("number.sql")).bind(MOST).bind(whole);
        let row = match call.fetch_one(conn, op).await {
            Ok(row) => row,
            // It was rolled back, and what it left is found by the next one.
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
            Err(error) => return Err(error),
        };
        let column = |column: &str| number(&row, column, op);
        Ok(Some(Step { taken: column("taken")?, seq: column("seq")?, rings: column("rings")? }))
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
