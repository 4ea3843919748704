//! Notices: the owner is told of orders. Best effort: at most once, and now and then not at all.

use uuid::Uuid;

use crate::application::{Answer, Push, Transactions, Work};
use crate::domain::Timestamp;

/// Sends notices.
#[derive(Debug, Clone)]
pub struct Notices<D, P> {
    transactions: D,
    push: P,
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It was sent.
    Sent,
    /// It was sent before, or somebody tried to.
    Known,
    /// It could not be sent, and is not tried again.
    Lost,
}

impl<D: Transactions, P: Push> Notices<D, P> {
    /// With its ports.
    pub fn new(transactions: D, push: P) -> Self {
        Self { transactions, push }
    }

    /// Tells of an event. It is written down before it is sent, so a second delivery sends nothing. A crash between the two loses
    /// the notice.
    pub async fn tell(&self, event_id: Uuid, text: &str, now: Timestamp) -> Answer<Notice> {
        let mut work = self.transactions.begin().await?;
        if !work.log_notice(event_id, text, now).await? {
            return Ok(Notice::Known);
        }
        work.commit().await?;
        Ok(if self.push.send(text).await.is_ok() { Notice::Sent } else { Notice::Lost })
    }
}
