//! Recording events, in the caller's transaction.

use std::collections::HashSet;

use postrider_core::{Error, ErrorKind, NewEvent, Payload, Recordable, Result, Trace};
use sqlx_core::query::{Query, query};
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySql, MySqlArguments, MySqlConnection};
use uuid::Uuid;

use crate::clock::date;
use crate::error::{acquire, failed, must_prepare_again};
use crate::outbox::Outbox;

const RECORD: &str = include_str!("../sql/record.sql");
const OP: &str = "record";

/// Parameters a row of record.sql, and how many rows and bytes go into one statement: it may have 65,535 parameters, and be as
/// large as `max_allowed_packet`, which is 16 MB unless set.
const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/// How often a statement is sent that the server must prepare again.
const TRIES: u32 = 5;
const MOST_ROWS: usize = 5_000;
const MOST_BYTES: usize = 8 << 20;

impl Outbox {
    /// Records an event in the transaction that `conn` is in, and gives its id.
    ///
    /// It is in the log if and when that transaction commits. If it is refused, nothing was written and the
    /// transaction goes on.
    pub async fn record(
        &self,
        conn: &mut MySqlConnection,
        event: &(impl Recordable + ?Sized),
    ) -> Result<Uuid> {
        let event = self.prepared(event)?;
        let mut tries = TRIES;
        loop {
            match bind(query(RECORD), &event).execute(&mut *conn).await {
                Ok(_) => break,
                Err(error) if must_prepare_again(&error) && tries > 1 => tries -= 1,
                Err(error) => return Err(failed(OP)(error)),
            }
        }
        self.poller.recorded();
        Ok(event.event_id)
    }

    /// Records events in the order given: all of them, or none if one is refused. More than 5,000, or more than 8 MB, take
    /// several statements, which are all or none only within a transaction.
    pub async fn record_all(
        &self,
        conn: &mut MySqlConnection,
        events: &[impl Recordable],
    ) -> Result<Vec<Uuid>> {
        let events = events.iter().map(|event| self.prepared(event)).collect::<Result<Vec<_>>>()?;
        let distinct: HashSet<Uuid> = events.iter().map(|event| event.event_id).collect();
        if distinct.len() < events.len() {
            let message = "two of the events have the same id; nothing was written";
            return Err(Error::new(ErrorKind::Invalid, OP, message));
        }
        let parts = parts(&events);
        if let [part] = parts.as_slice() {
            insert(conn, part).await?;
        } else if !parts.is_empty() {
            raw_sql("savepoint postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
            let mut inserted = Ok(());
            for part in parts {
                inserted = insert(conn, part).await;
                if inserted.is_err() {
                    raw_sql("rollback to postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
                    break;
                }
            }
            raw_sql("release savepoint postrider_record").execute(&mut *conn).await.map_err(failed(OP))?;
            inserted?;
        }
        self.poller.recorded();
        Ok(events.iter().map(|event| event.event_id).collect())
    }

    /// Records an event unless its id is in the log; whether it was recorded now.
    pub async fn record_once(&self, conn: &mut MySqlConnection, event: &impl Recordable) -> Result<bool> {
        // Not `insert ignore`: a statement that fails takes back the number of its key, one that is ignored does not.
        match self.record(conn, event).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyRecorded => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records an event in a transaction of its own: for what changes no data of the application.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.prepared(event)?;
        let mut conn = acquire(&self.pool, OP).await?;
        // The application's sessions may not commit by themselves, and may be for reading unless they say otherwise.
        let mut transaction = conn.begin_by("start transaction read write").await.map_err(failed(OP))?;
        let event_id = self.record(&mut transaction, &event).await?;
        transaction.commit().await.map_err(failed(OP))?;
        Ok(event_id)
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

/// The events in parts that fit into a statement each.
fn parts(events: &[NewEvent]) -> Vec<&[NewEvent]> {
    let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (place, event) in events.iter().enumerate() {
        let size = event.size();
        if place > begin && (place - begin == MOST_ROWS || bytes + size > MOST_BYTES) {
            parts.push(&events[begin..place]);
            (begin, bytes) = (place, 0);
        }
        bytes += size;
    }
    if begin < events.len() {
        parts.push(&events[begin..]);
    }
    parts
}

/// One statement, so that a refusal takes all of its rows back.
async fn insert(conn: &mut MySqlConnection, events: &[NewEvent]) -> Result<()> {
    let Some((head, _)) = RECORD.split_once("values (") else { return Ok(()) };
    let sql = format!("{head}values {}", vec![ROW; events.len()].join(", "));
    for left in (0..TRIES).rev() {
        let statement = events.iter().fold(query(AssertSqlSafe(sql.clone())).persistent(false), bind);
        match statement.execute(&mut *conn).await {
            Ok(_) => break,
            Err(error) if must_prepare_again(&error) && left > 0 => {}
            Err(error) => return Err(failed(OP)(error)),
        }
    }
    Ok(())
}

type Insert<'q> = Query<'q, MySql, MySqlArguments>;

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
        .bind(event.max_attempts.map_or(0, i64::from))
        .bind(event.occurred_at.map(date))
        .bind(event.headers.to_json())
        .bind(json)
        .bind(content_type)
        .bind(content)
}
