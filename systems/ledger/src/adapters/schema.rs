//! The tables, and connections to them.

use std::str::FromStr;

use postrider::mysql::Outbox;
use sqlx::MySqlPool;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use time::OffsetDateTime;

use crate::application::problem::{Answer, Problem};

/// How many connections a process holds at most.
const CONNECTIONS: u32 = 12;

/// Connects to the database of an address, `mysql://…`.
pub async fn connect(url: &str) -> Answer<MySqlPool> {
    let options = MySqlConnectOptions::from_str(url).map_err(Problem::broken)?;
    let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
    pool.map_err(Problem::broken)
}

/// Connects with a clock that stands at this time: the server writes it wherever it would write its own. For stories and tests.
pub async fn connect_at(url: &str, now: OffsetDateTime) -> Answer<MySqlPool> {
    let options = MySqlConnectOptions::from_str(url).map_err(Problem::broken)?;
    let seconds = now.unix_timestamp_nanos() as f64 / 1e9;
    let pool = MySqlPoolOptions::new().max_connections(4).after_connect(move |connection, _| {
        Box::pin(
            async move { sqlx::query("set timestamp = ?").bind(seconds).execute(connection).await.map(drop) },
        )
    });
    pool.connect_with(options).await.map_err(Problem::broken)
}

/// Creates the tables of Postrider and of the ledger.
pub async fn migrate(pool: &MySqlPool) -> Answer<Outbox> {
    let outbox = Outbox::migrated(pool).await.map_err(Problem::broken)?;
    let tables = sqlx::raw_sql(include_str!("../../migrations/ledger.sql")).execute(pool).await;
    tables.map_err(Problem::broken)?;
    Ok(outbox)
}

/// Creates the tables of the consumers, which may be in a database of their own.
pub async fn migrate_consumers(pool: &MySqlPool) -> Answer<Outbox> {
    let outbox = Outbox::migrated(pool).await.map_err(Problem::broken)?;
    let tables = sqlx::raw_sql(include_str!("../../migrations/consumers.sql")).execute(pool).await;
    tables.map_err(Problem::broken)?;
    Ok(outbox)
}
