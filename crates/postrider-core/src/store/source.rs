//! What a relay needs from a database: a log, and transactions for handlers.

use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Clock, Lease, NewEvent, Recorded, Result, Store, Uuid};

/// A database with a log that can give transactions to handlers: each store's `Outbox`.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox",
    label = "not an outbox",
    note = "give the `Outbox` of `postrider::postgres`, `postrider::mysql`, `postrider::sqlite` or `postrider::testing`; a pool becomes one by \
            `Outbox::migrated(&pool).await?`"
)]
pub trait OutboxSource: Clone + Send + Sync + 'static {
    /// The connection that statements run on.
    type Connection: Send + 'static;
    /// An open transaction, which rolls back when it is dropped.
    type Transaction: DerefMut<Target = Self::Connection> + Send + 'static;

    /// Opens the log, for a relay.
    async fn open(&self) -> Result<Arc<dyn Store>>;

    /// The clock of the log.
    fn clock(&self) -> Clock;

    /// Whether the transaction of a handler blocks all other writers, including relays. A lane then waits for it, however long it
    /// takes. Default: no.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Begins the transaction of a handler and marks the events in the inbox; returns for each whether this is its first time.
    ///
    /// *Guarantees*: the marks are stored if and only if the transaction commits; while it is open, nobody else can claim the lane of
    /// the lease, so a stale holder has no effect. *Caller must*: not call external systems in it. *On failure*: nothing is
    /// marked; [`LeaseLost`](crate::ErrorKind::LeaseLost) means that the lease is no longer held.
    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)>;

    /// Commits it. *On failure*: it may or may not have been committed; the marks show it at the next attempt.
    async fn commit(transaction: Self::Transaction) -> Result<()>;

    /// Rolls it back.
    async fn rollback(transaction: Self::Transaction) -> Result<()>;

    /// Marks an id in the inbox of a consumer, in a transaction; returns whether this is its first time.
    ///
    /// *Guarantees*: the mark is stored if and only if the transaction commits; two that race for one id wait for each other.
    async fn mark_in(&self, connection: &mut Self::Connection, consumer: &str, id: Uuid) -> Result<bool>;

    /// Records an event in a transaction.
    async fn record_in(&self, connection: &mut Self::Connection, event: &NewEvent) -> Result<Uuid>;

    /// Records an event in a transaction of its own.
    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid>;

    /// The events after an id, by id: for tests and tools, not for relays.
    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>>;

    /// For each of these events, whether a consumer has marked it as handled.
    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>>;
}

/// The purpose of a handler's transaction.
#[derive(Debug, Clone, Copy)]
pub struct Effect<'a> {
    /// The lease that must be held, if there is one.
    pub lease: Option<&'a Lease>,
    /// The consumer in whose inbox the events are marked.
    pub consumer: &'a str,
    /// The events to mark, each once.
    pub events: &'a [Uuid],
    /// Timeout of the handler's statements.
    pub timeout: Duration,
}
