//! What a consumer has handled, written in the consumer's own transaction.

use std::sync::Arc;

use postrider_core::{Clock, Error, ErrorKind, Limits, Result};
use sqlx_core::query::query;
use sqlx_sqlite::SqliteConnection;
use uuid::Uuid;

use crate::clock;
use crate::error::failed;
use crate::outbox::Outbox;

const OP: &str = "inbox";

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
    /// Notes that the event is handled in the transaction that `conn` is in; whether that is the first time.
    ///
    /// At `false`, leave the change out: it was made by the transaction that said so first.
    pub async fn first_time(&self, conn: &mut SqliteConnection, event_id: Uuid) -> Result<bool> {
        check_consumer(&self.consumer)?;
        let noted = query(include_str!("../sql/inbox.sql"))
            .bind(&*self.consumer)
            .bind(event_id)
            .bind(clock::given(&self.clock))
            .execute(conn)
            .await
            .map_err(failed(OP))?;
        Ok(noted.rows_affected() > 0)
    }
}

/// Whether the inbox can keep a consumer's name.
pub(crate) fn check_consumer(consumer: &str) -> Result<()> {
    if consumer.is_empty() || consumer.len() > Limits::NAME || consumer.contains('\0') {
        let message = format!("a consumer's name must have 1 to {} bytes and no NUL character", Limits::NAME);
        return Err(Error::new(ErrorKind::Invalid, OP, message));
    }
    Ok(())
}
