//! The handle that an application records with.

use std::sync::Arc;

use postrider_core::{Clock, RecordOptions, Result};
use postrider_sql::Settings;
use sqlx_core::transaction::Transaction;
use sqlx_sqlite::{Sqlite, SqlitePool};
use tokio::sync::Semaphore;

use crate::bell::LogPoller;
use crate::error::{failed, placed};
use crate::pools::Pools;
use crate::store::{SqliteStore, StoreOptions};
use crate::{migrate, position};

/// Records events on the caller's own connection. Cheap to clone.
///
/// The event is part of the caller's transaction:
///
/// ```
/// use postrider_core::NewEvent;
/// use postrider_sqlite::Outbox;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// # sqlx::query("create table orders (id integer, paid boolean)").execute(&pool).await?;
/// let outbox = Outbox::migrated(&pool).await?;
///
/// let mut tx = outbox.begin().await?;
/// sqlx::query("update orders set paid = true where id = $1").bind(7).execute(&mut *tx).await?;
/// outbox.record(&mut tx, &NewEvent::of("orders", "OrderPaid", "Order", "7", "paid")?).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) pool: SqlitePool,
    pub(crate) recording: Arc<RecordOptions>,
    pub(crate) clock: Clock,
    pub(crate) poller: Arc<LogPoller>,
    /// One handler has a transaction at a time: there is one write lock, and who waits for it here waits in line.
    pub(crate) handlers: Arc<Semaphore>,
    pools: Pools,
    store: StoreOptions,
}

impl Outbox {
    /// Migrates the schema and returns the outbox.
    pub async fn migrated(pool: &SqlitePool) -> Result<Self> {
        Self::builder().migrated(pool).await
    }

    postrider_sql::outbox_methods!(SqlitePool);

    /// The log, for a relay.
    pub fn store(&self) -> SqliteStore {
        SqliteStore::new(self.pools.clone(), self.clock.clone(), Arc::clone(&self.poller), self.store.bell)
    }

    /// Begins a transaction that may write from the start (`BEGIN IMMEDIATE`).
    ///
    /// A plain `BEGIN` that reads first fails at its first write if another transaction wrote in between, whatever the busy
    /// timeout is; this one waits for the write lock first, so it does not fail later.
    pub async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        self.pool.begin_with("begin immediate").await.map_err(failed("begin"))
    }
}

/// The settings of an [`Outbox`].
///
/// ```no_run
/// use postrider_sqlite::Outbox;
///
/// # async fn example(pool: sqlx::SqlitePool) -> postrider_core::Result<()> {
/// let outbox = Outbox::builder().source("/shop").allowed_streams(["orders"]).migrated(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct OutboxBuilder {
    settings: Settings,
    store: StoreOptions,
}

impl OutboxBuilder {
    postrider_sql::settings!();

    /// How relays look into the database, for relays that are made on this outbox.
    #[must_use]
    pub fn store_options(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// Migrates the schema and returns the outbox.
    pub async fn migrated(self, pool: &SqlitePool) -> Result<Outbox> {
        migrate::migrate(pool).await.map_err(placed(pool))?;
        let set = self.settings.max_payload();
        self.open(pool, set, "migrate").await.map_err(placed(pool))
    }

    /// Returns the outbox of a database that is already migrated.
    pub async fn connect(self, pool: &SqlitePool) -> Result<Outbox> {
        migrate::check(pool).await.map_err(placed(pool))?;
        self.open(pool, None, "connect").await.map_err(placed(pool))
    }

    async fn open(self, pool: &SqlitePool, set: Option<usize>, op: &'static str) -> Result<Outbox> {
        let mut conn = pool.acquire().await.map_err(failed(op))?;
        position::check_end(&mut conn, op).await?;
        drop(conn);
        let most = migrate::max_payload(pool, set, op).await?;
        let pools = Pools::beside(pool, op).await?;
        Ok(Outbox {
            pool: pool.clone(),
            recording: Arc::new(self.settings.record_options(most)),
            clock: self.settings.clock,
            handlers: Arc::new(Semaphore::new(1)),
            poller: Arc::new(LogPoller::new(&pools)),
            store: self.store,
            pools,
        })
    }
}
