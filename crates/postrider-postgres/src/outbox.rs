//! The outbox: the handle that applications record with.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Clock, RecordOptions, Result};
use postrider_sql::Settings;
use postrider_sql::session::handlers;
use sqlx_core::sql_str::SqlSafeStr;
use sqlx_postgres::PgPool;
use tokio::sync::Semaphore;

use crate::error::{acquire, during};
use crate::inbox::Inbox;
use crate::migrate;
use crate::pooler::{Pooler, is_shared};
use crate::schema::Schema;
use crate::session::Sessions;
use crate::sql::{Patch, Sql};
use crate::store::{PgStore, StoreOptions};

/// Records events on the caller's own connection. Cheap to clone.
///
/// The event is part of the caller's transaction:
///
/// ```no_run
/// use postrider_core::NewEvent;
/// use postrider_postgres::Outbox;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::PgPool::connect("postgres://localhost/shop").await?;
/// let outbox = Outbox::migrated(&pool).await?;
///
/// let mut tx = pool.begin().await?;
/// sqlx::query("update orders set paid = true where id = $1").bind(7).execute(&mut *tx).await?;
/// outbox.record(&mut tx, &NewEvent::of("orders", "OrderPaid", "Order", "7", "paid")?).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) pool: PgPool,
    pub(crate) sql: Arc<Sql>,
    pub(crate) recording: RecordOptions,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<StoreOptions>,
    /// How many handlers may have a transaction at once.
    pub(crate) handlers: Arc<Semaphore>,
}

impl Outbox {
    /// Migrates the schema and returns the outbox. Several processes may do this at the same time.
    pub async fn migrated(pool: &PgPool) -> Result<Self> {
        Self::builder().migrated(pool).await
    }

    postrider_sql::outbox_methods!(PgPool);

    /// The log, for a relay, with its own connections to the same database.
    pub async fn store(&self) -> Result<PgStore> {
        self.store_with(&self.store).await
    }

    /// The log, for a relay, with settings.
    pub async fn store_with(&self, options: &StoreOptions) -> Result<PgStore> {
        PgStore::open(&self.pool, Arc::clone(&self.sql), self.clock.clone(), options).await
    }

    /// The connections of its pool, for statements of its own.
    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new(self.pool.clone(), Arc::clone(&self.sql.session_mode), "begin".into_sql_str())
    }

    /// Finds out whether the pool's connections share their sessions, if nobody has said so.
    async fn meet(mut self, pooler: Pooler, set: Option<usize>) -> Result<Self> {
        let is_shared = match pooler {
            Pooler::Transaction => true,
            Pooler::None => false,
            Pooler::Detect => {
                let mut first = acquire(&self.pool, "connect").await?;
                let found = is_shared(&mut first, &self.pool.connect_options()).await;
                found.map_err(during("connect"))?
            }
        };
        if is_shared {
            self.sql.session_mode.share();
        }
        // What the log takes is one setting for all publishers.
        let most = migrate::max_payload(&self.sessions(), &self.sql, set).await?;
        let limits = &mut self.recording.limits;
        limits.payload = if set.is_some() { most } else { most.min(limits.payload) };
        Ok(self)
    }

    /// The inbox of a consumer.
    pub fn inbox(&self, consumer: impl Into<String>) -> Inbox {
        Inbox::new(self, consumer.into())
    }

    /// Lets a role record, and nothing else.
    pub async fn grant_record(&self, role: &str) -> Result<()> {
        self.grant("select {schema}.grant_record($1)", role).await
    }

    /// Lets a role relay: record, read, claim, settle and sweep, but not change an event.
    pub async fn grant_relay(&self, role: &str) -> Result<()> {
        self.grant("select {schema}.grant_relay($1)", role).await
    }

    async fn grant(&self, sql: &str, role: &str) -> Result<()> {
        let query = self.sql.text("grant", sql).query().bind(role.to_owned());
        query.execute(&self.sessions()).await.map_err(during("grant"))?;
        Ok(())
    }
}

/// Settings of an [`Outbox`].
///
/// ```no_run
/// use postrider_postgres::Outbox;
///
/// # async fn example(pool: sqlx::PgPool) -> postrider_core::Result<()> {
/// let outbox = Outbox::builder().schema("events").allowed_streams(["orders"]).connect(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OutboxBuilder {
    schema: String,
    settings: Settings,
    store: StoreOptions,
    pooler: Pooler,
    patch: Option<Patch>,
    patience: Duration,
}

impl Default for OutboxBuilder {
    fn default() -> Self {
        Self {
            schema: Self::SCHEMA.into(),
            settings: Settings::default(),
            store: StoreOptions::default(),
            pooler: Pooler::Detect,
            patch: None,
            patience: migrate::PATIENCE,
        }
    }
}

impl OutboxBuilder {
    /// The default of [`schema`](Self::schema).
    pub const SCHEMA: &str = "postrider";

    /// The schema that holds the tables; by default `postrider`.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    postrider_sql::settings!();

    /// How a relay's own sessions behave, for relays that are made on this outbox.
    #[must_use]
    pub fn store_options(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// The pooler between the pool and the database. By default the outbox detects it with a second connection when it is created.
    #[must_use]
    pub fn pooler(mut self, pooler: Pooler) -> Self {
        self.pooler = pooler;
        self
    }

    /// Changes the text of statements: how tests plant bugs.
    #[doc(hidden)]
    #[must_use]
    pub fn patch(mut self, patch: Patch) -> Self {
        self.patch = Some(patch);
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
    pub async fn migrated(self, pool: &PgPool) -> Result<Outbox> {
        let (pooler, set, patience) = (self.pooler, self.settings.max_payload(), self.patience);
        let outbox = self.build(pool)?;
        migrate::migrate(pool, &outbox.sql.schema, patience).await?;
        outbox.meet(pooler, set).await
    }

    /// Returns the outbox of a database that is already migrated.
    pub async fn connect(self, pool: &PgPool) -> Result<Outbox> {
        let pooler = self.pooler;
        let outbox = self.build(pool)?;
        migrate::check(pool, &outbox.sql.schema).await?;
        outbox.meet(pooler, None).await
    }

    fn build(self, pool: &PgPool) -> Result<Outbox> {
        let sql = Arc::new(Sql::new(Schema::new(&self.schema)?, self.patch));
        Ok(Outbox {
            pool: pool.clone(),
            sql,
            recording: self.settings.record_options(usize::MAX),
            clock: self.settings.clock,
            store: Arc::new(self.store),
            handlers: handlers(pool),
        })
    }
}
