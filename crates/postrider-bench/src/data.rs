//! The log that is measured: events with 180-byte payloads and five headers.

use postrider_core::Event;
use postrider_postgres::{Outbox, PgStore};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use std::str::FromStr;

use crate::AnyError;

/// What an application records: 180 bytes of JSON.
#[derive(Serialize, Deserialize)]
pub struct OrderPaid {
    /// The order.
    pub order: u64,
    /// Something to carry.
    pub note: String,
}

impl OrderPaid {
    /// The one of an order.
    pub fn of(order: u64) -> Self {
        Self { order, note: "x".repeat(150) }
    }
}

impl Event for OrderPaid {
    const NAME: &'static str = "OrderPaid";
    const STREAM: &'static str = "orders";
    const AGGREGATE: &'static str = "Order";

    fn aggregate_id(&self) -> String {
        self.order.to_string()
    }
}

/// The server that `POSTRIDER_TEST_POSTGRES` names.
pub fn server() -> Result<PgConnectOptions, AnyError> {
    let url = std::env::var("POSTRIDER_TEST_POSTGRES")
        .map_err(|_| "POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask bench`")?;
    Ok(PgConnectOptions::from_str(&url)?)
}

/// A log in a schema of its own.
pub struct Bench {
    /// The schema.
    pub schema: String,
    /// An application's connections.
    pub pool: PgPool,
    /// An application's outbox.
    pub outbox: Outbox,
    /// A relay's store.
    pub store: PgStore,
}

impl Bench {
    /// A new log on the server that `POSTRIDER_TEST_POSTGRES` names.
    pub async fn new(connections: u32) -> Result<Self, AnyError> {
        Self::on(server()?, connections).await
    }

    /// A new log in that database.
    pub async fn on(options: PgConnectOptions, connections: u32) -> Result<Self, AnyError> {
        let pool = PgPoolOptions::new().max_connections(connections).connect_with(options).await?;
        let schema = format!("bench_{}", uuid::Uuid::now_v7().simple());
        let outbox = Outbox::builder().schema(&schema).migrated(&pool).await?;
        let store = outbox.store().await?;
        let bench = Self { schema, pool, outbox, store };
        // No vacuum in the middle of a measurement, and so no statistics: plans must not need them.
        bench.run("alter table {schema}.event set (autovacuum_enabled = false)").await?;
        Ok(bench)
    }

    /// Runs SQL with `{schema}` filled in.
    pub async fn run(&self, sql: &str) -> Result<(), AnyError> {
        sqlx::raw_sql(AssertSqlSafe(sql.replace("{schema}", &self.schema))).execute(&self.pool).await?;
        Ok(())
    }

    /// Adds events, in transactions of 20,000, on two connections.
    pub async fn fill(&self, events: u64) -> Result<(), AnyError> {
        let chunk = 20_000;
        let sql = "insert into {schema}.event (stream, event_type, aggregate_type, aggregate_id, headers, payload) \
             select 'orders', 'OrderPaid', 'Order', (n % 5000)::text, \
                    '{\"source\":\"shop\",\"schema_version\":\"1\",\"tenant\":\"acme\",\"correlation_id\":\"c-1234567890\",\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}', \
                    json_build_object('order', n, 'note', repeat('x', 150)) \
             from generate_series(1, CHUNK) as n";
        let sql = sql.replace("CHUNK", &chunk.to_string());
        let half = async |turns: u64| -> Result<(), AnyError> {
            for _ in 0..turns {
                self.run(&sql).await?;
            }
            Ok(())
        };
        let turns = events.div_ceil(chunk);
        tokio::try_join!(half(turns / 2), half(turns - turns / 2))?;
        Ok(())
    }

    /// Adds events of 1 MB each.
    pub async fn fill_wide(&self, events: u64) -> Result<(), AnyError> {
        let sql = "insert into {schema}.event (stream, event_type, aggregate_type, aggregate_id, payload) \
             select 'orders', 'OrderPaid', 'Order', (n % 100)::text, json_build_object('order', n, 'note', repeat('x', 990000)) \
             from generate_series(1, EVENTS) as n";
        self.run(&sql.replace("EVENTS", &events.to_string())).await
    }

    /// Drops the log.
    pub async fn close(self) -> Result<(), AnyError> {
        self.run("drop schema {schema} cascade").await?;
        self.pool.close().await;
        Ok(())
    }
}
