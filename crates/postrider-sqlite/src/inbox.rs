//! What a consumer has handled, written in the consumer's own transaction.

use sqlx_sqlite::SqliteConnection;

use crate::outbox::Outbox;
use crate::sql::Sql;

postrider_sql::inbox! {
    /// What one consumer has handled, by event id.
    ///
    /// ```no_run
    /// use postrider_core::Uuid;
    /// use postrider_sqlite::Outbox;
    ///
    /// /// Books the payment of an event that arrived from elsewhere, once however often it arrives.
    /// async fn book(outbox: &Outbox, event_id: Uuid) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut tx = outbox.begin().await?;
    ///     if outbox.inbox("bookkeeping").first_time(&mut tx, event_id).await? {
    ///         sqlx::query("update balances set paid = paid + 1").execute(&mut *tx).await?;
    ///     }
    ///     Ok(tx.commit().await?)
    /// }
    /// ```
    Inbox for Outbox, on SqliteConnection
}
