//! Numbering: giving committed events their place in the log.
//!
//! The work itself is the procedure `postrider_number` (`0001_log.sql`), which says why it is right. Here is when it runs: where
//! somebody reads and finds too little, or soon will, sleeps, or has to know all that is committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::{Columns, statement};
use sqlx_mysql::MySqlConnection;

use crate::error::is_in_the_way;
use crate::pools::Pools;
use crate::sql::{Sql, call};
use crate::tend::Maintenance;

/// How many events get their numbers in one call; no run is longer, as the procedure sees to.
pub(crate) const MOST: i64 = 10_000;
/// How many calls are made to catch up; more than anybody has committed since the last.
const ROUNDS: u32 = 1_000;
/// How long a step in the background may take: one without an answer must not stop those after it.
const AHEAD: Duration = Duration::from_secs(10);
/// How often in a row another session may hold the lock on the numbers for too long.
const PATIENCE: u32 = 2;

/// What a process knows of the numbers that were given.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) pools: Pools,
    pub(crate) maintenance: Maintenance,
    /// The last number, as of the last step.
    seq: AtomicI64,
    /// Whether the last step took as much as one may: there is probably more.
    behind: AtomicBool,
    /// Whether a step runs in the background.
    ahead: AtomicBool,
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

/// Says that something is no longer under way, however that came.
pub(crate) struct Done(pub(crate) Arc<Rounds>, pub(crate) fn(&Rounds) -> &AtomicBool);

impl Drop for Done {
    fn drop(&mut self) {
        (self.1)(&self.0).store(false, Ordering::Release);
    }
}

impl Rounds {
    pub(crate) fn new(pools: Pools) -> Self {
        Self {
            pools,
            maintenance: Maintenance::default(),
            seq: AtomicI64::new(0),
            behind: AtomicBool::new(false),
            ahead: AtomicBool::new(false),
        }
    }

    /// One step; `None` if another session held the lock on the numbers for too long.
    pub(crate) async fn step(
        self: &Arc<Self>,
        sql: Sql,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<Option<Step>> {
        let number = sql.query(statement!("number.sql")).bind(MOST).bind(false);
        let row = match call(number, conn, op).await {
            Ok(row) => row,
            // It was rolled back, and what it left is found by the next one.
            Err(error) if is_in_the_way(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let column = |column: &str| row.number(column, op);
        let step = Step { taken: column("taken")?, seq: column("seq")?, rings: column("rings")? };
        // Not the highest ever seen: a database that was set back has given fewer.
        self.seq.store(step.seq, Ordering::Relaxed);
        let behind = step.taken >= MOST;
        self.behind.store(behind, Ordering::Relaxed);
        self.tend(sql, step.seq, behind);
        Ok(Some(step))
    }

    /// Whether the log ended before a number, as of the last step.
    pub(crate) fn ends_before(&self, number: i64) -> bool {
        self.seq.load(Ordering::Relaxed) < number
    }

    /// Takes the next step before somebody waits for it, where a reader has got near the last number and more has to be
    /// numbered.
    pub(crate) fn look_ahead(self: &Arc<Self>, sql: Sql, reader: i64) {
        let near = self.seq.load(Ordering::Relaxed) - reader < MOST / 2;
        if !near || !self.behind.load(Ordering::Relaxed) || self.ahead.swap(true, Ordering::AcqRel) {
            return;
        }
        let done = Done(Arc::clone(self), |rounds| &rounds.ahead);
        tokio::spawn(async move {
            const OP: &str = "number";
            // A caller that needs the numbers meets the same error, and reports it.
            let step = async {
                if let Ok(mut conn) = done.0.pools.conn(OP).await {
                    let _ = done.0.step(sql, &mut conn, OP).await;
                }
            };
            let _ = tokio::time::timeout(AHEAD, step).await;
        });
    }

    /// Numbers everything that is committed by now.
    pub(crate) async fn catch_up(
        self: &Arc<Self>,
        sql: Sql,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<()> {
        let mut in_vain = 0;
        for _ in 0..ROUNDS {
            match self.step(sql, conn, op).await? {
                Some(step) if step.taken < MOST => break,
                Some(_) => in_vain = 0,
                None if in_vain < PATIENCE => in_vain += 1,
                None => {
                    let message = "another session holds the lock on postrider_numbering; end that session, and try again";
                    return Err(Error::new(ErrorKind::Conflict, op, message));
                }
            }
        }
        Ok(())
    }
}
