//! The handle that an application records with.

use std::sync::Arc;

use postrider_core::{Clock, Limits, Recorded, Result, Trace};

use crate::log::Log;
use crate::store::MemoryStore;
use crate::transaction::Transaction;

/// An outbox in memory. Clones share everything.
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) log: Arc<Log>,
    pub(crate) source: Option<Arc<str>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) trace: Option<Trace>,
}

impl Outbox {
    /// An outbox with an empty log of its own.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An outbox with settings of its own.
    pub fn builder() -> OutboxBuilder {
        OutboxBuilder::default()
    }

    /// What relays read from.
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
    source: Option<Arc<str>>,
    limits: Limits,
    clock: Clock,
    trace: Option<Trace>,
}

impl OutboxBuilder {
    /// The application that records: the `source` header of events that have none.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into().into());
        self
    }

    /// How large the parts of an event may be.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The clock that everything goes by; the machine's unless set.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What is asked for the trace at each recording: the `traceparent` header of events that have none.
    #[must_use]
    pub fn trace(mut self, trace: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.trace = Some(Trace::new(trace));
        self
    }

    /// The outbox, with an empty log of its own.
    pub fn build(self) -> Outbox {
        Outbox {
            log: Arc::new(Log::new(self.clock)),
            source: self.source,
            limits: Arc::new(self.limits),
            trace: self.trace,
        }
    }
}
