//! The connections of a store, beside the application's own.
//!
//! A relay must neither starve behind an application that holds all connections of its pool, nor behind
//! writers that happen to ask for the write lock at better moments: SQLite's own wait looks again after up to
//! 100 ms, and takes no turns. So a store reads through a pool of its own, and writes through one connection
//! that asks every millisecond; who writes in the same store waits in line for it.

use std::time::Duration;

use postrider_core::{ErrorKind, Result};
use sqlx_core::Error as SqlxError;
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_core::transaction::Transaction;
use sqlx_sqlite::{Sqlite, SqlitePool, SqlitePoolOptions};
use tokio::time::Instant;

use crate::error::failed;

const READERS: u32 = 8;
/// How many rows the driver has ready at most, beside those that were taken: each may be as wide as an event may be.
const ROWS_READY: usize = 2;
/// How long a reader waits, which in a write-ahead log happens only while one is recovered or removed.
const READ_PATIENCE: Duration = Duration::from_secs(5);
/// How long a writer waits for the write lock, and how often it asks.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// The connections of a store.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pub(crate) reading: SqlitePool,
    writing: SqlitePool,
    /// A database in memory is seen by the application's own connections only.
    pub(crate) in_memory: bool,
}

impl Pools {
    /// Pools on the database that `pool` is on.
    pub(crate) async fn beside(pool: &SqlitePool, op: &'static str) -> Result<Self> {
        let row = query("select file from pragma_database_list where name = 'main'").fetch_one(pool).await;
        let file: Option<String> = row.and_then(|row| row.try_get(0)).map_err(failed(op))?;
        if file.is_none_or(|file| file.is_empty()) {
            return Ok(Self { reading: pool.clone(), writing: pool.clone(), in_memory: true });
        }
        let options = |patience| {
            let options = pool.connect_options().as_ref().clone().create_if_missing(false);
            options.busy_timeout(patience).row_buffer_size(ROWS_READY)
        };
        let some = |most| SqlitePoolOptions::new().max_connections(most).test_before_acquire(false);
        Ok(Self {
            reading: some(READERS).connect_lazy_with(options(READ_PATIENCE)),
            writing: some(1).connect_lazy_with(options(Duration::ZERO)),
            in_memory: false,
        })
    }

    /// A transaction that has the write lock from the start, so that what it reads stays true.
    pub(crate) async fn write(&self, op: &'static str) -> Result<Transaction<'static, Sqlite>> {
        let end = Instant::now() + WRITE_PATIENCE;
        loop {
            let begun = match self.writing.begin_with("begin immediate").await {
                // SQLite ended the last transaction by itself (a full disk, a trigger), and the driver believes it to be open still.
                Err(SqlxError::InvalidSavePointStatement) if !self.in_memory && Instant::now() < end => {
                    let connection = self.writing.acquire().await.map_err(failed(op))?;
                    connection.close().await.map_err(failed(op))?;
                    continue;
                }
                begun => begun.map_err(failed(op)),
            };
            match begun {
                Err(error) if error.kind() == ErrorKind::Conflict && Instant::now() < end => {
                    tokio::time::sleep(PAUSE).await;
                }
                begun => return begun,
            }
        }
    }
}
