//! A database file of a test's own.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::path::PathBuf;
use std::time::Duration;

use postrider_core::{Clock, EventLog, Lease, ManualClock, NewEvent, Payload, Settlement, Subscription};
use postrider_sqlite::{Outbox, SqliteStore};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use time::macros::datetime;
use uuid::Uuid;

pub const LEASE: Duration = Duration::from_secs(30);

pub struct Database {
    pub path: PathBuf,
}

impl Database {
    pub fn new() -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(Uuid::now_v7().simple().to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        Self { path: folder.join("outbox.db") }
    }

    pub fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(&self.path).create_if_missing(true)
    }

    /// A pool of its own, as another process would have.
    pub async fn pool(&self) -> SqlitePool {
        SqlitePoolOptions::new().max_connections(4).connect_with(self.options()).await.expect("a pool")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A migrated outbox whose clock the test turns.
pub struct Fixture {
    pub outbox: Outbox,
    pub store: SqliteStore,
    pub pool: SqlitePool,
    pub clock: ManualClock,
    pub database: Database,
}

impl Fixture {
    pub async fn new() -> Self {
        let database = Database::new();
        let pool = database.pool().await;
        let clock = ManualClock::at(datetime!(2026-01-01 12:00 UTC));
        let builder = Outbox::builder().clock(Clock::Manual(clock.clone()));
        let outbox = builder.migrated(&pool).await.expect("migrated");
        let store = outbox.store();
        Self { outbox, store, pool, clock, database }
    }

    pub async fn record(&self, event: NewEvent) -> Uuid {
        self.outbox.record_outside_transaction(&event).await.expect("recorded")
    }

    pub async fn subscribe(&self, subscription: Subscription) {
        self.store.subscribe(&subscription).await.expect("subscribed");
    }

    pub async fn claim(&self, owner: &str) -> Option<Lease> {
        self.store.claim("s", owner, LEASE).await.expect("claim")
    }

    pub async fn hold(&self) -> Lease {
        self.claim("a").await.expect("a free lane")
    }

    /// Reads and settles all that a lane has, and gives the ids.
    pub async fn drain(&self, lease: &mut Lease) -> Vec<i64> {
        let mut ids = Vec::new();
        loop {
            let batch = self.store.read(lease, &lease.position, 10).await.expect("read");
            if batch.is_idle() {
                return ids;
            }
            ids.extend(batch.events.iter().map(|read| read.event.id));
            self.store.settle(lease, &Settlement::of(&batch)).await.expect("settled");
        }
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.expect("a number")
    }
}

/// An event of an order.
pub fn event(aggregate: &str) -> NewEvent {
    NewEvent::new("orders", "OrderPaid", "Order", aggregate, Payload::Json("{}".into()))
}
