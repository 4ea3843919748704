//! everbit within a test's own process: a database of its own, the stubs, and the services.

#![allow(dead_code, unreachable_pub)]

use std::time::Duration;

use axum::Router;
use everbit::adapters::bus::Kind;
use everbit::adapters::settings::Settings;
use everbit::adapters::store::PostgresTransactions;
use everbit::adapters::workers::{Services, Workers};
use everbit::application::{EventBus, Transactions, Work};
use everbit::domain::{About, CreateOrderAttempt, Side, Signal, Status};
use everbit::story::counts::Database;
use everbit::stubs;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

/// A trace as the W3C has it.
pub const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Serves on a free port until the test ends.
pub async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    format!("http://{address}")
}

/// What is said about the messages of these tests.
pub fn about() -> About {
    About {
        owner: "OWNER".into(),
        strategy: "EXTREME_FLIP".into(),
        market: "KRW-BTC".into(),
        trace: TRACE.into(),
        cause: None,
    }
}

/// A new signal.
pub fn signal() -> Signal {
    Signal { id: Uuid::new_v4(), about: about(), side: Side::Buy, price: 50_000_000, volume: 1_000_000 }
}

/// everbit in this process.
pub struct World {
    pub database: Database,
    pub transactions: PostgresTransactions,
    pub settings: Settings,
    client: reqwest::Client,
}

impl World {
    pub async fn new() -> Self {
        let database = Database::new(false).await;
        PostgresTransactions::migrate(database.postgres()).await.expect("tables");
        let settings = Settings {
            exchange: serve(stubs::exchange::router()).await,
            push: serve(stubs::push::router()).await,
            timeout: Duration::from_millis(400),
            ..Settings::of(&database.url(), Kind::Outbox)
        };
        let transactions =
            PostgresTransactions::open(database.postgres(), &settings).await.expect("a transactions");
        Self { database, transactions, settings, client: story::process::client() }
    }

    pub fn pool(&self) -> &PgPool {
        self.database.postgres()
    }

    pub fn services(&self) -> Services<PostgresTransactions> {
        Services::new(&self.transactions, &self.settings)
    }

    /// Starts all four workers.
    pub async fn workers(&self) -> Workers {
        Workers::start(&self.transactions.outbox, &self.services(), &self.settings).await.expect("workers")
    }

    /// Tells the exchange what to do.
    pub async fn direct(&self, path: &str, body: Value) {
        let url = format!("{}{path}", self.settings.exchange);
        self.client.put(url).json(&body).send().await.expect("the exchange answers");
    }

    /// What a stub lists.
    pub async fn list(&self, url: &str) -> Value {
        self.client.get(url).send().await.expect("a stub answers").json().await.expect("JSON")
    }

    /// The texts that were pushed.
    pub async fn pushes(&self) -> Vec<Value> {
        let list = self.list(&format!("{}/push", self.settings.push)).await;
        list.as_array().expect("a list").clone()
    }

    /// How often the exchange was asked to place an order, over all identifiers.
    pub async fn requests(&self) -> u64 {
        let book = self.list(&format!("{}/book", self.settings.exchange)).await;
        book["requests"].as_object().expect("requests").values().filter_map(Value::as_u64).sum()
    }

    /// Executes a command as a worker does.
    pub async fn execute(&self, command: &CreateOrderAttempt, now: i64) {
        self.services().executor.execute(Uuid::new_v4(), command, now).await.expect("executed");
    }

    /// The state of an attempt.
    pub async fn status(&self, command: &CreateOrderAttempt) -> Option<Status> {
        let mut work = self.transactions.begin().await.expect("a transaction");
        work.attempt(&command.identifier()).await.expect("an answer").map(|attempt| attempt.status)
    }

    /// Publishes a message by itself.
    pub async fn publish<M: everbit::domain::Message>(&self, message: &M) -> Uuid {
        let mut work = self.transactions.begin().await.expect("a transaction");
        let id = work.publish(message, &about()).await.expect("published");
        work.commit().await.expect("committed");
        id
    }

    /// One row of the document's table.
    pub async fn row(&self, event_id: Uuid) -> Row {
        let sql = "select status, attempt_count, max_attempts, last_error_code,
                   extract(epoch from next_retry_at - last_attempt_at)::float8 as pause
                   from outbox_event where event_id = $1";
        let row: (String, i32, i32, Option<String>, Option<f64>) =
            sqlx::query_as(sql).bind(event_id).fetch_one(self.pool()).await.expect("one row");
        let (status, attempt_count, max_attempts, last_error_code, pause) = row;
        Row { status, attempt_count, max_attempts, last_error_code, pause }
    }
}

/// What tests look at in the document's table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub status: String,
    pub attempt_count: i32,
    pub max_attempts: i32,
    pub last_error_code: Option<String>,
    pub pause: Option<f64>,
}
