//! The connections of a store, beside the application's own.

use std::time::Duration;

use postrider_core::Result;
use postrider_sql::session::{CONNECTIONS, Trust};
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySql, MySqlPool, MySqlPoolOptions};

use crate::error::{acquire, failed};

/// A connection of a pool.
pub(crate) type Session = postrider_sql::session::Session<MySql>;
/// A transaction on a connection of a pool.
pub(crate) type SessionTransaction = postrider_sql::session::SessionTransaction<MySql>;

/// A connection that was used so shortly ago is taken to be there still.
const FRESH: Duration = Duration::from_secs(1);

/// How a relay's own sessions behave.
///
/// ```no_run
/// use postrider_mysql::{Outbox, StoreOptions};
///
/// # async fn example(pool: sqlx::MySqlPool) -> postrider_core::Result<()> {
/// let options = StoreOptions { connections: 20, ..StoreOptions::default() };
/// let outbox = Outbox::builder().store_options(options).connect(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Maximum number of connections of the store; by default 10.
    pub connections: u32,
    /// How long a session may wait for a lock, or sit in an open transaction, before the server ends it; below the lease, so
    /// that a frozen relay can't block the one that takes over its lane. By default 10 s.
    pub patience: Duration,
    /// Whether an idle relay asks the server four times a second, and each millisecond or two after work, whether there is anything
    /// new; by default it does. Without the bell it reads the log once per poll interval, and nothing wakes it in between.
    pub bell: bool,
}

impl StoreOptions {
    /// The default of [`connections`](Self::connections).
    pub const CONNECTIONS: u32 = CONNECTIONS;
    /// The default of [`bell`](Self::bell).
    pub const BELL: bool = true;
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { connections: Self::CONNECTIONS, patience: Duration::from_secs(10), bell: Self::BELL }
    }
}

/// Session settings that do not depend on server defaults: autocommit, read committed, UTC, strict mode.
pub(crate) const SESSION: &str = "set session autocommit = 1, \
     sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'; \
     set session transaction isolation level read committed, read write";

/// The connections of a store.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pool: MySqlPool,
}

impl Pools {
    /// A pool on the database that `pool` is on, of sessions that read what is committed, tell the time in UTC and are ended by
    /// the server when their process stands still.
    pub(crate) fn beside(pool: &MySqlPool, options: &StoreOptions) -> Self {
        let patience = seconds(options.patience);
        let settings = format!(
            "{SESSION}; set session wait_timeout = {patience}, innodb_lock_wait_timeout = {patience}"
        );
        let sessions = MySqlPoolOptions::new()
            .max_connections(options.connections.max(2))
            .acquire_timeout(Duration::from_secs(10))
            // Before the server does so.
            .idle_timeout(options.patience / 2)
            .after_connect(move |connection, _| {
                let settings = settings.clone();
                Box::pin(async move {
                    raw_sql(AssertSqlSafe(settings)).execute(connection).await?;
                    Ok(())
                })
            });
        let pool =
            Trust::new(FRESH, |_| false).guard(sessions).connect_lazy_with((*pool.connect_options()).clone());
        Self { pool }
    }

    pub(crate) async fn conn(&self, op: &'static str) -> Result<Session> {
        acquire(&self.pool, op).await
    }

    pub(crate) async fn write(&self, op: &'static str) -> Result<SessionTransaction> {
        SessionTransaction::begin(acquire(&self.pool, op).await?, None).await.map_err(failed(op))
    }
}

/// A time for the server, which counts in whole seconds and takes none for ever.
pub(crate) fn seconds(time: Duration) -> u64 {
    time.as_secs().max(1) + u64::from(time.as_secs() > 0 && time.subsec_nanos() > 0)
}
