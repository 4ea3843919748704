//! What a consumer has handled, written in the consumer's own transaction.

use std::sync::Arc;

use postrider_core::{Clock, Limits, Result, inbox_key};
use postrider_sql::{clock, statement};
use sqlx_mysql::MySqlConnection;
use uuid::Uuid;

use crate::outbox::Outbox;
use crate::sql::Sql;

/// What one consumer has handled.
#[derive(Debug, Clone)]
pub struct Inbox {
    consumer: Arc<str>,
    clock: Clock,
}

impl Outbox {
    /// The inbox of a consumer, in this database.
    pub fn inbox(&self, consumer: impl Into<String>) -> Inbox {
        Inbox { consumer: consumer.into().into(), clock: self.clock.clone() }
    }
}

impl Inbox {
    /// Marks an event as handled, in the transaction of `conn`; returns whether it was the first time.
    ///
    /// If it returns `false`, skip the change: another transaction already made it.
    pub async fn first_time(&self, conn: &mut MySqlConnection, event_id: Uuid) -> Result<bool> {
        Limits::check_consumer(&self.consumer)?;
        let note = Sql::default().query(statement!("inbox.sql")).bind(&*self.consumer).bind(event_id);
        Ok(note.bind(clock::given(&self.clock)).execute(conn, "inbox").await? > 0)
    }

    /// Marks a text instead of an event id, such as `"transaction:account"`: for duplicates that are different events.
    ///
    /// The whole text counts, byte for byte; it must have 1 to 500 bytes and no NUL character. The mark is stored as the id that
    /// [`inbox_key`](postrider_core::inbox_key) makes of it.
    pub async fn first_time_by_key(&self, conn: &mut MySqlConnection, key: &str) -> Result<bool> {
        self.first_time(conn, inbox_key(key)?).await
    }
}
