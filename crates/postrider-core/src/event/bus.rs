//! `EventBus`: publishing without knowing the destination.

use async_trait::async_trait;

use crate::{Recordable, Result, Uuid};

/// What application code needs to publish events: an outbox today, a broker tomorrow.
///
/// `Within` is the connection, in a transaction, that the application changes its data with. An outbox records in that
/// transaction, so the event is published if and only if the transaction commits. A bus that sends directly to a broker
/// ignores `within`: it may publish events of transactions that roll back, or lose events of those that commit. Handlers run
/// unchanged behind a subscription and behind a broker's consumer.
///
/// ```
/// use postrider_core::{EventBus, NewEvent, Result};
///
/// /// Knows neither the database nor whether there is a broker.
/// async fn pay<Tx: Send>(bus: &impl EventBus<Tx>, tx: &mut Tx, order: u64) -> Result<()> {
///     // Change the order here, in the same transaction.
///     let paid = NewEvent::of("orders", "OrderPaid", "Order", order.to_string(), &order)?;
///     bus.publish(tx, &paid).await?;
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait EventBus<Within: ?Sized + Send>: Send + Sync {
    /// Publishes an event and returns its id.
    async fn publish(&self, within: &mut Within, event: &(dyn Recordable + Sync)) -> Result<Uuid>;
}
