//! What a consumer has handled, written in the consumer's own transaction.

use std::sync::Arc;

use postrider_core::{Limits, Result, inbox_key};
use uuid::Uuid;

use crate::lock::Key;
use crate::outbox::Outbox;
use crate::transaction::Connection;

/// What one consumer has handled.
#[derive(Debug, Clone)]
pub struct Inbox {
    consumer: Arc<str>,
}

impl Outbox {
    /// The inbox of a consumer.
    pub fn inbox(&self, consumer: impl Into<String>) -> Inbox {
        Inbox { consumer: consumer.into().into() }
    }
}

impl Inbox {
    /// Marks an event as handled, in the caller's transaction; returns whether it was the first time.
    ///
    /// If it returns `false`, skip the change: another transaction already made it. Two
    /// transactions that mark the same event wait for each other.
    pub async fn first_time(&self, connection: &mut Connection, event_id: Uuid) -> Result<bool> {
        const OP: &str = "inbox";
        Limits::check_consumer(&self.consumer)?;
        connection.hold.take(Key::Mark(Arc::clone(&self.consumer), event_id), OP).await?;
        let mark = (Arc::clone(&self.consumer), event_id);
        let first = !connection.has_mark(&mark);
        if first {
            connection.write_mark(mark);
        }
        Ok(first)
    }

    /// Marks a text instead of an event id, such as `"transaction:account"`: for duplicates that are different events.
    ///
    /// The whole text counts, byte for byte; it must have 1 to 500 bytes and no NUL character. The mark is stored as the id that
    /// [`inbox_key`](postrider_core::inbox_key) makes of it.
    pub async fn first_time_by_key(&self, connection: &mut Connection, key: &str) -> Result<bool> {
        self.first_time(connection, inbox_key(key)?).await
    }
}
