//! The handle that an application records with.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Clock, RecordOptions, Result};
use postrider_sql::Settings;
use postrider_sql::session::handlers;
use sqlx_mysql::MySqlPool;
use tokio::sync::Semaphore;

use crate::bell::LogPoller;
use crate::migrate;
use crate::number::Rounds;
use crate::pools::{Pools, StoreOptions};
use crate::store::MySqlStore;

/// Records events on the caller's own connection. Cheap to clone.
///
/// The event is part of the caller's transaction:
///
/// ```no_run
/// use postrider_core::NewEvent;
/// use postrider_mysql::Outbox;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::MySqlPool::connect("mysql://localhost/shop").await?;
/// let outbox = Outbox::migrated(&pool).await?;
///
/// let mut tx = pool.begin().await?;
/// sqlx::query("update orders set paid = true where id = ?").bind(7).execute(&mut *tx).await?;
/// outbox.record(&mut tx, &NewEvent::of("orders", "OrderPaid", "Order", "7", "paid")?).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) pool: MySqlPool,
    pub(crate) recording: Arc<RecordOptions>,
    pub(crate) clock: Clock,
    pub(crate) poller: Arc<LogPoller>,
    pub(crate) rounds: Arc<Rounds>,
    /// How many handlers may have a transaction at once.
    pub(crate) handlers: Arc<Semaphore>,
    pub(crate) pools: Pools,
    bell: bool,
}

impl Outbox {
    /// Migrates the schema and returns the outbox. Several processes may do this at the same time.
    pub async fn migrated(pool: &MySqlPool) -> Result<Self> {
        Self::builder().migrated(pool).await
    }

    postrider_sql::outbox_methods!(MySqlPool);

    /// The log, for a relay, with its own connections to the same database.
    pub fn store(&self) -> MySqlStore {
        MySqlStore::new(
            self.pools.clone(),
            self.clock.clone(),
            Arc::clone(&self.rounds),
            Arc::clone(&self.poller),
            self.bell,
        )
    }
}

/// The settings of an [`Outbox`].
///
/// ```no_run
/// use postrider_mysql::Outbox;
///
/// # async fn example(pool: sqlx::MySqlPool) -> postrider_core::Result<()> {
/// let outbox = Outbox::builder().source("/shop").allowed_streams(["orders"]).migrated(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OutboxBuilder {
    settings: Settings,
    store: StoreOptions,
    planted: bool,
    patience: Duration,
}

impl Default for OutboxBuilder {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            store: StoreOptions::default(),
            planted: false,
            patience: migrate::PATIENCE,
        }
    }
}

impl OutboxBuilder {
    postrider_sql::settings!();

    /// How a relay's own sessions behave, for relays that are made on this outbox.
    #[must_use]
    pub fn store_options(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// Takes triggers and routines as they are when it connects. For tests that prove that a bug would be noticed.
    #[doc(hidden)]
    #[must_use]
    pub fn planted(mut self) -> Self {
        self.planted = true;
        self
    }

    /// How long a migration waits for the lock of migrations: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn migration_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Migrates the schema and returns the outbox.
    pub async fn migrated(self, pool: &MySqlPool) -> Result<Outbox> {
        migrate::migrate(pool, self.settings.max_payload(), self.patience).await?;
        self.open(pool, "migrate").await
    }

    /// Returns the outbox of a database that is already migrated.
    pub async fn connect(self, pool: &MySqlPool) -> Result<Outbox> {
        migrate::check(pool, self.planted).await?;
        self.open(pool, "connect").await
    }

    async fn open(self, pool: &MySqlPool, op: &'static str) -> Result<Outbox> {
        // A publisher may not ask what the log takes: the trigger tells it.
        let most = migrate::ready(pool, op).await?.unwrap_or(usize::MAX);
        let pools = Pools::beside(pool, &self.store);
        let rounds = Arc::new(Rounds::new(pools.clone()));
        Ok(Outbox {
            pool: pool.clone(),
            recording: Arc::new(self.settings.record_options(most)),
            clock: self.settings.clock,
            handlers: handlers(pool),
            poller: Arc::new(LogPoller::new(&pools, &rounds)),
            rounds,
            pools,
            bell: self.store.bell,
        })
    }
}
