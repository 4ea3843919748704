//! Operations: the kill switch.

use uuid::Uuid;

use crate::application::{Answer, EventBus, Transactions, Work};
use crate::domain::{About, KillSwitchChanged, StrayOrderSent, Timestamp};

/// The commands of whoever runs everbit.
#[derive(Debug, Clone)]
pub struct Operations<D> {
    transactions: D,
}

impl<D: Transactions> Operations<D> {
    /// With its port.
    pub fn new(transactions: D) -> Self {
        Self { transactions }
    }

    /// Turns the kill switch, at once: commands that are queued find it on.
    pub async fn turn_kill_switch(&self, engaged: bool, about: &About, now: Timestamp) -> Answer<Uuid> {
        let mut work = self.transactions.begin().await?;
        work.set_kill_switch(engaged, now).await?;
        let id = work.publish(&KillSwitchChanged { engaged }, about).await?;
        work.commit().await?;
        Ok(id)
    }

    /// Keeps the change in the log of operations, once.
    pub async fn note(&self, event_id: Uuid, event: &KillSwitchChanged, now: Timestamp) -> Answer<()> {
        self.log(event_id, if event.engaged { "kill switch on" } else { "kill switch off" }, now).await
    }

    /// Keeps in the log of operations, once, that somebody must look at the exchange.
    pub async fn note_stray(&self, event_id: Uuid, event: &StrayOrderSent, now: Timestamp) -> Answer<()> {
        let StrayOrderSent { identifier, order_id, .. } = event;
        let order = order_id.as_deref().unwrap_or("unknown");
        let text =
            format!("stray order {order} of {identifier}: given up here, and perhaps alive at the exchange");
        self.log(event_id, &text, now).await
    }

    async fn log(&self, event_id: Uuid, text: &str, now: Timestamp) -> Answer<()> {
        let mut work = self.transactions.begin().await?;
        work.log_operation(event_id, text, now).await?;
        work.commit().await
    }
}
