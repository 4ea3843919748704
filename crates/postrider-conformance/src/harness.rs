//! What a store's tests give the suite: fresh logs, and applications that write to them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Clock, NewEvent, Result, Store, Uuid};

/// Makes fresh logs of one kind of store.
#[async_trait]
pub trait Harness: Send + Sync {
    /// An empty log that nobody else uses.
    async fn log(&self, clock: Clock) -> Arc<dyn TestLog>;
}

/// One log, with an application's table beside it.
#[async_trait]
pub trait TestLog: Send + Sync {
    /// The store, as one relay has it.
    fn store(&self) -> Arc<dyn Store>;

    /// The store, as another process has it.
    async fn second_store(&self) -> Arc<dyn Store>;

    /// A transaction of an application.
    async fn begin(&self) -> Box<dyn Writer>;

    /// The ids of the events in the log, by id.
    async fn event_ids(&self) -> Vec<Uuid>;

    /// The ids of the events in the archive.
    async fn archived_ids(&self) -> Vec<Uuid>;

    /// Sets a delivery's state behind the store's back; an error is what the database says to it.
    async fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<(), String>;

    /// How often publishers have rung, if the store can tell.
    async fn rings(&self) -> Option<u64> {
        None
    }
}

/// An open transaction of an application.
#[async_trait]
pub trait Writer: Send {
    /// Changes (and so locks) an aggregate and returns its new version: 1, 2, 3, …
    async fn change(&mut self, aggregate: &str) -> Result<i64>;

    /// Makes sure that the transaction has begun to write, without touching an aggregate.
    async fn touch(&mut self) -> Result<()>;

    /// Records an event.
    async fn record(&mut self, event: &NewEvent) -> Result<Uuid>;

    /// Records an event unless its id is taken.
    async fn record_once(&mut self, event: &NewEvent) -> Result<bool>;

    /// Records events, all or none.
    async fn record_all(&mut self, events: &[NewEvent]) -> Result<Vec<Uuid>>;

    /// Inserts a row into the event table by plain SQL, with an id if one is given.
    async fn plain_insert(&mut self, aggregate: &str, id: Option<i64>) -> Result<(), String>;

    /// Records an event by a statement that takes a while before it has written its row.
    async fn record_slowly(&mut self, aggregate: &str, pause: Duration) -> Result<(), String>;

    /// Tries to change an event's payload by plain SQL.
    async fn update_event(&mut self, event_id: Uuid) -> Result<(), String>;

    /// Tries to delete an event by plain SQL.
    async fn delete_event(&mut self, event_id: Uuid) -> Result<(), String>;

    /// Marks an event as handled.
    async fn first_time(&mut self, consumer: &str, event_id: Uuid) -> Result<bool>;

    /// Marks a text key as handled.
    async fn first_time_by_key(&mut self, consumer: &str, key: &str) -> Result<bool>;

    /// Sets a savepoint.
    async fn savepoint(&mut self);

    /// Goes back to the savepoint.
    async fn rollback_to_savepoint(&mut self);

    /// Commits.
    async fn commit(self: Box<Self>) -> Result<()>;

    /// Rolls back.
    async fn rollback(self: Box<Self>);
}
