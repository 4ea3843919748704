//! What every outbox on a database has: its settings, and what it tells of itself.

use postrider_core::{Allowed, Clock, Limits, RecordOptions, Trace};

/// What the builder of an outbox was told.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The header `source` of events that have none.
    pub source: Option<String>,
    /// Gives the header `traceparent` of events that have none.
    pub trace: Option<Trace>,
    /// The limits, if there are some of its own.
    pub limits: Option<Limits>,
    /// The streams and event types that it takes.
    pub allowed: Allowed,
    /// The clock of leases, retries and retention.
    pub clock: Clock,
}

impl Settings {
    /// The largest payload, if one was set.
    pub fn max_payload(&self) -> Option<usize> {
        self.limits.as_ref().map(|limits| limits.payload)
    }

    /// How events are recorded in a log that takes payloads of so many bytes. Unless there are limits of its own, a payload may be what
    /// the log takes.
    pub fn record_options(&self, most: usize) -> RecordOptions {
        let limits = self.limits.clone();
        let mut limits = limits.unwrap_or(Limits { payload: usize::MAX, ..Limits::default() });
        limits.payload = limits.payload.min(most);
        RecordOptions {
            source: self.source.as_deref().map(Into::into),
            trace: self.trace.clone(),
            limits,
            allowed: self.allowed.clone(),
        }
    }
}

/// The methods of a builder that has [`Settings`] in its field `settings`.
#[macro_export]
macro_rules! settings {
    () => {
        /// How large the parts of an event may be. The largest payload is a setting of the log for all publishers:
        /// [`migrated`](Self::migrated) stores it, and [`connect`](Self::connect) uses the smaller of the two.
        #[must_use]
        pub fn limits(mut self, limits: ::postrider_core::Limits) -> Self {
            self.settings.limits = Some(limits);
            self
        }

        /// The name of the application, which becomes the header `source` of events that have none.
        #[must_use]
        pub fn source(mut self, source: impl Into<String>) -> Self {
            self.settings.source = Some(source.into());
            self
        }

        /// Returns the trace of an event that has no header `traceparent`. It is called at each record, in the code that records.
        #[must_use]
        pub fn trace(mut self, current: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
            self.settings.trace = Some(::postrider_core::Trace::new(current));
            self
        }

        /// The streams that this publisher may record in, where `*` matches any characters; all unless set. An event of another stream
        /// is refused, also one that a handler records. Publishers that use SQL are not checked.
        #[must_use]
        pub fn allowed_streams<T: Into<String>>(mut self, streams: impl IntoIterator<Item = T>) -> Self {
            self.settings.allowed = self.settings.allowed.streams(streams);
            self
        }

        /// The event types that this publisher may record; see [`allowed_streams`](Self::allowed_streams).
        #[must_use]
        pub fn allowed_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
            self.settings.allowed = self.settings.allowed.types(types);
            self
        }

        /// The clock of leases, retries and retention; by default that of the database.
        #[must_use]
        pub fn clock(mut self, clock: ::postrider_core::Clock) -> Self {
            self.settings.clock = clock;
            self
        }
    };
}

/// The methods of an outbox on a pool by which it is made and tells what it is made of. It has a builder `OutboxBuilder`, and fields
/// `pool` and `recording`.
#[macro_export]
macro_rules! outbox_methods {
    ($pool:ty) => {
        /// Returns the outbox of a database that is already migrated. It checks the schema and changes nothing.
        pub async fn connect(pool: &$pool) -> ::postrider_core::Result<Self> {
            Self::builder().connect(pool).await
        }

        /// An outbox with settings.
        pub fn builder() -> OutboxBuilder {
            OutboxBuilder::default()
        }

        /// The pool that it was created with.
        pub fn pool(&self) -> &$pool {
            &self.pool
        }

        /// The size limits of an event. For payloads, it is the smaller of this outbox's limit and the log's.
        pub fn limits(&self) -> &::postrider_core::Limits {
            &self.recording.limits
        }
    };
}
