//! Recording events, in the caller's transaction.

use postrider_core::{NewEvent, Recordable, Result};
use postrider_sql::record::{Portion, rows, values};
use postrider_sql::{Dialect, DriverQuery};
use sqlx_core::query::query;
use sqlx_core::sql_str::AssertSqlSafe;
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
    /// Records an event in the transaction that `conn` is in, and gives its id.
    ///
    /// It is in the log if and when that transaction commits. If it is refused, nothing was written and the
    /// transaction goes on.
    pub async fn record(
        &self,
        conn: &mut SqliteConnection,
        event: &(impl Recordable + ?Sized),
    ) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        bind(query(RECORD), &event).execute(conn).await.map_err(failed(OP))?;
        self.poller.recorded();
        Ok(event.event_id)
    }

    /// Records events in the order given: all of them, or none if one is refused.
    pub async fn record_all(
        &self,
        conn: &mut SqliteConnection,
        events: &[impl Recordable],
    ) -> Result<Vec<Uuid>> {
        let events = self.recording.prepare_all(events)?;
        let parts = PORTION.parts(&events);
        if let [part] = parts.as_slice() {
            insert(conn, part).await?;
        } else if !parts.is_empty() {
            query("savepoint postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
            let mut inserted = Ok(());
            for part in parts {
                inserted = insert(conn, part).await;
                if inserted.is_err() {
                    query("rollback to postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
                    break;
                }
            }
            query("release postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
            inserted?;
        }
        self.poller.recorded();
        Ok(events.iter().map(|event| event.event_id).collect())
    }

    /// Records an event unless its id is in the log; whether it was recorded now.
    pub async fn record_once(&self, conn: &mut SqliteConnection, event: &impl Recordable) -> Result<bool> {
        let event = self.recording.prepare(event)?;
        let done = bind(query(RECORD_ONCE), &event).execute(conn).await.map_err(failed(OP))?;
        self.poller.recorded();
        Ok(done.rows_affected() > 0)
    }

    /// Records an event in a transaction of its own: for what changes no data of the application.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        let mut conn = self.pool.acquire().await.map_err(failed(OP))?;
        self.record(&mut conn, &event).await
    }
}

/// One statement, so that a refusal takes all of its rows back.
async fn insert(conn: &mut SqliteConnection, events: &[NewEvent]) -> Result<()> {
    let insert = query(AssertSqlSafe(rows(RECORD, events.len()))).persistent(false);
    events.iter().fold(insert, bind).execute(conn).await.map_err(failed(OP))?;
    Ok(())
}

/// Gives a statement the parameters of record.sql.
fn bind(statement: DriverQuery<SqliteDialect>, event: &NewEvent) -> DriverQuery<SqliteDialect> {
    values(event, event.max_attempts.map(i64::from)).into_iter().fold(statement, SqliteDialect::bind)
}
