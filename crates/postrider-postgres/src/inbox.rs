//! The inbox: what a consumer has handled, in the consumer's own transaction.

use std::sync::Arc;

use postrider_core::{Clock, Limits, Result, Uuid, inbox_key};
use sqlx_postgres::PgConnection;

use crate::error::during;
use crate::outbox::Outbox;
use crate::sql::Sql;

/// What one consumer has handled, by event id.
///
/// ```no_run
/// use postrider_core::Uuid;
/// use postrider_postgres::Outbox;
///
/// /// Books the payment of an event that arrived from elsewhere, once however often it arrives.
/// async fn book(outbox: &Outbox, event_id: Uuid) -> Result<(), Box<dyn std::error::Error>> {
///     let mut tx = outbox.pool().begin().await?;
///     if outbox.inbox("bookkeeping").first_time(&mut tx, event_id).await? {
///         sqlx::query("update balances set paid = paid + 1").execute(&mut *tx).await?;
///     }
///     Ok(tx.commit().await?)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Inbox {
    sql: Arc<Sql>,
    clock: Clock,
    consumer: String,
}

impl Inbox {
    pub(crate) fn new(outbox: &Outbox, consumer: String) -> Self {
        Self { sql: Arc::clone(&outbox.sql), clock: outbox.clock.clone(), consumer }
    }

    /// Marks an event as handled, in the caller's transaction; returns whether it was the first time.
    ///
    /// If it returns `true`, make the change in the same transaction. If it returns `false`, skip the change: another transaction
    /// already made it. So the change happens once, as long as the inbox keeps its marks. Two transactions that mark the same event
    /// wait for each other.
    pub async fn first_time(&self, connection: &mut PgConnection, event_id: Uuid) -> Result<bool> {
        Limits::check_consumer(&self.consumer)?;
        let query = self.sql.inbox.query().bind(self.consumer.clone()).bind(event_id).bind(self.clock.now());
        Ok(query.execute(connection).await.map_err(during("inbox"))?.rows_affected() > 0)
    }

    /// Marks a text instead of an event id, such as `"transaction:account"`: for duplicates that are different events.
    ///
    /// The whole text counts, byte for byte; it must have 1 to 500 bytes and no NUL character. The mark is stored as the id that
    /// [`inbox_key`](postrider_core::inbox_key) makes of it.
    pub async fn first_time_by_key(&self, connection: &mut PgConnection, key: &str) -> Result<bool> {
        self.first_time(connection, inbox_key(key)?).await
    }
}
