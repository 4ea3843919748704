//! Closes a connection whose call was cancelled or got no answer.
//!
//! The driver's pool asks a connection whether it is there before it hands it out and when it gets it back, and waits for the answer for
//! as long as that takes. Behind a server that keeps connections open and says nothing, each would keep its place in the pool for ever.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, Result};
use sqlx_core::Error as SqlxError;
use sqlx_core::connection::Connection;
use sqlx_core::database::Database;
use sqlx_core::pool::{Pool, PoolConnection, PoolConnectionMetadata, PoolOptions};
use sqlx_core::sql_str::SqlStr;
use sqlx_core::transaction::{Transaction, TransactionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a connection may take to say that it is there, whether it is wanted or comes back.
pub const ANSWER: Duration = Duration::from_secs(3);

/// How many connections a store on a server may have, unless that is set.
pub const CONNECTIONS: u32 = 10;

/// A handler whose time is over is ended by its relay; a session whose relay stands still, by the server a little later.
pub const MARGIN: Duration = Duration::from_secs(5);

/// How long a look into the inbox may take.
pub const LOOK: Duration = Duration::from_secs(30);

/// The address that a pool connects to.
pub type Address<DB> = <<DB as Database>::Connection as Connection>::Options;

/// A connection of a pool, which goes back to it if it answers, and is closed otherwise.
#[derive(Debug)]
pub struct Session<DB: Database> {
    connection: Option<PoolConnection<DB>>,
    given_up: bool,
    /// A transaction is being begun: dropped now, the driver would not know of it, and the next user would be in it.
    beginning: bool,
}

impl<DB: Database> From<PoolConnection<DB>> for Session<DB> {
    fn from(connection: PoolConnection<DB>) -> Self {
        Self { connection: Some(connection), given_up: false, beginning: false }
    }
}

impl<DB: Database> Session<DB> {
    /// It is closed when it is done with, whatever it answers.
    pub fn give_up(&mut self) {
        self.given_up = true;
        if let Some(connection) = &mut self.connection {
            connection.close_on_drop();
        }
    }

    /// Begins a transaction that its user ends, by a statement of its own if there is one.
    pub async fn begin(&mut self, statement: Option<SqlStr>) -> sqlx_core::Result<()> {
        self.beginning = true;
        DB::TransactionManager::begin(self, statement).await?;
        self.beginning = false;
        Ok(())
    }

    /// Begins a transaction by a statement of its own, which is rolled back unless it is committed.
    pub async fn begin_by(&mut self, statement: &'static str) -> sqlx_core::Result<Transaction<'_, DB>> {
        let connection = self.connection.as_mut().expect("there until it is dropped");
        self.beginning = true;
        let begun = connection.begin_with(SqlStr::from_static(statement)).await;
        self.beginning = false;
        begun
    }

    /// Closes it at once, without a goodbye: the rest of an answer is not sent then.
    pub fn sever(mut self) {
        self.cut();
    }

    fn cut(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

impl<DB: Database> Deref for Session<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.connection.as_ref().expect("there until it is dropped")
    }
}

impl<DB: Database> DerefMut for Session<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.connection.as_mut().expect("there until it is dropped")
    }
}

impl<DB: Database> Drop for Session<DB> {
    fn drop(&mut self) {
        if self.beginning {
            self.cut();
        }
        let Some(connection) = self.connection.as_mut().filter(|_| !self.given_up) else { return };
        // What is not done in time is dropped, and with it the connection: its place in the pool is free.
        let back = tokio::time::timeout(ANSWER, connection.return_to_pool());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(back);
        }
    }
}

/// A transaction on a connection of a pool; dropped, it is rolled back.
#[derive(Debug)]
pub struct SessionTransaction<DB: Database> {
    session: Session<DB>,
    open: bool,
}

impl<DB: Database> SessionTransaction<DB> {
    /// Begins one, by a statement of its own if there is one.
    pub async fn begin(mut session: Session<DB>, statement: Option<SqlStr>) -> sqlx_core::Result<Self> {
        session.begin(statement).await?;
        Ok(Self { session, open: true })
    }

    /// Commits.
    pub async fn commit(mut self) -> sqlx_core::Result<()> {
        DB::TransactionManager::commit(&mut self.session).await?;
        self.open = false;
        Ok(())
    }

    /// Rolls back.
    pub async fn rollback(mut self) -> sqlx_core::Result<()> {
        DB::TransactionManager::rollback(&mut self.session).await?;
        self.open = false;
        Ok(())
    }

    /// Closes its connection at once, and with it the transaction.
    pub fn sever(mut self) {
        self.open = false;
        self.session.cut();
    }
}

impl<DB: Database> Deref for SessionTransaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.session
    }
}

impl<DB: Database> DerefMut for SessionTransaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.session
    }
}

impl<DB: Database> Drop for SessionTransaction<DB> {
    fn drop(&mut self) {
        if self.open {
            DB::TransactionManager::start_rollback(&mut self.session);
        }
    }
}

/// Whether connections of a pool can be believed to be there.
#[derive(Clone)]
pub struct Trust {
    /// When one was last found that did not answer: what has been idle since before that is not asked at all.
    silent: Arc<Mutex<Option<Instant>>>,
    fresh: Duration,
    is_outdated: Arc<dyn Fn(Duration) -> bool + Send + Sync>,
}

impl Trust {
    /// A connection that was used more shortly ago than `fresh` is taken to be there still: asking costs as much as a small read. One
    /// of an age that is outdated is never used.
    pub fn new(fresh: Duration, is_outdated: impl Fn(Duration) -> bool + Send + Sync + 'static) -> Self {
        Self { silent: Arc::default(), fresh, is_outdated: Arc::new(is_outdated) }
    }

    /// Lets a pool hand out connections that are fresh, or have just answered, and no others.
    pub fn guard<DB: Database>(self, options: PoolOptions<DB>) -> PoolOptions<DB> {
        options.test_before_acquire(false).before_acquire(move |connection, standing| {
            let trust = self.clone();
            Box::pin(async move { Ok(trust.is_there(connection, &standing).await) })
        })
    }

    async fn is_there(&self, connection: &mut impl Connection, standing: &PoolConnectionMetadata) -> bool {
        let silent = *self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.is_some_and(|silent| silent.elapsed() <= standing.idle_for)
            || (self.is_outdated)(standing.age)
        {
            return false;
        }
        if standing.idle_for < self.fresh {
            return true;
        }
        match tokio::time::timeout(ANSWER, connection.ping()).await {
            Ok(answer) => answer.is_ok(),
            Err(_) => {
                *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                false
            }
        }
    }
}

/// A connection of the pool. The pool keeps trying to connect until its patience ends and then says only that; so
/// when it has no connection at all, one more try tells why. An error says where the address leads.
pub async fn acquire<DB: Database>(
    pool: &Pool<DB>,
    place: fn(&Address<DB>) -> String,
    failed: impl Fn(SqlxError) -> Error,
    op: &'static str,
) -> Result<Session<DB>> {
    let placed = |error: Error| match error.kind() {
        ErrorKind::Unreachable | ErrorKind::Denied => error.at(place(&pool.connect_options())),
        _ => error,
    };
    match answering(pool).await {
        Ok(connection) => Ok(Session::from(connection)),
        Err(SqlxError::PoolTimedOut) if pool.size() == 0 => {
            let options = pool.connect_options();
            match tokio::time::timeout(ANSWER, DB::Connection::connect_with(&options)).await {
                Ok(Ok(_)) => Err(failed(SqlxError::PoolTimedOut)),
                Ok(Err(reason)) => Err(placed(failed(reason))),
                Err(_) => Err(placed(silent(op))),
            }
        }
        Err(error) => Err(placed(failed(error))),
    }
}

/// A connection of the pool. One that is idle is asked whether it is there first, which an application's pool does without a limit:
/// one that does not answer is closed, and the next one asked.
async fn answering<DB: Database>(pool: &Pool<DB>) -> sqlx_core::Result<PoolConnection<DB>> {
    let end = Instant::now() + pool.options().get_acquire_timeout();
    while pool.num_idle() > 0 && Instant::now() < end {
        if let Ok(acquired) = tokio::time::timeout(ANSWER, pool.acquire()).await {
            return acquired;
        }
    }
    pool.acquire().await
}

/// How many handlers may have a transaction at once: a quarter of the pool stays for the application, whatever they do.
pub fn handlers<DB: Database>(pool: &Pool<DB>) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((pool.options().get_max_connections() as usize * 3 / 4).max(1)))
}

/// The permit of a handler, once there is one.
pub async fn permit(handlers: &Arc<Semaphore>, op: &'static str) -> Result<OwnedSemaphorePermit> {
    Arc::clone(handlers)
        .acquire_owned()
        .await
        .map_err(|_| Error::new(ErrorKind::PoolExhausted, op, "no more transactions are given to handlers"))
}

/// What is answered within a time. What is not leaves its connection to be closed: whether it came to pass, nobody knows.
pub async fn within<T>(
    limit: Duration,
    op: &'static str,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(silent(op)))
}

/// What went wrong on the way to the server, or with the pool; nothing if the server itself says something.
pub fn transport_error(error: &SqlxError) -> Option<(ErrorKind, String)> {
    Some(match error {
        SqlxError::PoolTimedOut => (
            ErrorKind::PoolExhausted,
            "no connection became free in time; use a larger pool, or check for transactions that were left open"
                .to_owned(),
        ),
        SqlxError::PoolClosed => (ErrorKind::Unreachable, "the connection pool is closed".to_owned()),
        SqlxError::Io(io) => (ErrorKind::Unreachable, format!("the database does not answer: {io}")),
        SqlxError::Tls(tls) => {
            (ErrorKind::Unreachable, format!("the TLS connection to the database failed: {tls}"))
        }
        SqlxError::Protocol(_) | SqlxError::WorkerCrashed => {
            (ErrorKind::Unreachable, "the connection to the database broke".to_owned())
        }
        SqlxError::Configuration(reason) => {
            (ErrorKind::Invalid, format!("the database URL is not valid: {reason}"))
        }
        _ => return None,
    })
}

/// The error of a database that keeps its connections open and says nothing.
pub fn silent(op: &'static str) -> Error {
    let message = "the database does not answer; check that it is running and reachable from here";
    Error::new(ErrorKind::Unreachable, op, message)
}
