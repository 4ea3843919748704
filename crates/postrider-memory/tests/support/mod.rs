//! The suite's harness on the log in memory.

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_conformance::{Harness, TestLog, Writer};
use postrider_core::{Clock, Error, NewEvent, Payload, Recorded, Result, Store, Uuid};
use postrider_memory::{Outbox, Savepoint, Transaction};

const UNCHANGEABLE: &str = "events can't be changed: a log in memory has no call for it";

/// Makes logs.
pub struct Memory;

#[async_trait]
impl Harness for Memory {
    async fn log(&self, clock: Clock) -> Arc<dyn TestLog> {
        Arc::new(MemoryLog { outbox: Outbox::builder().clock(clock).build() })
    }
}

struct MemoryLog {
    outbox: Outbox,
}

#[async_trait]
impl TestLog for MemoryLog {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.outbox.store())
    }

    async fn second_store(&self) -> Arc<dyn Store> {
        self.store()
    }

    async fn begin(&self) -> Box<dyn Writer> {
        let transaction = self.outbox.begin().await.expect("begin");
        Box::new(MemoryWriter { outbox: self.outbox.clone(), transaction, savepoint: None })
    }

    async fn event_ids(&self) -> Vec<Uuid> {
        ids(self.outbox.recorded())
    }

    async fn archived_ids(&self) -> Vec<Uuid> {
        ids(self.outbox.archived())
    }

    async fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<(), String> {
        self.outbox.store().force_delivery(event_id, state).map_err(|error| error.to_string())
    }

    async fn rings(&self) -> Option<u64> {
        Some(self.outbox.store().rings())
    }
}

fn ids(mut events: Vec<Recorded>) -> Vec<Uuid> {
    events.sort_by_key(|event| event.id);
    events.iter().map(|event| event.event_id).collect()
}

struct MemoryWriter {
    outbox: Outbox,
    transaction: Transaction,
    savepoint: Option<Savepoint>,
}

#[async_trait]
impl Writer for MemoryWriter {
    async fn change(&mut self, aggregate: &str) -> Result<i64> {
        let next = |version: Option<String>| {
            let version: i64 = version.map_or(0, |version| version.parse().expect("a number"));
            (version + 1).to_string()
        };
        Ok(self.transaction.update(aggregate, next).await?.parse().expect("a number"))
    }

    async fn touch(&mut self) -> Result<()> {
        self.transaction.set(format!("touched {}", Uuid::now_v7()), "").await
    }

    async fn record(&mut self, event: &NewEvent) -> Result<Uuid> {
        self.outbox.record(&mut self.transaction, event).await
    }

    async fn record_once(&mut self, event: &NewEvent) -> Result<bool> {
        self.outbox.record_once(&mut self.transaction, event).await
    }

    async fn record_all(&mut self, events: &[NewEvent]) -> Result<Vec<Uuid>> {
        self.outbox.record_all(&mut self.transaction, events).await
    }

    /// There is no other way in than to record, and no id to give along.
    async fn plain_insert(&mut self, aggregate: &str, _id: Option<i64>) -> Result<(), String> {
        let event = NewEvent::new("events", "Inserted", "A", aggregate, Payload::Json("1".into()));
        let recorded: Result<Uuid, Error> = self.outbox.record(&mut self.transaction, &event).await;
        recorded.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn record_slowly(&mut self, aggregate: &str, pause: Duration) -> Result<(), String> {
        tokio::time::sleep(pause).await;
        self.plain_insert(aggregate, None).await
    }

    async fn update_event(&mut self, _event_id: Uuid) -> Result<(), String> {
        Err(UNCHANGEABLE.to_owned())
    }

    async fn delete_event(&mut self, _event_id: Uuid) -> Result<(), String> {
        Err(UNCHANGEABLE.to_owned())
    }

    async fn first_time(&mut self, consumer: &str, event_id: Uuid) -> Result<bool> {
        self.outbox.inbox(consumer).first_time(&mut self.transaction, event_id).await
    }

    async fn first_time_by_key(&mut self, consumer: &str, key: &str) -> Result<bool> {
        self.outbox.inbox(consumer).first_time_by_key(&mut self.transaction, key).await
    }

    async fn savepoint(&mut self) {
        self.savepoint = Some(self.transaction.savepoint());
    }

    async fn rollback_to_savepoint(&mut self) {
        self.transaction.rollback_to(&self.savepoint.expect("a savepoint"));
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.transaction.commit().await
    }

    async fn rollback(self: Box<Self>) {
        self.transaction.rollback().await.expect("rollback");
    }
}
