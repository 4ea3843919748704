//! The transaction of a handler.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use postrider_core::{OutboxSource, Recordable, Recorded, Result, inbox_key};

use crate::handlers::context::follow_up;

/// A handler's transaction: the inbox mark of the event, the handler's changes and the events it records commit together or not
/// at all.
///
/// It commits when the handler returns `Ok`, and rolls back when it fails. Don't call external systems in it: it holds locks.
///
/// ```
/// use postrider::{Event, Failure, Received, Tx, testing::Outbox};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct InvoiceIssued { order: i64 }
/// async fn invoice(event: Received<OrderPaid>, mut tx: Tx<Outbox>) -> Result<(), Failure> {
///     // … change your data on `&mut *tx`, the connection of the store …
///     tx.record(&InvoiceIssued { order: event.order }).await?;
///     Ok(())
/// }
/// ```
pub struct Tx<S: OutboxSource> {
    transaction: Option<S::Transaction>,
    home: Home<S>,
    source: S,
    consumer: Arc<str>,
    cause: Option<Arc<Recorded>>,
}

/// Returns the transaction to the relay when the handler drops it.
pub(crate) struct Home<S: OutboxSource>(Arc<Mutex<Option<S::Transaction>>>);

impl<S: OutboxSource> Home<S> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// What came back; nothing while the handler (or something it started) still has it.
    pub(crate) fn take(&self) -> Option<S::Transaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<S: OutboxSource> Clone for Home<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: OutboxSource> Tx<S> {
    pub(crate) fn new(
        source: S,
        transaction: S::Transaction,
        home: Home<S>,
        consumer: Arc<str>,
        cause: Option<Arc<Recorded>>,
    ) -> Self {
        Self { transaction: Some(transaction), home, source, consumer, cause }
    }

    /// Whether this subscription (or consumer group) sees a text key for the first time; marks it in the inbox.
    ///
    /// The inbox knows events by their ids. Where two *different* events are duplicates of each other, because the same business key is
    /// in both, mark that key, and make the change only at `true`.
    ///
    /// *Guarantees*: the mark commits with the handler's changes or not at all, so a handler that fails frees its key; two that race
    /// for one key wait for each other; each subscription has its own keys. It holds for as long as the inbox is kept. *Caller must*: give 1
    /// to 500 bytes without a NUL character; the whole text counts, byte for byte; take several keys of one transaction in the same
    /// order everywhere.
    ///
    /// ```
    /// use postrider_core::OutboxSource;
    /// use postrider_relay::{Failure, Raw, Received, Tx};
    ///
    /// async fn post<S: OutboxSource>(event: Received<Raw>, mut tx: Tx<S>) -> Result<(), Failure> {
    ///     // The publisher gives a repeated request a new event id, and the same transaction and account.
    ///     let key = format!("{}:{}", event.event().aggregate_id, event.event().key());
    ///     if tx.first_time_by_key(&key).await? {
    ///         // … change the balance, on `&mut *tx` …
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn first_time_by_key(&mut self, key: &str) -> Result<bool> {
        let id = inbox_key(key)?;
        let (source, consumer) = (self.source.clone(), Arc::clone(&self.consumer));
        source.mark_in(&mut *self, &consumer, id).await
    }

    /// Records an event that the handled event caused, and sets its correlation and causation ids. In a handler of several events the
    /// ids are not set: use [`record_after`](Self::record_after), which names the cause.
    pub async fn record(&mut self, event: &(impl Recordable + Sync + ?Sized)) -> Result<()> {
        let event = match &self.cause {
            Some(cause) => follow_up(cause, event)?,
            None => event.to_new_event()?.into_owned(),
        };
        let source = self.source.clone();
        source.record_in(&mut *self, &event).await?;
        Ok(())
    }

    /// Records an event that `cause` caused, in a handler of several events.
    pub async fn record_after(
        &mut self,
        cause: &Recorded,
        event: &(impl Recordable + Sync + ?Sized),
    ) -> Result<()> {
        let event = follow_up(cause, event)?;
        let source = self.source.clone();
        source.record_in(&mut *self, &event).await?;
        Ok(())
    }
}

impl<S: OutboxSource> Deref for Tx<S> {
    type Target = S::Connection;

    fn deref(&self) -> &S::Connection {
        match &self.transaction {
            Some(transaction) => transaction,
            None => unreachable!("a transaction leaves its Tx only when that is dropped"),
        }
    }
}

impl<S: OutboxSource> DerefMut for Tx<S> {
    fn deref_mut(&mut self) -> &mut S::Connection {
        match &mut self.transaction {
            Some(transaction) => transaction,
            None => unreachable!("a transaction leaves its Tx only when that is dropped"),
        }
    }
}

impl<S: OutboxSource> Drop for Tx<S> {
    fn drop(&mut self) {
        *self.home.0.lock().unwrap_or_else(PoisonError::into_inner) = self.transaction.take();
    }
}

impl<S: OutboxSource> std::fmt::Debug for Tx<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tx")
    }
}
