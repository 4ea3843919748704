//! The port of Notification: sends a message, and keeps that it was sent.

use uuid::Uuid;

use super::{Pool, sql};
use crate::adapters::discord::Discord;
use crate::contracts::Answer;
use crate::notification::Messenger;

/// Direct messages.
#[derive(Debug, Clone)]
pub struct Messages {
    pool: Pool,
    discord: Discord,
}

impl Messages {
    /// Messages through Discord, kept in this database.
    pub fn new(pool: &Pool, discord: Discord) -> Self {
        Self { pool: pool.clone(), discord }
    }

    /// Whether an event was told of. A replay may come long after Discord has forgotten the nonce.
    async fn is_sent(&self, event: Uuid) -> Answer<bool> {
        let text = "select event_id from notification.messages where event_id = $1 and channel = 'dm'";
        let found: Option<Uuid> =
            sqlx::query_scalar(sql(text)).bind(event).fetch_optional(&self.pool).await?;
        Ok(found.is_some())
    }
}

impl Messenger for Messages {
    async fn send(&mut self, event: Uuid, text: &str) -> Answer<()> {
        if self.is_sent(event).await? {
            return Ok(());
        }
        self.discord.send(event, text).await?;
        let insert = "insert into notification.messages (event_id, channel, text) values ($1, 'dm', $2)
            on conflict (event_id, channel) do nothing";
        sqlx::query(sql(insert)).bind(event).bind(text).execute(&self.pool).await?;
        Ok(())
    }
}
