//! The transaction that a handler is given, on a connection that goes back to the application as it came.

use std::ops::{Deref, DerefMut};

use postrider_core::{Error, ErrorKind, Result};
use sqlx_core::pool::PoolConnection;
use sqlx_core::query::query;
use sqlx_core::sql_str::SqlSafeStr;
use sqlx_core::transaction::TransactionManager;
use sqlx_sqlite::{Sqlite, SqliteConnection, SqlitePool, SqliteTransactionManager};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::failed;
use crate::seal::Seal;

const NOT_WHOLE: &str = "the handler's transaction ended before the handler did; nothing was committed. A handler must return \
    the errors of its statements (some of them make SQLite roll everything back), and must not commit or roll back the \
    transaction itself";

/// The transaction of a handler. Dropped before its end, it is rolled back.
#[derive(Debug)]
pub struct HandlerTransaction {
    /// Nothing once it has ended.
    connection: Option<PoolConnection<Sqlite>>,
    seal: Seal,
    _permit: OwnedSemaphorePermit,
}

impl HandlerTransaction {
    /// Begins one that has the write lock from the start.
    pub(crate) async fn begin(pool: &SqlitePool, permit: OwnedSemaphorePermit) -> Result<Self> {
        const OP: &str = "begin";
        let mut connection = pool.acquire().await.map_err(failed(OP))?;
        let begin = Some("begin immediate".into_sql_str());
        SqliteTransactionManager::begin(&mut connection, begin).await.map_err(failed(OP))?;
        Ok(Self { connection: Some(connection), seal: Seal::default(), _permit: permit })
    }

    /// From here on nothing on its connection commits but [`commit`](Self::commit).
    pub(crate) async fn seal(&mut self) -> Result<()> {
        let seal = self.seal.clone();
        seal.set(self).await.map_err(failed("begin"))
    }

    /// Commits, if it is still the transaction that began.
    pub(crate) async fn commit(mut self) -> Result<()> {
        const OP: &str = "commit";
        let alone = SqliteTransactionManager::get_transaction_depth(&self) == 1;
        if !alone || self.seal.is_broken() {
            self.rollback(OP).await?;
            return Err(Error::new(ErrorKind::Invalid, OP, NOT_WHOLE));
        }
        self.unseal(OP).await?;
        SqliteTransactionManager::commit(&mut self).await.map_err(failed(OP))?;
        self.connection = None;
        Ok(())
    }

    /// Rolls back.
    pub(crate) async fn rollback(mut self, op: &'static str) -> Result<()> {
        self.unseal(op).await?;
        if let Some(connection) = self.connection.take() {
            end(connection, self.seal.is_broken()).await.map_err(failed(op))?;
        }
        Ok(())
    }

    async fn unseal(&mut self, op: &'static str) -> Result<()> {
        let seal = self.seal.clone();
        seal.lift(self).await.map_err(failed(op))
    }
}

/// Rolls back what is open on a connection. If the handler, or an error that it did not return, has ended the transaction already,
/// another is begun for that: the driver believes in one, and would never again begin one on this connection.
async fn end(mut connection: PoolConnection<Sqlite>, broken: bool) -> Result<(), sqlx_core::Error> {
    while SqliteTransactionManager::get_transaction_depth(&connection) > 1 {
        if broken {
            // The driver believes in savepoints that are gone.
            connection.close_on_drop();
            return Ok(());
        }
        SqliteTransactionManager::rollback(&mut connection).await?;
    }
    if broken {
        // One that is open refuses it, which is as good.
        let _ = query("begin").execute(&mut *connection).await;
    }
    SqliteTransactionManager::rollback(&mut connection).await
}

impl Drop for HandlerTransaction {
    fn drop(&mut self) {
        self.seal.open();
        let Some(mut connection) = self.connection.take() else { return };
        if !self.seal.is_broken() {
            SqliteTransactionManager::start_rollback(&mut connection);
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(connection, true));
        } else {
            connection.close_on_drop();
        }
    }
}

impl Deref for HandlerTransaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a transaction that has ended is nobody's"),
        }
    }
}

impl DerefMut for HandlerTransaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a transaction that has ended is nobody's"),
        }
    }
}
