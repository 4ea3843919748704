//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Batch, Bell, Clock, DueBatch, EventLog, Lease, LeaseStatus, Position, Result, Settlement, Subscribed,
    Subscription,
};
use postrider_sql::clock::given;
use postrider_sql::{Columns, SilentBell, statement};
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
    options: StoreOptions,
}

impl SqliteStore {
    pub(crate) fn new(pools: Pools, clock: Clock, poller: Arc<LogPoller>, options: StoreOptions) -> Self {
        Self { pools, clock, sql: Sql::default(), poller, options }
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

#[async_trait]
impl EventLog for SqliteStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        subscribe::subscribe(self, subscription).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        lane::claim(self, subscription, owner, lease).await
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
        lane::extend(self, lease, by, reading).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        lane::release(self, lease).await
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        read::read(self, lease, from, limit).await
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        delivery::due(self, lease, limit).await
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        settle::settle(self, lease, settlement).await
    }

    fn bell(&self) -> Box<dyn Bell> {
        match self.options.bell {
            true => Box::new(SqliteBell::new(Arc::clone(&self.poller))),
            false => Box::new(SilentBell),
        }
    }
}
