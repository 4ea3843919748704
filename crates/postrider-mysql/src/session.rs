//! Connections that stay in nobody's way: a call that is dropped half-way, or a server that answers no more, costs its connection
//! and not the pool's.
//!
//! The driver's pool asks a connection whether it is there before it hands it out and when it gets it back, and waits for the answer for
//! as long as that takes. Behind a server that keeps connections open and says nothing, each would keep its place in the pool for ever.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx_core::connection::Connection;
use sqlx_core::pool::{PoolConnection, PoolConnectionMetadata, PoolOptions};
use sqlx_core::transaction::{Transaction, TransactionManager};
use sqlx_mysql::{MySql, MySqlConnection, MySqlTransactionManager};

/// How long a connection may take to say that it is there, whether it is wanted or comes back.
pub(crate) const ANSWER: Duration = Duration::from_secs(3);

/// A connection that was used so shortly ago is taken to be there still.
const FRESH: Duration = Duration::from_secs(1);

/// A connection of a pool, which goes back to it if it answers, and is closed otherwise.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Option<PoolConnection<MySql>>,
    given_up: bool,
    /// A transaction is being begun: dropped now, the driver would not know of it, and the next user would be in it.
    beginning: bool,
}

impl From<PoolConnection<MySql>> for Session {
    fn from(connection: PoolConnection<MySql>) -> Self {
        Self { connection: Some(connection), given_up: false, beginning: false }
    }
}

impl Session {
    /// It is closed when it is done with, whatever it answers.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
        if let Some(connection) = &mut self.connection {
            connection.close_on_drop();
        }
    }

    /// Begins a transaction that its user ends.
    pub(crate) async fn begin(&mut self) -> sqlx_core::Result<()> {
        self.beginning = true;
        MySqlTransactionManager::begin(self, None).await?;
        self.beginning = false;
        Ok(())
    }

    /// Begins a transaction by a statement of its own.
    pub(crate) async fn begin_by(
        &mut self,
        statement: &'static str,
    ) -> sqlx_core::Result<Transaction<'_, MySql>> {
        let connection = self.connection.as_mut().expect("there until it is dropped");
        self.beginning = true;
        let begun = connection.begin_with(statement).await;
        self.beginning = false;
        begun
    }

    /// Closes it at once, without a goodbye: the rest of an answer is not sent then.
    pub(crate) fn sever(mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl Deref for Session {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        self.connection.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        self.connection.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.beginning {
            drop(self.connection.take().map(PoolConnection::detach));
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
pub(crate) struct SessionTransaction {
    session: Session,
    open: bool,
}

impl SessionTransaction {
    pub(crate) async fn begin(mut session: Session) -> sqlx_core::Result<Self> {
        session.begin().await?;
        Ok(Self { session, open: true })
    }

    pub(crate) async fn commit(mut self) -> sqlx_core::Result<()> {
        MySqlTransactionManager::commit(&mut self.session).await?;
        self.open = false;
        Ok(())
    }
}

impl Deref for SessionTransaction {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        &self.session
    }
}

impl DerefMut for SessionTransaction {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        &mut self.session
    }
}

impl Drop for SessionTransaction {
    fn drop(&mut self) {
        if self.open {
            MySqlTransactionManager::start_rollback(&mut self.session);
        }
    }
}

/// Whether connections of a pool can be believed to be there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    /// When one was last found that did not answer: what has been idle since before that is not asked at all.
    silent: Arc<Mutex<Option<Instant>>>,
}

impl Trust {
    /// Lets a pool hand out connections that were used just now, or have answered, and no others.
    pub(crate) fn guard(self, options: PoolOptions<MySql>) -> PoolOptions<MySql> {
        options.test_before_acquire(false).before_acquire(move |connection, standing| {
            let trust = self.clone();
            Box::pin(async move { Ok(trust.is_there(connection, &standing).await) })
        })
    }

    async fn is_there(&self, connection: &mut MySqlConnection, standing: &PoolConnectionMetadata) -> bool {
        let silent = *self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.is_some_and(|silent| silent.elapsed() <= standing.idle_for) {
            return false;
        }
        // One that was used just now is there, and asking costs as much as a small read.
        if standing.idle_for < FRESH {
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
