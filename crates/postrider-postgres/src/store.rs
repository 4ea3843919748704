//! The store: what relays use. The work itself is in the modules named after it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Batch, Bell, Clock, DueBatch, Error, ErrorKind, EventLog, Lease, LeaseStatus, Position, Result,
    Settlement, Subscribed, Subscription,
};
use postrider_sql::session::{CONNECTIONS, Trust};
use sqlx_core::row::Row;
use sqlx_postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use crate::bell::{LaneBell, SharedBell};
use crate::error::{during, is_unsendable};
use crate::pooler::{self, SessionMode, begin_with_settings, is_shared};
use crate::session::Sessions;
use crate::sql::Sql;
use crate::sweep::Reached;

/// How a relay's own sessions behave.
///
/// ```no_run
/// use postrider_postgres::{Outbox, StoreOptions};
///
/// # async fn example(pool: sqlx::PgPool) -> postrider_core::Result<()> {
/// // The publishers use two-phase commit, which forbids `NOTIFY`.
/// let options = StoreOptions { bell: false, ..StoreOptions::default() };
/// let outbox = Outbox::builder().store_options(options).connect(&pool).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StoreOptions {
    /// Maximum number of connections of the store; by default 10.
    pub connections: u32,
    /// How long a session may wait for a lock, or sit in an open transaction, before the database ends it;
    /// below the lease, so that a frozen relay can't block the one that takes over its lane. By default 10 s.
    pub patience: Duration,
    /// Whether publishers wake sleeping relays with `NOTIFY`. Publishers that use two-phase commit can't
    /// (`PREPARE TRANSACTION` forbids it): then turn it off on every relay, and events wait for the next poll.
    pub bell: bool,
    /// The URL for LISTEN; by default that of the outbox. LISTEN needs its own session: behind a pooler in transaction mode, set
    /// the URL of the database itself. Without it, events wait for the next poll.
    pub listen: Option<PgConnectOptions>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let patience = Duration::from_secs(10);
        Self { connections: Self::CONNECTIONS, patience, bell: Self::BELL, listen: None }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's own form of an address shows the password.
        f.debug_struct("StoreOptions")
            .field("connections", &self.connections)
            .field("patience", &self.patience)
            .field("bell", &self.bell)
            .field("listen", &self.listen.as_ref().map(PgConnectOptions::get_host))
            .finish()
    }
}

impl StoreOptions {
    /// The default of [`connections`](Self::connections).
    pub const CONNECTIONS: u32 = CONNECTIONS;

    /// The default of [`bell`](Self::bell).
    pub const BELL: bool = true;

    /// A relay's sessions: set up once, or with each transaction where they are shared.
    fn sessions(&self, session_mode: Arc<SessionMode>) -> PgPoolOptions {
        let patience = self.patience_in_millis();
        PgPoolOptions::new().acquire_timeout(Duration::from_secs(10)).after_connect(move |connection, _| {
            let is_shared = session_mode.is_shared();
            Box::pin(
                async move { if is_shared { Ok(()) } else { configure_session(connection, patience).await } },
            )
        })
    }

    fn patience_in_millis(&self) -> i64 {
        // What the server takes at most.
        i64::try_from(self.patience.as_millis()).unwrap_or(i64::MAX).min(i32::MAX.into())
    }
}

/// The connection that the bell listens on.
#[derive(Clone)]
pub(crate) struct Line {
    options: StoreOptions,
    address: PgConnectOptions,
    session_mode: Arc<SessionMode>,
    /// Whether the warning about `listen` was logged.
    said: Arc<AtomicBool>,
}

impl Line {
    fn of(options: &StoreOptions, address: PgConnectOptions, session_mode: Arc<SessionMode>) -> Self {
        Self { options: options.clone(), address, session_mode, said: Arc::default() }
    }

    /// Whether publishers ring the bell.
    pub(crate) fn is_on(&self) -> bool {
        self.options.bell
    }

    /// Whether there is a URL for LISTEN. Behind a pooler in transaction mode, only if `listen` is set.
    pub(crate) fn is_there(&self) -> bool {
        self.options.listen.is_some() || !self.session_mode.is_shared()
    }

    /// A pool for the LISTEN connection alone, so that one that does not answer blocks nothing else. It fails if `listen` is the URL
    /// of a pooler in transaction mode: LISTEN would stay in the session of another client.
    pub(crate) async fn pool(&self) -> sqlx_core::Result<PgPool> {
        let address = self.options.listen.as_ref().unwrap_or(&self.address);
        if self.options.listen.is_some() {
            let mut first = pooler::connect(address).await?;
            if is_shared(&mut first, address).await? {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "store.listen_url points to a pooler in transaction mode, where LISTEN does not work: events wait for the next poll"
                    );
                }
                let what = "store.listen_url points to a pooler in transaction mode; it must be the URL of the database itself";
                return Err(sqlx_core::Error::Configuration(what.into()));
            }
        }
        let sessions = self.options.sessions(Arc::default());
        let sessions = sessions.max_connections(1).idle_timeout(None).max_lifetime(None);
        Ok(sessions.connect_lazy_with(address.clone()))
    }
}

/// Where the log lives.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The number of this arrival in a cluster: a new one after each dump and restore into another cluster.
    pub(crate) system: i64,
    /// For each arrival: events up to this id have transaction ids of another cluster.
    floors: Arc<HashMap<i64, i64>>,
}

impl Home {
    /// Events up to this id have transaction ids of another cluster than that of this arrival.
    pub(crate) fn floor_of(&self, system: i64) -> i64 {
        self.floors.get(&system).copied().unwrap_or(0)
    }

    /// The same for the present arrival.
    pub(crate) fn floor(&self) -> i64 {
        self.floor_of(self.system)
    }
}

/// The log on PostgreSQL, for relays. Cheap to clone.
///
/// It has connections of its own, set up so that no plan depends on statistics and no frozen session holds
/// a lock for long.
#[derive(Clone)]
pub struct PgStore {
    pub(crate) pool: Sessions,
    pub(crate) sql: Arc<Sql>,
    pub(crate) clock: Clock,
    home: Arc<RwLock<Home>>,
    pub(crate) bell: Arc<SharedBell>,
    /// How far a sweep has got.
    pub(crate) reached: Arc<Reached>,
}

impl PgStore {
    pub(crate) async fn open(
        outbox_pool: &PgPool,
        sql: Arc<Sql>,
        clock: Clock,
        options: &StoreOptions,
    ) -> Result<Self> {
        let address = (*outbox_pool.connect_options()).clone();
        let session_mode = Arc::clone(&sql.session_mode);
        let sessions =
            options.sessions(Arc::clone(&session_mode)).max_connections(options.connections.max(2));
        let mode = Arc::clone(&session_mode);
        let trust = Trust::new(Duration::ZERO, move |age| mode.outdates(age));
        let pool = trust.guard(sessions).connect_lazy_with(address.clone());
        let begin = begin_with_settings(options.patience_in_millis());
        let pool = Sessions::new(pool, Arc::clone(&session_mode), begin);
        let home = Arc::new(RwLock::new(arrive(&pool, &sql).await?));
        let bell = SharedBell::new(pool.clone(), Arc::clone(&sql), Line::of(options, address, session_mode));
        let reached = Arc::default();
        Ok(Self { pool, sql, clock, home, bell, reached })
    }

    /// Where the log lives, as far as this store knows.
    pub(crate) fn home(&self) -> Home {
        self.home.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gets to know where the log lives now: there may be another server behind the address.
    pub(crate) async fn come_home(&self) -> Result<()> {
        let home = arrive(&self.pool, &self.sql).await?;
        *self.home.write().unwrap_or_else(PoisonError::into_inner) = home;
        Ok(())
    }

    /// The same store with statements for rows that the server can't send as they are, if that was what went wrong.
    pub(crate) fn careful(&self, error: &Error) -> Option<Self> {
        let again = is_unsendable(error) && !self.sql.is_careful();
        again.then(|| Self { sql: self.sql.careful(), ..self.clone() })
    }

    /// The same, and what it tells of a pooler is known.
    pub(crate) fn noticed<T>(&self, outcome: sqlx_core::Result<T>) -> sqlx_core::Result<T> {
        outcome.inspect_err(|error| self.sql.session_mode.notice(error))
    }

    /// Wakes sleeping relays without an event: there is something else to do.
    pub(crate) async fn ring(&self) -> Result<()> {
        self.bell.ring().await
    }

    /// Whether a subscription exists.
    pub(crate) async fn exists(&self, subscription: &str) -> Result<bool> {
        let text = self.sql.text("exists", "select from {schema}.subscription where name = $1");
        let row = text.query().bind(subscription.to_owned()).fetch_optional(&self.pool).await;
        Ok(row.map_err(during("claim"))?.is_some())
    }

    /// The store's own connections, for tests that look behind the curtain.
    #[doc(hidden)]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The text of a read, for tests that look at its plan.
    #[doc(hidden)]
    pub fn read_sql(&self, filtered: bool, open: bool) -> &str {
        self.sql.read[usize::from(filtered) * 2 + usize::from(open)].as_str()
    }

    /// The text of a look at what is due, for tests that look at its plan.
    #[doc(hidden)]
    pub fn due_sql(&self, order: postrider_core::Order) -> &str {
        self.sql.due_of(order).as_str()
    }

    /// The text that counts, for tests that look at its plan.
    #[doc(hidden)]
    pub fn figures_sql(&self) -> &str {
        self.sql.figures.as_str()
    }

    /// The text of a settle without deliveries, for tests that look at its plan.
    #[doc(hidden)]
    pub fn settle_sql(&self) -> &str {
        self.sql.settle[0].as_str()
    }
}

/// A relay's session: no sequential scans and no JIT, so that a read's plan is the same with any statistics, and
/// made once, not anew for each read; and timeouts, so that a frozen relay's locks are let go before its lease runs out.
/// The server tells a peer that is gone by itself within half a minute, and ends what such a one has left running.
/// Whatever a role or a database has set for its sessions, ours need these: a statement of a relay may take its time, writes, and
/// sees what was committed before it. Not every server knows every timeout.
async fn configure_session(connection: &mut PgConnection, patience: i64) -> sqlx_core::Result<()> {
    const SETTINGS: &str = "select set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false), \
         set_config('plan_cache_mode', 'force_generic_plan', false), \
         set_config('max_parallel_workers_per_gather', '0', false), \
         set_config('default_transaction_isolation', 'read committed', false), \
         set_config('default_transaction_read_only', 'off', false), \
         set_config('default_transaction_deferrable', 'off', false), \
         set_config('standard_conforming_strings', 'on', false), set_config('row_security', 'on', false), \
         set_config('lock_timeout', $1::text, false), \
         set_config('idle_in_transaction_session_timeout', $1::text, false), \
         (select count(set_config(s.name, '0', false)) from pg_catalog.pg_settings s \
          where s.name in ('statement_timeout', 'idle_session_timeout', 'transaction_timeout')), \
         (select count(set_config(s.name, '5s', false)) from pg_catalog.pg_settings s \
          where s.name = 'client_connection_check_interval' and version() like '%linux%'), \
         set_config('tcp_user_timeout', '25000', false), \
         set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), \
         set_config('tcp_keepalives_count', '3', false), set_config('application_name', 'postrider', false)";
    let settings = sqlx_core::query::query(SETTINGS).persistent(false);
    settings.bind(patience.to_string()).execute(connection).await?;
    Ok(())
}

/// Which cluster this is, and for each that the log has lived in, from which id on its transaction ids count.
async fn arrive(pool: &Sessions, sql: &Sql) -> Result<Home> {
    const FLOORS: &str = "select system, floor, system = {schema}.this_system() from {schema}.cluster";
    let mut connection = pool.hold("connect").await?;
    check_session(&mut connection).await?;
    let arrived = sql.text("arrive", "select {schema}.arrive()").query();
    arrived.fetch_one(&mut *connection).await.map_err(during("connect"))?;
    let rows = sql.text("arrive", FLOORS).query().fetch_all(&mut *connection).await;
    let (mut here, mut floors) = (0, HashMap::new());
    let rows = rows.map_err(during("connect"))?;
    connection.finish("connect").await?;
    for row in &rows {
        let system = row.try_get(0).map_err(during("connect"))?;
        floors.insert(system, row.try_get(1).map_err(during("connect"))?);
        if row.try_get(2).map_err(during("connect"))? {
            here = system;
        }
    }
    Ok(Home { system: here, floors: Arc::new(floors) })
}

/// Refuses what a session can't set for itself.
async fn check_session(connection: &mut PgConnection) -> Result<()> {
    const ROLE: &str = "select current_setting('session_replication_role') = 'replica'";
    let row = sqlx_core::query::query(ROLE)
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(during("connect"))?;
    if row.try_get::<bool, _>(0).map_err(during("connect"))? {
        let message = "session_replication_role is replica for this role, so the triggers of the log do not run; it must be \
             origin: alter role … reset session_replication_role";
        return Err(Error::new(ErrorKind::Invalid, "connect", message));
    }
    Ok(())
}

#[async_trait]
impl EventLog for PgStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        self.ensure(subscription).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        self.claim_lane(subscription, owner, lease).await
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
        self.extend_lease(lease, by, reading).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        self.release_lease(lease).await
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        let outcome = self.read_from(lease, from, limit).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.read_from(lease, from, limit).await,
            None => outcome,
        }
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        let outcome = self.due_now(lease, limit).await;
        match outcome.as_ref().err().and_then(|error| self.careful(error)) {
            Some(careful) => careful.due_now(lease, limit).await,
            None => outcome,
        }
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        self.settle_batch(lease, settlement).await
    }

    fn bell(&self) -> Box<dyn Bell> {
        Box::new(LaneBell::new(Arc::clone(&self.bell)))
    }
}
