//! What an application publishes through, without knowing where it goes.

use async_trait::async_trait;

use crate::{Recordable, Result, Uuid};

/// The one thing that an application's code needs to publish: an outbox today, a broker tomorrow.
///
/// `Within` is what the application changes its data through: a connection in a transaction. An outbox records in that
/// transaction, so that the event is published if, and only if, it commits. A bus that sends straight to a broker can't:
/// it ignores `within`, and may publish what is rolled back, or lose what is committed. Handlers need not know either: they
/// run unchanged behind a subscription and behind a broker's consumer.
#[async_trait]
pub trait EventBus<Within: ?Sized + Send>: Send + Sync {
    /// Publishes an event and returns its id.
    async fn publish(&self, within: &mut Within, event: &(dyn Recordable + Sync)) -> Result<Uuid>;
}
