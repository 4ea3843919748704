//! What a relay is made on: a log, and the transactions that handlers are given.

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Clock, Lease, NewEvent, Recorded, Result, Store, Uuid};

/// A database that has a log and can give handlers transactions on it: each store's `Outbox`.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox",
    label = "not an outbox",
    note = "give the `Outbox` of `postrider::postgres`, `postrider::mysql`, `postrider::sqlite` or `postrider::testing`; a pool becomes one by \
            `Outbox::migrated(&pool).await?`"
)]
pub trait Source: Clone + Send + Sync + 'static {
    /// What statements run on.
    type Connection: Send + 'static;
    /// An open transaction; dropped, it is rolled back.
    type Transaction: DerefMut<Target = Self::Connection> + Send + 'static;

    /// The log, for a relay.
    async fn open(&self) -> Result<Arc<dyn Store>>;

    /// The clock that the log goes by.
    fn clock(&self) -> Clock;

    /// Whether the transaction of a handler keeps everybody else from writing, relays included. A lane then waits for it,
    /// however long it takes. No unless it says.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Begins the transaction of a handler: says of each event whether it is handled for the first time, and has marked those.
    ///
    /// *Guarantees*: the marks stand if, and only if, the transaction commits; while it is open nobody else can claim the
    /// lane of the lease, so that what a stale holder does comes to nothing. *Caller must*: do no outside call in it.
    /// *On failure*: nothing is marked; [`LeaseLost`](crate::ErrorKind::LeaseLost) says that the lease is no longer held.
    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)>;

    /// Commits it. *On failure*: it may or may not have been committed; its marks tell when it is tried again.
    async fn commit(transaction: Self::Transaction) -> Result<()>;

    /// Rolls it back.
    async fn rollback(transaction: Self::Transaction) -> Result<()>;

    /// Records an event in a transaction.
    async fn record_in(&self, connection: &mut Self::Connection, event: &NewEvent) -> Result<Uuid>;

    /// Records an event in a transaction of its own.
    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid>;

    /// The events of the log after an id, by id: for tests and tools, not for relays.
    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>>;

    /// Which of these events a consumer has marked as handled.
    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>>;
}

/// What a handler's transaction is for.
#[derive(Debug, Clone, Copy)]
pub struct Effect<'a> {
    /// The lease that must be held, if there is one.
    pub lease: Option<&'a Lease>,
    /// Whose inbox the events are marked in.
    pub consumer: &'a str,
    /// The events to mark, each once.
    pub events: &'a [Uuid],
    /// How long a statement of the handler may take.
    pub timeout: Duration,
}
