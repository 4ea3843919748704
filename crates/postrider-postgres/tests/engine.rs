//! The engine keeps its promises on PostgreSQL.

mod support;

use async_trait::async_trait;
use postrider_conformance::engine::{Fixture, Statements};
use postrider_core::Clock;
use postrider_postgres::Outbox;
use sqlx::PgConnection;
use support::{Pg, PgLog};
use tokio::sync::Mutex;

/// Keeps the logs it made until the test is over.
#[derive(Default)]
struct Server(Mutex<Vec<PgLog>>);

#[async_trait]
impl Fixture for Server {
    type Outbox = Outbox;

    async fn outbox(&self, clock: Clock) -> Outbox {
        let log = Pg::default().pg_log(clock).await;
        let outbox = log.outbox.clone();
        self.0.lock().await.push(log);
        outbox
    }
}

#[async_trait]
impl Statements for Server {
    async fn run(connection: &mut PgConnection, statement: &'static str) -> Result<(), String> {
        sqlx::raw_sql(statement).execute(connection).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

postrider_conformance::engine!(Server::default());
postrider_conformance::engine_on_sql!(Server::default());
