//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;

use postrider_core::{Clock, Result};
use postrider_sql::clock::given;
use postrider_sql::{Columns, statement};
use sqlx_mysql::MySqlConnection;

use crate::bell::{LogPoller, MySqlBell};
use crate::number::Rounds;
use crate::pools::{Pools, Session, SessionTransaction};
use crate::sql::Sql;
use crate::{delivery, lane, read, settle, subscribe};

/// The log in a MariaDB or MySQL database, as relays use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MySqlStore {
    pools: Pools,
    pub(crate) clock: Clock,
    pub(crate) sql: Sql,
    pub(crate) rounds: Arc<Rounds>,
    poller: Arc<LogPoller>,
    /// Whether its relays ask for what is new, or look once per poll interval.
    bell: bool,
}

/// Does a transaction of ours again that the server chose to end a deadlock.
macro_rules! again {
    ($call:expr) => {{
        let mut tries = 1;
        loop {
            match $call.await {
                Err(error) if tries < crate::store::TRIES && crate::error::is_deadlock(&error) => tries += 1,
                done => break done,
            }
        }
    }};
}
pub(crate) use again;

/// How often a transaction is tried that deadlocks keep ending.
pub(crate) const TRIES: u32 = 10;

impl MySqlStore {
    pub(crate) fn new(
        pools: Pools,
        clock: Clock,
        rounds: Arc<Rounds>,
        poller: Arc<LogPoller>,
        bell: bool,
    ) -> Self {
        Self { pools, clock, sql: Sql::default(), rounds, poller, bell }
    }

    /// The same store with some of its statements changed, by the names of their files. For tests that prove
    /// that a bug would be noticed.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sql(mut self, patch: fn(&'static str, &str) -> Option<String>) -> Self {
        self.sql = Sql::patched(patch);
        self
    }

    /// A connection for reading, and for what is one statement.
    pub(crate) async fn conn(&self, op: &'static str) -> Result<Session> {
        self.pools.conn(op).await
    }

    /// A transaction, as READ COMMITTED.
    pub(crate) async fn write(&self, op: &'static str) -> Result<SessionTransaction> {
        self.pools.write(op).await
    }

    /// The time, as this store tells it.
    pub(crate) async fn now(&self, conn: &mut MySqlConnection, op: &'static str) -> Result<i64> {
        match given(&self.clock) {
            Some(now) => Ok(now),
            None => self.sql.query(statement!("now.sql")).fetch_one(conn, op).await?.number("now", op),
        }
    }

    /// Sees to it that everything that is committed by now has its number.
    pub(crate) async fn catch_up(&self, conn: &mut MySqlConnection, op: &'static str) -> Result<()> {
        self.rounds.catch_up(self.sql, conn, op).await
    }

    /// Wakes sleeping relays, of this process and of others, once what was done is committed.
    pub(crate) async fn ring(&self, op: &'static str) -> Result<()> {
        let mut conn = self.conn(op).await?;
        self.sql.query(statement!("ring.sql")).execute(&mut conn, op).await?;
        self.poller.recorded();
        Ok(())
    }
}

postrider_sql::event_log!(MySqlStore, MySqlBell, again);
