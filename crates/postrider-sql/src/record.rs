//! Recording: the parameters of an event, and many events in few statements.

use postrider_core::{NewEvent, Payload, Result};
use sqlx_core::arguments::IntoArguments;
use sqlx_core::database::Database;
use sqlx_core::executor::Executor;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;

use crate::statement::{Connection, Dialect, DriverQuery};
use crate::value::Value;

const OP: &str = "record";
/// How often a statement is sent that must be sent again.
const TRIES: u32 = 5;

/// How many rows, and how many bytes, go into one statement.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    /// The number of rows.
    pub rows: usize,
    /// The bytes of the events together.
    pub bytes: usize,
}

impl Portion {
    /// The events in parts that fit into a statement each.
    fn parts(self, events: &[NewEvent]) -> Vec<&[NewEvent]> {
        let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0_usize);
        for (place, event) in events.iter().enumerate() {
            let size = if self.bytes == usize::MAX { 0 } else { event.size() };
            if place > begin && (place - begin == self.rows || bytes.saturating_add(size) > self.bytes) {
                parts.push(&events[begin..place]);
                (begin, bytes) = (place, 0);
            }
            bytes = bytes.saturating_add(size);
        }
        if begin < events.len() {
            parts.push(&events[begin..]);
        }
        parts
    }
}

/// Inserts events in as few statements as can be, all of them or none. `record` inserts one row.
pub async fn insert_all<D: Dialect>(
    conn: &mut Connection<D>,
    record: &str,
    portion: Portion,
    events: &[NewEvent],
) -> Result<()>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
{
    let parts = portion.parts(events);
    let several = parts.len() > 1;
    if several {
        raw_sql("savepoint postrider_record").execute(&mut *conn).await.map_err(D::failed(OP))?;
    }
    let mut inserted = Ok(());
    for part in parts {
        // One statement, so that a refusal takes all of its rows back.
        let text = rows(record, part.len());
        for left in (0..TRIES).rev() {
            let insert = query(AssertSqlSafe(text.clone())).persistent(false);
            let insert = part.iter().fold(insert, bind::<D>).execute(&mut *conn).await;
            let again = left > 0 && insert.as_ref().is_err_and(D::must_repeat);
            inserted = insert.map(|_| ()).map_err(D::failed(OP));
            if !again {
                break;
            }
        }
        if inserted.is_err() {
            break;
        }
    }
    if several {
        if inserted.is_err() {
            raw_sql("rollback to postrider_record").execute(&mut *conn).await.map_err(D::failed(OP))?;
        }
        raw_sql("release savepoint postrider_record").execute(conn).await.map_err(D::failed(OP))?;
    }
    inserted
}

/// The methods of an outbox that record in the caller's transaction. `insert` inserts one event that was checked; the docs before
/// `record_all` say how its store does it.
#[macro_export]
macro_rules! record_methods {
    ($connection:ty, $dialect:ty, $record:ident, $portion:ident, $(#[$all:meta])* record_all) => {
        /// Records an event in the transaction of `conn` and returns its id.
        ///
        /// It is in the log if and when that transaction commits. If it is refused, nothing was written and the
        /// transaction goes on.
        pub async fn record(
            &self,
            conn: &mut $connection,
            event: &(impl ::postrider_core::Recordable + ?Sized),
        ) -> ::postrider_core::Result<::postrider_core::Uuid> {
            let event = self.recording.prepare(event)?;
            insert(conn, &event).await?;
            self.poller.recorded();
            Ok(event.event_id)
        }

        $(#[$all])*
        pub async fn record_all(
            &self,
            conn: &mut $connection,
            events: &[impl ::postrider_core::Recordable],
        ) -> ::postrider_core::Result<Vec<::postrider_core::Uuid>> {
            let events = self.recording.prepare_all(events)?;
            $crate::record::insert_all::<$dialect>(conn, $record, $portion, &events).await?;
            self.poller.recorded();
            Ok(events.iter().map(|event| event.event_id).collect())
        }
    };
}

/// Gives a statement the parameters of record.sql.
pub fn bind<D: Dialect>(statement: DriverQuery<D>, event: &NewEvent) -> DriverQuery<D> {
    let (json, content_type, content) = payload(&event.payload);
    let values: [Value; 13] = [
        event.event_id.into(),
        Value::from(&event.stream),
        Value::from(&event.event_type),
        Value::from(&event.aggregate_type),
        Value::from(&event.aggregate_id),
        event.ordering_key.clone().into(),
        event.sequenced.then_some(0_i64).into(),
        event.max_attempts.map(i64::from).or(D::NO_LIMIT).into(),
        event.occurred_at.into(),
        event.headers.to_json().into(),
        json,
        content_type,
        content,
    ];
    values.into_iter().fold(statement, D::bind)
}

/// A payload as the columns `payload`, `content_type` and `content` take it.
pub(crate) fn payload(payload: &Payload) -> (Value, Value, Value) {
    match payload {
        Payload::Json(text) => (Value::from(text), Value::Text(None), Value::Bytes(None)),
        Payload::Bytes { content_type, bytes } => {
            (Value::Text(None), Value::from(content_type), Value::Bytes(Some(bytes.clone())))
        }
    }
}

/// The text of a statement that inserts one row, for several.
fn rows(record: &str, events: usize) -> String {
    const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let head = record.split_once("values (").map_or(record, |(head, _)| head);
    format!("{head}values {}", vec![ROW; events].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_in_one_part_that_is_not_too_large() {
        let event = NewEvent::of("orders", "Paid", "Order", "1", &1).expect("JSON");
        let (size, events) = (event.size(), vec![event; 7]);
        let lengths = |rows, bytes| {
            let parts = Portion { rows, bytes }.parts(&events);
            parts.into_iter().map(<[NewEvent]>::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(3, usize::MAX), [3, 3, 1]);
        assert_eq!(lengths(100, size * 2), [2, 2, 2, 1]);
        assert_eq!(lengths(100, 1), [1; 7], "one alone goes, whatever its size");
        assert_eq!(Portion { rows: 3, bytes: 9 }.parts(&[]).len(), 0);
    }
}
