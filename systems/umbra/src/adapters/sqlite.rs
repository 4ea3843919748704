//! Umbra on SQLite, in one file and without a server: the types and the dialect that the files in `store` are compiled with.

// Each database has modules of its own from the same files, because the types of sqlx differ.
#![allow(clippy::duplicate_mod)]

use postrider::sqlite::StoreOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Transaction};
use std::str::FromStr;
use std::time::Duration;

pub use postrider::sqlite::{Outbox, Tx};
pub use sqlx::{SqliteConnection as Connection, SqlitePool as Pool, sqlite::SqliteRow as Row};

use crate::contracts::Answer;

#[path = "store/api.rs"]
pub mod api;
#[path = "store/bot.rs"]
pub mod bot;
#[path = "store/command_service.rs"]
pub mod command_service;
#[path = "store/messenger.rs"]
pub mod messenger;
#[path = "store/relay.rs"]
pub mod relay;
#[path = "store/subscriptions.rs"]
pub mod subscriptions;
#[path = "store/unit.rs"]
pub mod unit;
#[path = "store/worker.rs"]
pub mod worker;

/// Opens a file, `sqlite:umbra.db`.
pub async fn connect(url: &str) -> Answer<Pool> {
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(20));
    Ok(SqlitePoolOptions::new().max_connections(5).connect_with(options).await?)
}

/// Creates the tables of Postrider and of the contexts.
pub async fn migrate(pool: &Pool) -> Answer<Outbox> {
    let outbox = Outbox::migrated(pool).await?;
    sqlx::raw_sql(include_str!("../../migrations/sqlite.sql")).execute(pool).await?;
    Ok(outbox)
}

/// The outbox of a file that was migrated. With the bell its relay asks the file often whether anything was committed.
pub async fn open(pool: &Pool, bell: bool) -> Answer<Outbox> {
    Ok(Outbox::builder().store_options(StoreOptions { bell }).connect(pool).await?)
}

/// Begins the transaction of a command.
pub(crate) async fn begin(outbox: &Outbox) -> Answer<Transaction<'static, sqlx::Sqlite>> {
    Ok(outbox.begin().await?)
}

/// A statement in the dialect of this database. One writer at a time needs no row locks.
pub(crate) fn sql(text: &'static str) -> AssertSqlSafe<String> {
    let mut text = text.replace(" for update", "").replace("for share", "");
    text = text.replace("::jsonb", "").replace("to_timestamp($5)", "$5");
    text = text.replace("greatest(", "max(").replace("now()", "datetime('now')");
    for schema in ["billing", "licensing", "notification", "audit", "outside"] {
        text = text.replace(&format!("{schema}."), &format!("{schema}_"));
    }
    AssertSqlSafe(text)
}
