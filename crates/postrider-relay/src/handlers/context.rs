//! The context of a handler: information and actions in addition to its event.

use std::sync::Arc;

use async_trait::async_trait;
use postrider_core::{NewEvent, OutboxSource, Recordable, Recorded, Result, Uuid};

/// Information and actions for a handler, in addition to its event.
///
/// ```
/// use postrider::{Context, Event, Failure, NewEvent, Received};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(stream = "orders", aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// async fn receipt(event: Received<OrderPaid>, context: Context) -> Result<(), Failure> {
///     println!("attempt {} for {}", context.attempt(), context.subscription());
///     let order = event.order;
///     context.record(&NewEvent::of("mail", "ReceiptRequested", "Order", order.to_string(), &order)?).await?;
///     Ok(())
/// }
/// # postrider::Relay::new(&postrider::testing::Outbox::new()).subscribe("receipts", |s| s.on(receipt));
/// ```
#[derive(Clone)]
pub struct Context {
    pub(crate) event: Arc<Recorded>,
    pub(crate) attempt: u32,
    pub(crate) subscription: Arc<str>,
    pub(crate) recorder: Arc<dyn Recorder>,
}

impl Context {
    /// The event, or the first one of a batch.
    pub fn event(&self) -> &Recorded {
        &self.event
    }

    /// The number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The subscription, or the group of a consumer.
    pub fn subscription(&self) -> &str {
        &self.subscription
    }

    /// The trace context in which the event was recorded: a W3C `traceparent`, or whatever the application set.
    pub fn trace(&self) -> Option<&str> {
        self.event.headers.traceparent()
    }

    /// Records an event that this one caused, in its own transaction.
    ///
    /// A handler that runs again records it again. [`Tx::record`](crate::Tx::record) in a transactional handler does not.
    pub async fn record(&self, event: &(impl Recordable + Sync + ?Sized)) -> Result<()> {
        let follow_up = follow_up(&self.event, event)?;
        self.recorder.record(&follow_up).await?;
        Ok(())
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("event_id", &self.event.event_id)
            .field("attempt", &self.attempt)
            .field("subscription", &self.subscription)
            .finish_non_exhaustive()
    }
}

/// The event to record after `cause`: with its correlation, caused by it, in its trace; what it says itself stands.
pub(crate) fn follow_up(cause: &Recorded, event: &(impl Recordable + ?Sized)) -> Result<NewEvent> {
    let mut event = event.to_new_event()?.into_owned();
    if event.headers.correlation_id().is_none() {
        let own = cause.event_id.to_string();
        event.headers.set_correlation_id(cause.headers.correlation_id().unwrap_or(&own).to_owned());
    }
    if event.headers.causation_id().is_none() {
        event.headers.set_causation_id(cause.event_id);
    }
    if let (None, Some(trace)) = (event.headers.traceparent(), cause.headers.traceparent()) {
        event.headers.set_traceparent(trace.to_owned());
    }
    Ok(event)
}

/// Records in a transaction of its own, whatever the database.
#[async_trait]
pub(crate) trait Recorder: Send + Sync {
    async fn record(&self, event: &NewEvent) -> Result<Uuid>;
}

#[async_trait]
impl<S: OutboxSource> Recorder for S {
    async fn record(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_alone(event).await
    }
}
