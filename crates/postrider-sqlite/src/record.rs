//! Recording events, in the caller's transaction.

use postrider_core::{NewEvent, Recordable, Result};
use postrider_sql::record::{Portion, bind};
use sqlx_core::query::query;
use sqlx_sqlite::SqliteConnection;
use uuid::Uuid;

use crate::error::failed;
use crate::outbox::Outbox;
use crate::sql::SqliteDialect;

const RECORD: &str = include_str!("../sql/record.sql");
const RECORD_ONCE: &str = include_str!("../sql/record_once.sql");
const OP: &str = "record";

/// A statement may have 32,766 parameters, and a row has 13.
const PORTION: Portion = Portion { rows: 2_500, bytes: usize::MAX };

impl Outbox {
    postrider_sql::record_methods! {
        SqliteConnection, SqliteDialect, RECORD, PORTION,
        /// Records events in the order given: all of them, or none if one is refused.
        record_all
    }

    /// Records an event unless its id already exists; returns whether it was recorded.
    pub async fn record_once(&self, conn: &mut SqliteConnection, event: &impl Recordable) -> Result<bool> {
        let event = self.recording.prepare(event)?;
        let done =
            bind::<SqliteDialect>(query(RECORD_ONCE), &event).execute(conn).await.map_err(failed(OP))?;
        self.poller.recorded();
        Ok(done.rows_affected() > 0)
    }

    /// Records an event in a transaction of its own. Use it for an event without a change of your data.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        let mut conn = self.pool.acquire().await.map_err(failed(OP))?;
        self.record(&mut conn, &event).await
    }
}

/// Inserts an event that was checked.
pub(crate) async fn insert(conn: &mut SqliteConnection, event: &NewEvent) -> Result<()> {
    bind::<SqliteDialect>(query(RECORD), event).execute(conn).await.map_err(failed(OP))?;
    Ok(())
}
