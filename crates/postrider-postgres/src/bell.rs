//! The bell: publishers ring only when somebody sleeps.
//!
//! A sleeping relay writes *ring until T* into a sequence, which everybody sees at once. A publisher that
//! read "nobody sleeps" had its xid before that, so a snapshot taken afterwards shows it as running: the
//! relay looks again, with a growing pause, until those few have ended, and only then sleeps to T. Three
//! rules keep it cheap: arm only after a quiet time; disarm when rung, if the value is still one's own; let
//! the pause grow with what a read costs.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider_core::{Backoff, Bell, Result};
use postrider_sql::session::{ANSWER, silent};
use sqlx_core::acquire::Acquire;
use sqlx_core::connection::Connection;
use sqlx_core::row::Row;
use sqlx_postgres::PgListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::error::during;
use crate::lane::micros;
use crate::position::Snapshot;
use crate::row;
use crate::session::Sessions;
use crate::sql::Sql;
use crate::store::Line;

/// How long there must have been no event before a relay falls asleep. A relay that is faster than its
/// publishers would otherwise arm the bell between any two commits, and every one of them would ring.
const QUIET: Duration = Duration::from_millis(50);
/// The first pause between two looks; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause while it stays quiet for less than [`QUIET`].
const QUICK_PAUSE: Duration = Duration::from_millis(8);
/// The longest pause while transactions are open that could not know that somebody sleeps…
const OWED_PAUSE: Duration = Duration::from_millis(400);
/// … unless a look costs so much that even this would be a burden: then this many times what it costs.
const OWED_COST: u32 = 20;
/// The pauses before the listening connection is made anew.
const RECONNECT: Duration = Duration::from_millis(100);
const LONGEST_RECONNECT: Duration = Duration::from_secs(5);
/// How often the listening connection is asked whether it is there, while nothing comes. The driver's question is no statement.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// The start of a notification that a relay sends to itself, to learn whether notifications arrive.
const ECHO: &str = "echo ";

/// One process's side of the bell, shared by all its lanes.
pub(crate) struct SharedBell {
    pool: Sessions,
    sql: Arc<Sql>,
    lock: i64,
    heard: Arc<Heard>,
    task: OnceLock<ListenTask>,
    line: Line,
}

/// Whether a relay is rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BellHealth {
    /// Notifications arrive.
    Works,
    /// It listens, and nothing arrives.
    Silent,
    /// Sessions are shared, and there is no address to listen at.
    NoAddress,
    /// It is turned off.
    Off,
}

/// What the listening task has heard.
struct Heard {
    rung: watch::Sender<u64>,
    /// Whether a notification to oneself has arrived on the present connection.
    works: AtomicBool,
}

/// The task that listens. It ends with the shared bell.
struct ListenTask(JoinHandle<()>);

impl Drop for ListenTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SharedBell {
    pub(crate) fn new(pool: Sessions, sql: Arc<Sql>, line: Line) -> Arc<Self> {
        let lock = stable_hash(&format!("postrider bell {}", sql.schema.name));
        let heard = Arc::new(Heard { rung: watch::channel(0).0, works: AtomicBool::new(false) });
        Arc::new(Self { pool, sql, lock, heard, task: OnceLock::new(), line })
    }

    /// Begins to listen, once.
    fn listen(&self) {
        if self.line.is_on() && self.line.is_there() {
            self.task.get_or_init(|| {
                let (line, pool) = (self.line.clone(), self.pool.clone());
                let channel = self.sql.schema.channel();
                ListenTask(tokio::spawn(keep_listening(Arc::clone(&self.heard), line, pool, channel)))
            });
        }
    }

    /// Whether notifications arrive. It sends one to itself to find out.
    pub(crate) async fn health(&self, within: Duration) -> BellHealth {
        if !self.line.is_on() {
            return BellHealth::Off;
        }
        if !self.line.is_there() {
            return BellHealth::NoAddress;
        }
        self.listen();
        let mut rung = self.heard.rung.subscribe();
        let heard = async {
            while !self.heard.works.load(Ordering::Acquire) {
                let _ = rung.changed().await;
            }
        };
        if tokio::time::timeout(within, heard).await.is_ok() { BellHealth::Works } else { BellHealth::Silent }
    }

    /// Rings without an event.
    pub(crate) async fn ring(&self) -> Result<()> {
        let query = sqlx_core::query::query("select pg_notify($1, '')")
            .persistent(false)
            .bind(self.sql.schema.channel());
        asked("ring", query.execute(&self.pool)).await?;
        self.heard.ring();
        Ok(())
    }

    /// From now on publishers ring. Returns the value that this arming can be undone by; nothing if somebody has the lock.
    async fn arm(&self, longest: Duration) -> Result<Option<i64>> {
        let query = self.sql.arm.query().bind(self.lock).bind(micros(longest));
        let row = asked("wait", query.fetch_one(&self.pool)).await?;
        row::opt_i64(&row, 0)
    }

    async fn disarm(&self, until: i64) -> Result<()> {
        let query = self.sql.disarm.query().bind(self.lock).bind(until);
        asked("wait", query.execute(&self.pool)).await?;
        Ok(())
    }

    /// The transactions that may have read the bell before it was armed.
    async fn owed(&self) -> Result<Vec<String>> {
        let text = self.sql.text("snapshot", include_str!("../sql/snapshot.sql"));
        let row = asked("wait", text.query().fetch_one(&self.pool)).await?;
        let snapshot = Snapshot::parse(row::text(&row, 0)?).ok_or_else(|| row::malformed(0))?;
        Ok(snapshot.in_flight(row::text(&row, 1)?.parse().map_err(|_| row::malformed(1))?))
    }

    async fn running(&self, owed: Vec<String>) -> Result<Vec<String>> {
        let row = asked("wait", self.sql.running.query().bind(owed).fetch_one(&self.pool)).await?;
        Ok(row.try_get::<Option<Vec<String>>, _>(0).map_err(during("wait"))?.unwrap_or_default())
    }
}

impl Heard {
    fn ring(&self) {
        self.rung.send_modify(|count| *count += 1);
    }
}

/// Listens for ever, on one connection after the other.
async fn keep_listening(heard: Arc<Heard>, line: Line, pool: Sessions, channel: String) {
    let mut backoff = Backoff::new(RECONNECT, LONGEST_RECONNECT);
    loop {
        let began = Instant::now();
        if let Err(error) = listen_once(&heard, &line, &pool, &channel).await {
            tracing::debug!(error = %error, "the LISTEN connection broke or is silent; polling until it is back");
        }
        // Whoever sleeps has to look for itself: what was rung meanwhile is gone.
        heard.works.store(false, Ordering::Release);
        heard.ring();
        if began.elapsed() > LONGEST_RECONNECT {
            backoff.reset();
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Listens on one connection until it breaks, or does not answer.
async fn listen_once(heard: &Heard, line: &Line, pool: &Sessions, channel: &str) -> sqlx_core::Result<()> {
    let mut listener = Listener(Some(PgListener::connect_with(&line.pool().await?).await?));
    listener.eager_reconnect(false);
    let echo = format!("{ECHO}{}", Uuid::now_v7());
    let begun = async {
        listener.listen(channel).await?;
        // From another connection: behind a pooler, one may hear itself and nobody else.
        let call = sqlx_core::query::query("select pg_notify($1, $2)").persistent(false);
        call.bind(channel.to_owned()).bind(echo.clone()).execute(pool).await
    };
    answered(begun).await?;
    loop {
        match tokio::time::timeout(ASK_EVERY, listener.try_recv()).await {
            Ok(Ok(Some(notification))) if notification.payload() == echo => {
                heard.works.store(true, Ordering::Release);
                heard.ring();
            }
            Ok(Ok(Some(notification))) if notification.payload().starts_with(ECHO) => {}
            Ok(Ok(Some(_))) => heard.ring(),
            Ok(ended) => return ended.map(|_| ()),
            // What comes meanwhile is kept for the next one who asks.
            Err(_) => answered(async { listener.acquire().await?.ping().await }).await?,
        }
    }
}

/// Runs a statement of the bell with a timeout: without one, a relay could wait for the answer and never wake up.
async fn asked<T>(op: &'static str, asked: impl Future<Output = sqlx_core::Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(2 * ANSWER, asked).await;
    answer.map_err(|_| silent(op))?.map_err(during(op))
}

/// Fails with a timeout if there is no answer in time.
async fn answered<T>(asked: impl Future<Output = sqlx_core::Result<T>>) -> sqlx_core::Result<T> {
    let silent = || sqlx_core::Error::Io(std::io::ErrorKind::TimedOut.into());
    tokio::time::timeout(ANSWER, asked).await.unwrap_or_else(|_| Err(silent()))
}

/// A listening connection that is closed at once when it is done with. The driver would say goodbye first, and wait for an answer
/// for as long as the server leaves the connection open.
struct Listener(Option<PgListener>);

impl Deref for Listener {
    type Target = PgListener;

    fn deref(&self) -> &PgListener {
        self.0.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Listener {
    fn deref_mut(&mut self) -> &mut PgListener {
        self.0.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(listener) = self.0.take() else { return };
        // The goodbye goes to a runtime that ends at once, and the connection with it.
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
            let handle = runtime.handle().clone();
            let _entered = handle.enter();
            drop(listener);
            drop(runtime);
        });
    }
}

/// A hash that no version changes, for advisory locks.
pub(crate) fn stable_hash(text: &str) -> i64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}

enum Stage {
    Awake,
    /// Armed with a value, owing a look to transactions that could not know, until a deadline.
    Armed {
        until: i64,
        owed: Vec<String>,
        deadline: Instant,
    },
}

/// One lane's side of the bell.
pub(crate) struct LaneBell {
    shared: Arc<SharedBell>,
    rung: watch::Receiver<u64>,
    quiet_since: Instant,
    backoff: Backoff,
    /// When the last wait returned; nothing while one is under way, or after one was dropped.
    returned: Option<Instant>,
    stage: Stage,
}

impl LaneBell {
    pub(crate) fn new(shared: Arc<SharedBell>) -> Self {
        let rung = shared.heard.rung.subscribe();
        let now = Instant::now();
        let backoff = Backoff::new(FIRST_PAUSE, Duration::MAX);
        Self { shared, rung, quiet_since: now, backoff, returned: None, stage: Stage::Awake }
    }

    /// Sleeps, unless rung. Whether it was rung.
    async fn nap(&mut self, pause: Duration) -> bool {
        tokio::select! {
            changed = self.rung.changed() => changed.is_ok(),
            () = tokio::time::sleep(pause) => false,
        }
    }

    async fn wake(&mut self) -> Result<()> {
        if let Stage::Armed { until, .. } = std::mem::replace(&mut self.stage, Stage::Awake) {
            self.shared.disarm(until).await?;
        }
        self.quiet_since = Instant::now();
        Ok(())
    }

    async fn sleep(&mut self, longest: Duration, cost: Option<Duration>) -> Result<()> {
        if !self.shared.heard.works.load(Ordering::Acquire) {
            self.stage = Stage::Awake;
            let pause = self.backoff.next_delay_up_to(longest);
            self.nap(pause).await;
            return Ok(());
        }
        match &mut self.stage {
            Stage::Awake if self.quiet_since.elapsed() < QUIET => {
                let pause = self.backoff.next_delay_up_to(QUICK_PAUSE.min(longest));
                self.nap(pause).await;
                Ok(())
            }
            Stage::Awake => {
                self.rung.mark_unchanged();
                let Some(until) = self.shared.arm(longest).await? else {
                    let pause = self.backoff.next_delay_up_to(longest);
                    self.nap(pause).await;
                    return Ok(());
                };
                let owed = self.shared.owed().await?;
                // The caller looks once more: what those who could not know have committed by now is found.
                self.stage = Stage::Armed { until, owed, deadline: Instant::now() + longest };
                Ok(())
            }
            Stage::Armed { owed, deadline, .. } if owed.is_empty() => {
                let left = deadline.saturating_duration_since(Instant::now());
                if self.nap(left).await {
                    return self.wake().await;
                }
                self.stage = Stage::Awake;
                Ok(())
            }
            Stage::Armed { owed, deadline, .. } => {
                // A copy: whoever drops this future must find what is owed.
                let (owed, deadline) = (owed.clone(), *deadline);
                let cost = cost.unwrap_or_default();
                let pause = self.backoff.next_delay_up_to(OWED_PAUSE.max(cost * OWED_COST).min(longest));
                if self.nap(pause).await {
                    return self.wake().await;
                }
                let still = self.shared.running(owed).await?;
                if Instant::now() >= deadline {
                    self.stage = Stage::Awake;
                } else if let Stage::Armed { owed, .. } = &mut self.stage {
                    *owed = still;
                }
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Bell for LaneBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        self.shared.listen();
        // What the caller's look in between has cost.
        let cost = self.returned.take().map(|returned| returned.elapsed());
        let result = self.sleep(longest, cost).await;
        if result.is_err() {
            self.stage = Stage::Awake;
        }
        self.returned = Some(Instant::now());
        result
    }

    fn worked(&mut self) {
        self.quiet_since = Instant::now();
        // Work that came from somebody who could not ring was found by looking: look as often next time. The
        // pause is kept across naps only while nothing comes.
        self.backoff.reset();
        if let Stage::Armed { until, .. } = std::mem::replace(&mut self.stage, Stage::Awake) {
            // The events were found by a read, without a ring: the bell must not ring for every commit of a busy time.
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                if let Err(error) = shared.disarm(until).await {
                    tracing::debug!(error = %error, "could not disarm the bell; it stays armed until it expires");
                }
            });
        }
    }
}
