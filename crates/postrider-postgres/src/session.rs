//! The connections of a store, which may share their sessions with strangers: behind a pooler in transaction mode, every statement
//! has a transaction to itself.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use postrider_core::Result;
use sqlx_core::Either;
use sqlx_core::executor::{Execute, Executor};
use sqlx_core::sql_str::SqlStr;
use sqlx_postgres::{PgConnection, PgPool, PgQueryResult, PgRow, PgStatement, PgTypeInfo, Postgres};

use crate::error::{acquire, during};
use crate::pooler::SessionMode;

/// A connection of a pool.
pub(crate) type Session = postrider_sql::session::Session<Postgres>;
/// A transaction on a connection of a pool.
pub(crate) type SessionTransaction = postrider_sql::session::SessionTransaction<Postgres>;

/// The connections of a store, or of an outbox. Whoever runs a statement on it gets one for that statement.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pool: PgPool,
    session_mode: Arc<SessionMode>,
    /// How a transaction begins where sessions are shared with strangers.
    begin: SqlStr,
}

impl Sessions {
    pub(crate) fn new(pool: PgPool, session_mode: Arc<SessionMode>, begin: SqlStr) -> Self {
        Self { pool, session_mode, begin }
    }

    /// A transaction.
    pub(crate) async fn begin(&self) -> sqlx_core::Result<SessionTransaction> {
        let begin = self.session_mode.is_shared().then(|| self.begin.clone());
        SessionTransaction::begin(self.session().await?, begin).await
    }

    /// A connection for the statements of one moment. What is done with it has to be [`finish`](Hold::finish)ed.
    pub(crate) async fn hold(&self, op: &'static str) -> Result<Hold> {
        let session = acquire(&self.pool, op).await?;
        if !self.session_mode.is_shared() {
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
        if self.session_mode.is_shared() {
            let mut transaction =
                SessionTransaction::begin(self.session().await?, Some(self.begin.clone())).await?;
            let outcome = run(&mut transaction).await;
            return match outcome {
                Ok(outcome) => transaction.commit().await.map(|()| outcome),
                Err(error) => {
                    self.session_mode.notice(&error);
                    let _ = transaction.rollback().await;
                    Err(error)
                }
            };
        }
        let outcome = run(&mut *self.session().await?).await;
        outcome.inspect_err(|error| self.session_mode.notice(error))
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
