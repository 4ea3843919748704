//! Recording events, in the caller's transaction.

use std::collections::HashSet;

use postrider_core::{Error, ErrorKind, NewEvent, Payload, Recordable, Result, Trace};
use sqlx_core::query::{Query, query};
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use uuid::Uuid;

use crate::clock::micros;
use crate::error::failed;
use crate::outbox::Outbox;

const RECORD: &str = include_str!("../sql/record.sql");
const RECORD_ONCE: &str = include_str!("../sql/record_once.sql");
const OP: &str = "record";

/// Parameters a row of record.sql, and how many rows fit into the 32,766 that a statement may have.
const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const MOST_ROWS: usize = 2_500;

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
        let event = self.prepared(event)?;
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
        let events = events.iter().map(|event| self.prepared(event)).collect::<Result<Vec<_>>>()?;
        let distinct: HashSet<Uuid> = events.iter().map(|event| event.event_id).collect();
        if distinct.len() < events.len() {
            let message = "two of the events have the same id; nothing was written";
            return Err(Error::new(ErrorKind::Invalid, OP, message));
        }
        if events.len() <= MOST_ROWS {
            insert(conn, &events).await?;
        } else {
            query("savepoint postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
            let mut inserted = Ok(());
            for part in events.chunks(MOST_ROWS) {
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
        let event = self.prepared(event)?;
        let done = bind(query(RECORD_ONCE), &event).execute(conn).await.map_err(failed(OP))?;
        self.poller.recorded();
        Ok(done.rows_affected() > 0)
    }

    /// Records an event in a transaction of its own: for what changes no data of the application.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.prepared(event)?;
        let mut conn = self.pool.acquire().await.map_err(failed(OP))?;
        self.record(&mut conn, &event).await
    }

    fn prepared(&self, event: &(impl Recordable + ?Sized)) -> Result<NewEvent> {
        let mut event = event.to_new_event()?.into_owned();
        if let Some(source) = &self.source
            && event.headers.source().is_none()
        {
            event.headers.set_source(&**source);
        }
        if event.headers.traceparent().is_none()
            && let Some(trace) = self.trace.as_ref().and_then(Trace::current)
        {
            event.headers.set_traceparent(trace);
        }
        event.check(&self.limits)?;
        Ok(event)
    }
}

/// One statement, so that a refusal takes all of its rows back.
async fn insert(conn: &mut SqliteConnection, events: &[NewEvent]) -> Result<()> {
    let Some((head, _)) = RECORD.split_once("values (").filter(|_| !events.is_empty()) else { return Ok(()) };
    let sql = format!("{head}values {}", vec![ROW; events.len()].join(", "));
    let statement = events.iter().fold(query(AssertSqlSafe(sql)).persistent(false), bind);
    statement.execute(conn).await.map_err(failed(OP))?;
    Ok(())
}

type Insert<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Gives a statement the parameters of record.sql.
fn bind<'q>(statement: Insert<'q>, event: &NewEvent) -> Insert<'q> {
    let (json, content_type, content) = match &event.payload {
        Payload::Json(json) => (Some(json.as_str()), None, None),
        Payload::Bytes { content_type, bytes } => (None, Some(content_type.as_str()), Some(bytes.as_slice())),
    };
    statement
        .bind(event.event_id)
        .bind(&event.stream)
        .bind(&event.event_type)
        .bind(&event.aggregate_type)
        .bind(&event.aggregate_id)
        .bind(event.ordering_key.as_deref())
        .bind(event.sequenced.then_some(0_i64))
        .bind(event.max_attempts.map(i64::from))
        .bind(event.occurred_at.map(micros))
        .bind(event.headers.to_json())
        .bind(json)
        .bind(content_type)
        .bind(content)
}
