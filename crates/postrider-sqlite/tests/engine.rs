//! The engine keeps its promises on SQLite.

mod support;

use std::sync::Mutex;

use async_trait::async_trait;
use postrider_conformance::engine::{Fixture, Statements};
use postrider_core::Clock;
use postrider_sqlite::Outbox;
use sqlx::SqliteConnection;
use support::{Lite, LiteLog};

/// Keeps the logs it made until the test is over.
#[derive(Default)]
struct Files(Mutex<Vec<LiteLog>>);

#[async_trait]
impl Fixture for Files {
    type Outbox = Outbox;

    async fn outbox(&self, clock: Clock) -> Outbox {
        let log = Lite::default().lite_log(clock).await;
        let outbox = log.outbox.clone();
        self.0.lock().expect("logs").push(log);
        outbox
    }
}

#[async_trait]
impl Statements for Files {
    async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), String> {
        sqlx::raw_sql(statement).execute(connection).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

postrider_conformance::engine!(Files::default());
postrider_conformance::engine_on_sql!(Files::default());
