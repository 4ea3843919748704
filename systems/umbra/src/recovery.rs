//! Recovery: snapshots, restores, and the defence against attacks. It publishes, and reacts to nothing.

use std::future::Future;

use crate::contracts::{Answer, Fact};

/// The name of the context, as its events have it.
pub const CONTEXT: &str = "recovery";

/// The transaction that changes the state of this context.
pub trait Publisher: Send {
    /// Publishes an event in it.
    fn publish(&mut self, event: impl Fact) -> impl Future<Output = Answer<()>> + Send;
}

/// Publishes an event of this context; one of another context is refused.
pub async fn publish(event: impl Fact, publisher: &mut impl Publisher) -> Answer<()> {
    own(&event)?;
    publisher.publish(event).await
}

fn own<E: Fact>(_: &E) -> Answer<()> {
    if E::CONTEXT == CONTEXT {
        return Ok(());
    }
    Err(format!("{} must be published by {}, not by {CONTEXT}", E::NAME, E::CONTEXT).into())
}
