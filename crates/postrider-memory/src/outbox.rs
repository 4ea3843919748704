//! The handle that an application records with.

use std::sync::Arc;

use postrider_core::{Clock, Limits, RecordOptions, Recorded, Result, Trace};

use crate::log::Log;
use crate::store::MemoryStore;
use crate::transaction::Transaction;

/// An outbox in memory. Clones share everything.
///
/// ```
/// use postrider_core::NewEvent;
/// use postrider_memory::Outbox;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> postrider_core::Result<()> {
/// let outbox = Outbox::new();
/// let mut tx = outbox.begin().await?;
/// outbox.record(&mut tx, &NewEvent::of("orders", "OrderPaid", "Order", "7", "paid")?).await?;
/// tx.commit().await?;
/// assert_eq!(outbox.recorded().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) log: Arc<Log>,
    pub(crate) recording: Arc<RecordOptions>,
}

impl Outbox {
    /// An outbox with an empty log.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An outbox with settings.
    pub fn builder() -> OutboxBuilder {
        OutboxBuilder::default()
    }

    /// The log, for a relay.
    pub fn store(&self) -> MemoryStore {
        MemoryStore::new(&self.log)
    }

    /// Begins a transaction. Any number of them may be open at once.
    pub async fn begin(&self) -> Result<Transaction> {
        Ok(Transaction::begin(&self.log, None))
    }

    /// The events in the log, in the order in which they were committed.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.log.data().events.values().cloned().collect()
    }

    /// The events that retention has moved into the archive.
    pub fn archived(&self) -> Vec<Recorded> {
        self.log.data().archive.clone()
    }

    /// The value that is committed for a key. See [`Connection::set`](crate::Connection::set).
    pub fn get(&self, key: &str) -> Option<String> {
        self.log.data().values.get(key).cloned()
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

/// The settings of an [`Outbox`].
#[derive(Debug, Clone, Default)]
pub struct OutboxBuilder {
    recording: RecordOptions,
    clock: Clock,
}

impl OutboxBuilder {
    /// The name of the application, which becomes the header `source` of events that have none.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.recording.source = Some(source.into().into());
        self
    }

    /// How large the parts of an event may be.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.recording.limits = limits;
        self
    }

    /// The streams that this publisher may record in, where `*` matches any characters; all unless set.
    #[must_use]
    pub fn allowed_streams<T: Into<String>>(mut self, streams: impl IntoIterator<Item = T>) -> Self {
        self.recording.allowed = self.recording.allowed.streams(streams);
        self
    }

    /// The event types that this publisher may record, where `*` matches any characters; all unless set.
    #[must_use]
    pub fn allowed_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.recording.allowed = self.recording.allowed.types(types);
        self
    }

    /// The clock of leases, retries and retention; by default that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the trace of an event that has no header `traceparent`. It is called at each record, in the code that records.
    #[must_use]
    pub fn trace(mut self, trace: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.recording.trace = Some(Trace::new(trace));
        self
    }

    /// The outbox, with an empty log of its own.
    pub fn build(self) -> Outbox {
        Outbox { log: Arc::new(Log::new(self.clock)), recording: Arc::new(self.recording) }
    }
}
