//! Umbra on PostgreSQL: the types and the dialect that the files in `store` are compiled with.

use postrider::postgres::StoreOptions;
use sqlx::Transaction;

pub use postrider::postgres::{Outbox, Tx};
pub use sqlx::{PgConnection as Connection, PgPool as Pool, postgres::PgRow as Row};

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

/// Connects to a database.
pub async fn connect(url: &str) -> Answer<Pool> {
    Ok(sqlx::postgres::PgPoolOptions::new().max_connections(10).connect(url).await?)
}

/// Creates the schema of Postrider, `events`, and the tables of the contexts.
pub async fn migrate(pool: &Pool) -> Answer<Outbox> {
    let outbox = Outbox::builder().schema("events").migrated(pool).await?;
    sqlx::raw_sql(include_str!("../../migrations/postgres.sql")).execute(pool).await?;
    Ok(outbox)
}

/// The outbox of a database that was migrated, and whether its relay is woken by whoever records.
pub async fn open(pool: &Pool, bell: bool) -> Answer<Outbox> {
    let options = StoreOptions { bell, ..StoreOptions::default() };
    Ok(Outbox::builder().schema("events").store_options(options).connect(pool).await?)
}

/// Begins the transaction of a command.
pub(crate) async fn begin(outbox: &Outbox) -> Answer<Transaction<'static, sqlx::Postgres>> {
    Ok(outbox.pool().begin().await?)
}

/// A statement in the dialect of this database.
pub(crate) fn sql(text: &'static str) -> &'static str {
    text
}
