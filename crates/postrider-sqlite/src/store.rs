//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;

use postrider_core::{Clock, Result};
use postrider_sql::clock::given;
use postrider_sql::{Columns, statement};
use sqlx_core::pool::PoolConnection;
use sqlx_core::transaction::Transaction;
use sqlx_sqlite::{Sqlite, SqliteConnection};

use crate::bell::{LogPoller, SqliteBell};
use crate::error::{failed, placed};
use crate::pools::Pools;
use crate::sql::Sql;
use crate::{delivery, lane, read, settle, subscribe};

/// How a relay looks into the database.
///
/// ```no_run
/// use postrider_sqlite::{Outbox, StoreOptions};
///
/// # async fn example(pool: sqlx::SqlitePool) -> postrider_core::Result<()> {
/// let options = StoreOptions { bell: false, ..StoreOptions::default() };
/// let outbox = Outbox::builder().store_options(options).connect(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Whether an idle relay asks the file every 50 ms, and each millisecond after work, whether anything was committed; by default it
    /// does. Without the bell it reads the log once per poll interval, and nothing wakes it in between.
    pub bell: bool,
}

impl StoreOptions {
    /// The default of [`bell`](Self::bell).
    pub const BELL: bool = true;
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { bell: Self::BELL }
    }
}

/// The log in an SQLite database, as relays use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pools: Pools,
    pub(crate) clock: Clock,
    pub(crate) sql: Sql,
    poller: Arc<LogPoller>,
    /// Whether its relays ask for what is new, or look once per poll interval.
    bell: bool,
}

/// Runs a call: its transaction has the one write lock from its beginning, so nothing ends it in favour of another.
macro_rules! once {
    ($call:expr) => {
        $call.await
    };
}
pub(crate) use once;

impl SqliteStore {
    pub(crate) fn new(pools: Pools, clock: Clock, poller: Arc<LogPoller>, bell: bool) -> Self {
        Self { pools, clock, sql: Sql::default(), poller, bell }
    }

    /// The same store with some of its statements changed, by the names of their files. For tests that prove
    /// that a bug would be noticed.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sql(mut self, patch: fn(&'static str, &str) -> Option<String>) -> Self {
        self.sql = Sql::patched(patch);
        self
    }

    /// A connection for reading.
    pub(crate) async fn conn(&self, op: &'static str) -> Result<PoolConnection<Sqlite>> {
        self.pools.reading.acquire().await.map_err(failed(op)).map_err(placed(&self.pools.reading))
    }

    /// A transaction for reading: all that it looks at is of one time.
    pub(crate) async fn snapshot(&self, op: &'static str) -> Result<Transaction<'static, Sqlite>> {
        self.pools.reading.begin().await.map_err(failed(op))
    }

    /// A transaction for writing.
    pub(crate) async fn write(&self, op: &'static str) -> Result<Transaction<'static, Sqlite>> {
        self.pools.write(op).await
    }

    /// The time, as this store tells it.
    pub(crate) async fn now(&self, conn: &mut SqliteConnection, op: &'static str) -> Result<i64> {
        match given(&self.clock) {
            Some(now) => Ok(now),
            None => self.sql.query(statement!("now.sql")).fetch_one(conn, op).await?.number(0, op),
        }
    }
}

postrider_sql::event_log!(SqliteStore, SqliteBell, once);
