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
}

impl Messenger for Messages {
    async fn send(&mut self, event: Uuid, text: &str) -> Answer<()> {
        self.discord.send(event, text).await?;
        let insert = "insert into notification.messages (event_id, channel, text) values ($1, 'dm', $2)
            on conflict (event_id, channel) do nothing";
        sqlx::query(sql(insert)).bind(event).bind(text).execute(&self.pool).await?;
        Ok(())
    }
}
