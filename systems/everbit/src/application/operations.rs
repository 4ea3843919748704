//! Operations: the kill switch.

use uuid::Uuid;

use crate::application::{Answer, Desk, EventBus, Work};
use crate::domain::{About, KillSwitchChanged, Timestamp};

/// The commands of whoever runs everbit.
#[derive(Debug, Clone)]
pub struct Operations<D> {
    desk: D,
}

impl<D: Desk> Operations<D> {
    /// With its port.
    pub fn new(desk: D) -> Self {
        Self { desk }
    }

    /// Turns the kill switch, at once: commands that are queued find it on.
    pub async fn turn_kill_switch(&self, engaged: bool, about: &About, now: Timestamp) -> Answer<Uuid> {
        let mut work = self.desk.begin().await?;
        work.set_kill_switch(engaged, now).await?;
        let id = work.publish(&KillSwitchChanged { engaged }, about).await?;
        work.commit().await?;
        Ok(id)
    }

    /// Keeps the change in the log of operations, once.
    pub async fn note(&self, event_id: Uuid, event: &KillSwitchChanged, now: Timestamp) -> Answer<()> {
        let mut work = self.desk.begin().await?;
        let text = if event.engaged { "kill switch on" } else { "kill switch off" };
        work.log_operation(event_id, text, now).await?;
        work.commit().await
    }
}
