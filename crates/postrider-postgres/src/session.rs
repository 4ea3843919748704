//! Connections that stay in nobody's way: a call that is dropped half-way, or a server that answers no more, costs its connection
//! and not the pool's.
//!
//! The driver's pool asks a connection whether it is there before it hands it out and when it gets it back, and waits for the answer for
//! as long as that takes. Behind a server that keeps connections open and says nothing, each would keep its place in the pool for ever.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use postrider_core::Result;
use sqlx_core::Either;
use sqlx_core::connection::Connection;
use sqlx_core::executor::{Execute, Executor};
use sqlx_core::pool::{PoolConnection, PoolConnectionMetadata, PoolOptions};
use sqlx_core::sql_str::SqlStr;
use sqlx_core::transaction::TransactionManager;
use sqlx_postgres::{
    PgConnection, PgPool, PgQueryResult, PgRow, PgStatement, PgTransactionManager, PgTypeInfo, Postgres,
};

use crate::error::{acquire, during};
use crate::pooler::Manner;

/// How long a connection may take to say that it is there, whether it is wanted or comes back.
pub(crate) const ANSWER: Duration = Duration::from_secs(3);

/// The connections of a store, or of an outbox. Whoever runs a statement on it gets one for that statement.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pool: PgPool,
    manner: Arc<Manner>,
    /// How a transaction begins where sessions are shared with strangers.
    begin: SqlStr,
}

impl Sessions {
    pub(crate) fn new(pool: PgPool, manner: Arc<Manner>, begin: SqlStr) -> Self {
        Self { pool, manner, begin }
    }

    /// A transaction.
    pub(crate) async fn begin(&self) -> sqlx_core::Result<SessionTransaction> {
        let begin = self.manner.is_shared().then(|| self.begin.clone());
        SessionTransaction::begin(self.session().await?, begin).await
    }

    /// A connection for the statements of one moment. What is done with it has to be [`finish`](Hold::finish)ed.
    pub(crate) async fn hold(&self, op: &'static str) -> Result<Hold> {
        let session = acquire(&self.pool, op).await?;
        if !self.manner.is_shared() {
            return Ok(Hold::Session(session));
        }
        let begun = SessionTransaction::begin(session, Some(self.begin.clone())).await;
        begun.map(Hold::Transaction).map_err(during(op))
    }

    async fn session(&self) -> sqlx_core::Result<Session> {
        self.pool.acquire().await.map(Session::from)
    }

    /// What came of a statement that ran alone: where sessions are shared, it had a transaction to itself.
    async fn alone<T>(
        &self,
        run: impl AsyncFnOnce(&mut PgConnection) -> sqlx_core::Result<T>,
    ) -> sqlx_core::Result<T> {
        if self.manner.is_shared() {
            let mut transaction =
                SessionTransaction::begin(self.session().await?, Some(self.begin.clone())).await?;
            let outcome = run(&mut transaction).await;
            return match outcome {
                Ok(outcome) => transaction.commit().await.map(|()| outcome),
                Err(error) => {
                    self.manner.notice(&error);
                    let _ = transaction.rollback().await;
                    Err(error)
                }
            };
        }
        let outcome = run(&mut *self.session().await?).await;
        outcome.inspect_err(|error| self.manner.notice(error))
    }
}

/// A connection for the statements of one moment: with a session of its own, or within a transaction.
#[derive(Debug)]
pub(crate) enum Hold {
    Session(Session),
    Transaction(SessionTransaction),
}

impl Hold {
    /// Keeps what was done. Dropped without it, it is undone where sessions are shared.
    pub(crate) async fn finish(self, op: &'static str) -> Result<()> {
        match self {
            Self::Session(_) => Ok(()),
            Self::Transaction(transaction) => transaction.commit().await.map_err(during(op)),
        }
    }

    /// Closes it at once, without a goodbye: the rest of an answer is not sent then.
    pub(crate) fn sever(self) {
        match self {
            Self::Session(session) => session.sever(),
            Self::Transaction(transaction) => transaction.sever(),
        }
    }
}

impl Deref for Hold {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Session(session) => session,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for Hold {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Session(session) => session,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl Deref for Sessions {
    type Target = PgPool;

    fn deref(&self) -> &PgPool {
        &self.pool
    }
}

impl<'p> Executor<'p> for &'_ Sessions {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, sqlx_core::Result<Either<PgQueryResult, PgRow>>>
    where
        E: 'q + Execute<'q, Postgres>,
    {
        let sessions = self.clone();
        let all = async move {
            let all: Vec<_> =
                sessions.alone(async |connection| connection.fetch_many(query).try_collect().await).await?;
            Ok::<_, sqlx_core::Error>(stream::iter(all.into_iter().map(Ok)))
        };
        stream::once(all).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx_core::Result<Option<PgRow>>>
    where
        E: 'q + Execute<'q, Postgres>,
    {
        let sessions = self.clone();
        Box::pin(
            async move { sessions.alone(async |connection| connection.fetch_optional(query).await).await },
        )
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx_core::Result<PgStatement>>
    where
        'p: 'e,
    {
        let sessions = self.clone();
        Box::pin(async move { (&mut *sessions.session().await?).prepare_with(sql, parameters).await })
    }
}

/// A connection of a pool, which goes back to it if it answers, and is closed otherwise.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Option<PoolConnection<Postgres>>,
    /// A transaction is being begun: dropped now, the driver would not know of it, and the next user would be in it.
    beginning: bool,
}

impl From<PoolConnection<Postgres>> for Session {
    fn from(connection: PoolConnection<Postgres>) -> Self {
        Self { connection: Some(connection), beginning: false }
    }
}

impl Session {
    /// Closes it at once, without a goodbye: the rest of an answer is not sent then.
    pub(crate) fn sever(mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl Deref for Session {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.beginning {
            drop(self.connection.take().map(PoolConnection::detach));
        }
        let Some(connection) = self.connection.as_mut() else { return };
        // What is not done in time is dropped, and with it the connection: its place in the pool is free.
        let back = tokio::time::timeout(ANSWER, connection.return_to_pool());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(back);
        }
    }
}

/// A transaction on a connection of a pool; dropped, it is rolled back.
#[derive(Debug)]
pub(crate) struct SessionTransaction {
    session: Session,
    open: bool,
}

impl SessionTransaction {
    /// Begins one, by a statement of its own if there is one.
    pub(crate) async fn begin(mut session: Session, begin: Option<SqlStr>) -> sqlx_core::Result<Self> {
        session.beginning = true;
        PgTransactionManager::begin(&mut session, begin).await?;
        session.beginning = false;
        Ok(Self { session, open: true })
    }

    pub(crate) async fn commit(mut self) -> sqlx_core::Result<()> {
        PgTransactionManager::commit(&mut self.session).await?;
        self.open = false;
        Ok(())
    }

    /// Closes its connection at once, and with it the transaction.
    pub(crate) fn sever(mut self) {
        self.open = false;
        if let Some(connection) = self.session.connection.take() {
            drop(connection.detach());
        }
    }

    pub(crate) async fn rollback(mut self) -> sqlx_core::Result<()> {
        PgTransactionManager::rollback(&mut self.session).await?;
        self.open = false;
        Ok(())
    }
}

impl Deref for SessionTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.session
    }
}

impl DerefMut for SessionTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session
    }
}

impl Drop for SessionTransaction {
    fn drop(&mut self) {
        if self.open {
            PgTransactionManager::start_rollback(&mut self.session);
        }
    }
}

/// Whether connections of a pool can be believed to be there.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    /// When one was last found that did not answer: what has been idle since before that is not asked at all.
    silent: Arc<Mutex<Option<Instant>>>,
    manner: Arc<Manner>,
}

impl Trust {
    pub(crate) fn new(manner: Arc<Manner>) -> Self {
        Self { silent: Arc::default(), manner }
    }

    /// Lets a pool hand out connections that have just answered, and no others.
    pub(crate) fn guard(self, options: PoolOptions<Postgres>) -> PoolOptions<Postgres> {
        options.test_before_acquire(false).before_acquire(move |connection, standing| {
            let trust = self.clone();
            Box::pin(async move { Ok(trust.is_there(connection, &standing).await) })
        })
    }

    async fn is_there(&self, connection: &mut PgConnection, standing: &PoolConnectionMetadata) -> bool {
        let silent = *self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.is_some_and(|silent| silent.elapsed() <= standing.idle_for)
            || self.manner.outdates(standing.age)
        {
            return false;
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
