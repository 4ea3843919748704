//! The methods by which a builder takes handlers: a subscription and a broker's consumer have the same ones.

/// The methods of a builder for its handlers; it has a field `handlers`, a [`DispatcherBuilder`](crate::DispatcherBuilder) for its
/// source `S`.
#[doc(hidden)]
#[macro_export]
macro_rules! handler_methods {
    () => {
        /// Handles events of the type that the handler receives.
        ///
        /// A handler is an async function or closure that takes a [`Received`](postrider_relay::Received) event, or a `Vec` of them, and
        /// optionally, in any order, a [`Context`](postrider_relay::Context) and a [`Tx`](postrider_relay::Tx); or a struct that
        /// implements [`Handle`](postrider_relay::Handle).
        #[must_use]
        pub fn on<H, Shape>(mut self, handler: H) -> Self
        where
            H: $crate::Handler<S, Shape>,
            H::Payload: ::postrider_core::Event + $crate::Decode,
            Shape: 'static,
        {
            self.handlers.on(handler);
            self
        }

        /// Handles events of this type; the payload type need not implement [`Event`](trait@::postrider_core::Event).
        #[must_use]
        pub fn on_type<H, Shape>(mut self, event_type: &str, handler: H) -> Self
        where
            H: $crate::Handler<S, Shape>,
            H::Payload: $crate::Decode,
            Shape: 'static,
        {
            self.handlers.on_type(event_type, handler);
            self
        }

        /// Handles events without a handler of their own.
        #[must_use]
        pub fn on_other<H, Shape>(mut self, handler: H) -> Self
        where
            H: $crate::Handler<S, Shape>,
            H::Payload: $crate::Decode,
            Shape: 'static,
        {
            self.handlers.on_other(handler);
            self
        }

        /// Declares that the handler that was added last records events of type `E`. The catalog shows it as a follow-up; nothing
        /// checks it.
        #[must_use]
        pub fn follow_up<E: ::postrider_core::Event>(mut self) -> Self {
            self.handlers.follow_up(E::NAME);
            self
        }

        /// What happens to an event without a handler. Default: it is skipped. With
        /// [`Unknown::Reject`](postrider_relay::Unknown::Reject) it is dead at once; a consumer writes it as a dead letter.
        #[must_use]
        pub fn unknown(mut self, unknown: $crate::Unknown) -> Self {
            self.handlers.unknown(unknown);
            self
        }

        /// Gives plain handlers an inbox: an event that was handled successfully is not handled again.
        ///
        /// The mark is written after the handler has succeeded, in its own transaction. So an event is handled again if the process
        /// died between the two, or if the database rejected the mark; and two processes may both handle an event while a frozen
        /// one loses its lease or its partition. All other repetitions never reach the handler. For a handler that writes to this
        /// database, a [`Tx`](postrider_relay::Tx) is better: its effect happens exactly once.
        #[must_use]
        pub fn inbox(mut self) -> Self {
            self.handlers.inbox(true);
            self
        }

        /// Maximum number of events per transaction of transactional handlers. Default: 1. If one of them fails, the transaction rolls
        /// back, and each event is handled alone.
        #[must_use]
        pub fn max_tx_batch(mut self, events: usize) -> Self {
            self.handlers.max_tx_batch(events);
            self
        }

        /// Upcasters from old versions of payloads to the newest. In a subscription, they replace the relay's upcasters.
        #[must_use]
        pub fn upcasters(mut self, upcasters: $crate::Upcasters) -> Self {
            self.handlers.upcasters(upcasters);
            self
        }

        /// What happens to an event of a newer version than its handler takes. Default: it waits, and later events of its key wait
        /// behind it; in a consumer, all later records of its partition.
        #[must_use]
        pub fn newer_version(mut self, newer_version: $crate::NewerVersion) -> Self {
            self.handlers.newer_version(newer_version);
            self
        }

        /// The timeout of one event type. Default: the timeout of all events.
        #[must_use]
        pub fn timeout_of(mut self, event_type: &str, timeout: ::std::time::Duration) -> Self {
            self.handlers.timeout_of(event_type, timeout);
            self
        }
    };
}
