//! The shop in a file, with no server.

use std::path::Path;
use std::time::Duration;

use postrider::sqlite::Outbox;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::transaction::Transaction;
use sqlx_sqlite::{
    Sqlite as Driver, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use super::*;

/// What the database is called in its folder.
pub(crate) const FILE: &str = "shop.db";

/// The shop in a file.
#[derive(Clone)]
pub(crate) struct Sqlite {
    pool: SqlitePool,
    outbox: Outbox,
    name: &'static str,
}

impl Sqlite {
    /// A new one in a folder.
    pub(crate) async fn build(folder: &Path) -> Result<Self, Failure> {
        let pool = pool(folder, true).await?;
        let outbox = Outbox::builder().source("shop").migrated(&pool).await?;
        raw_sql(include_str!("../../../sql/demo/schema_sqlite.sql")).execute(&pool).await?;
        Ok(Self { pool, outbox, name: "SQLite" })
    }

    /// The one that is there, for another process.
    pub(crate) async fn open(folder: &Path) -> Result<Self, Failure> {
        let pool = pool(folder, false).await?;
        let outbox = Outbox::builder().source("shop").connect(&pool).await?;
        Ok(Self { pool, outbox, name: "SQLite" })
    }

    async fn store_of_log(&self) -> Result<SharedStore, Failure> {
        Ok(crate::database::bounded(self.outbox.store()))
    }

    /// A statement as this database has it.
    fn sql(statement: &'static str) -> &'static str {
        statement
    }

    async fn begin(&self) -> Result<Transaction<'static, Driver>, Failure> {
        Ok(self.outbox.begin().await?)
    }

    /// Everything is in one file then.
    async fn tidied(&self) -> Result<(), Failure> {
        query("pragma wal_checkpoint(truncate)").execute(&self.pool).await?;
        Ok(())
    }
}

demo_store!(Sqlite, Outbox, SqliteConnection);

async fn pool(folder: &Path, new: bool) -> Result<SqlitePool, Failure> {
    let options = SqliteConnectOptions::new()
        .filename(folder.join(FILE))
        .create_if_missing(new)
        .busy_timeout(Duration::from_secs(20))
        // Killing a process loses nothing in a write-ahead log; only the machine's own end would.
        .synchronous(SqliteSynchronous::Normal);
    Ok(SqlitePoolOptions::new().max_connections(8).connect_with(options).await?)
}
