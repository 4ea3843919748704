//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Amend, AuditEntry, Batch, Bell, Clock, Desk, DueBatch, EventState, Figures, Lease, Position, Relane,
    RelayInfo, RelayReport, Result, Settlement, Standing, StateQuery, Store, Subscribed, Subscription, Sweep,
    Swept, Uuid,
};
use sqlx_core::pool::PoolConnection;
use sqlx_core::transaction::Transaction;
use sqlx_sqlite::{Sqlite, SqliteConnection};

use crate::bell::{SqliteBell, Watch};
use crate::clock;
use crate::error::{failed, placed};
use crate::pools::Pools;
use crate::sql::{Patch, Sql};
use crate::{delivery, figures, lane, read, relane, relays, settle, state, subscribe, sweep};

/// The log in an SQLite database, as relays use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pools: Pools,
    pub(crate) clock: Clock,
    pub(crate) sql: Sql,
    watch: Arc<Watch>,
}

impl SqliteStore {
    pub(crate) fn new(pools: Pools, clock: Clock, watch: Arc<Watch>) -> Self {
        Self { pools, clock, sql: Sql::default(), watch }
    }

    /// The same store with some of its statements changed, by the names of their files. For tests that prove
    /// that a bug would be noticed.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sql(mut self, patch: fn(&'static str, &str) -> Option<String>) -> Self {
        let patch: Patch = patch;
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
        clock::now(&self.clock, self.sql, conn, op).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        subscribe::subscribe(self, subscription).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        lane::claim(self, subscription, owner, lease).await
    }

    async fn extend(&self, lease: &mut Lease, by: Duration, reading: Option<&Position>) -> Result<Standing> {
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

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<Standing> {
        settle::settle(self, lease, settlement).await
    }

    fn bell(&self) -> Box<dyn Bell> {
        Box::new(SqliteBell::new(Arc::clone(&self.watch)))
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        relane::relane(self, subscription, lanes).await
    }

    async fn amend(&self, amend: &Amend) -> Result<u64> {
        delivery::amend(self, amend).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        sweep::sweep(self, sweep).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        state::states(self, query).await
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        figures::figures(self, subscription, figures::MOST).await
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        figures::figures(self, subscription, i64::from(most)).await
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        figures::undelivered_over(self, subscription, age).await
    }

    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        relays::heartbeat(self, relay).await
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        relays::deregister(self, relay).await
    }

    async fn record_audit(&self, entry: &AuditEntry) -> Result<()> {
        Desk::audit(self, entry).await
    }
}
