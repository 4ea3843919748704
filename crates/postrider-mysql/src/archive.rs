//! ArchiveOptions events that are masked, or go to a table of the application, in the transaction that takes them out of the log.

use std::collections::HashMap;

use postrider_core::{
    ArchiveOptions, ArchiveTable, ByteBudget, Error, ErrorKind, Field, Payload, Recorded, Result,
};
use sqlx_core::query::{Query, query};
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySql, MySqlArguments, MySqlConnection};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::clock::{date, micros, time_of};
use crate::error::failed;
use crate::row::{self, Names, flag, number, text};
use crate::sql::statement;
use crate::store::MySqlStore;

const OP: &str = "archive";

/// How many of these events, numbers and ids, go through memory at once, from the first on.
pub(crate) async fn fitting(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    places: &[[i64; 2]],
) -> Result<usize> {
    let (mut fill, mut measured, mut page) = (ByteBudget::new(ArchiveOptions::BYTES), 0, 8);
    while measured < places.len() {
        let some = &places[measured..places.len().min(measured + page)];
        let sizes = store.sql.query(statement!("sweep_sizes.sql")).bind(serde_json::json!(some).to_string());
        for (place, row) in sizes.fetch_all(&mut *conn, OP).await?.iter().enumerate() {
            if !fill.takes(number(row, 0, OP)?.unsigned_abs()) {
                return Ok(measured + place);
            }
        }
        measured += some.len();
        page *= 2;
    }
    Ok(measured)
}

/// Files the events of these places, a JSON array of numbers and ids.
pub(crate) async fn file(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    archiving: &ArchiveOptions,
    places: &str,
    now: i64,
) -> Result<()> {
    let rows = store.sql.query(statement!("sweep_take.sql")).bind(places).fetch_all(&mut *conn, OP).await?;
    let mut names = Names::default();
    let kinds: HashMap<String, Kind> = match &archiving.target {
        Some(target) => {
            let columns = columns(store, conn, target).await?;
            columns.into_iter().map(|column| (column.name, column.kind)).collect()
        }
        None => HashMap::new(),
    };
    for row in &rows {
        let mut event = row::recorded(row, &mut names, OP)?;
        archiving.mask.apply(&mut event);
        match &archiving.target {
            None => {
                let insert = archived(query(include_str!("../sql/sweep_file.sql")), &event, now);
                insert.execute(&mut *conn).await.map_err(failed(OP))?;
            }
            Some(target) => {
                let mut insert = query(AssertSqlSafe(insert_into(target, "?")));
                for (column, field) in target.columns() {
                    let kind = kinds.get(column).copied().unwrap_or(Kind::Other);
                    insert = bound(insert, &event, *field, kind, now);
                }
                let done = insert.execute(&mut *conn).await;
                done.map_err(|error| blame(target, &failed(OP)(error)))?;
            }
        }
    }
    Ok(())
}

type Insert<'q> = Query<'q, MySql, MySqlArguments>;

fn archived<'q>(insert: Insert<'q>, event: &Recorded, now: i64) -> Insert<'q> {
    let (json, kind, content) = parts(&event.payload);
    insert
        .bind(event.id)
        .bind(event.event_id)
        .bind(event.stream.to_string())
        .bind(event.event_type.to_string())
        .bind(event.aggregate_type.to_string())
        .bind(event.aggregate_id.clone())
        .bind(event.ordering_key.clone())
        .bind(event.sequence)
        .bind(event.max_attempts)
        .bind(date(event.occurred_at))
        .bind(date(event.recorded_at))
        .bind(event.headers.to_json())
        .bind(json)
        .bind(kind)
        .bind(content)
        .bind(date(time_of(now)))
}

/// What a column of the application takes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Date,
    Other,
}

impl Kind {
    fn of(data_type: &str) -> Self {
        let data_type = data_type.to_lowercase();
        match data_type.as_str() {
            "datetime" | "timestamp" | "date" => Self::Date,
            text if text.contains("char") || text.contains("text") => Self::Text,
            _ => Self::Other,
        }
    }
}

/// A column of text takes ids and times as people write them, a date times in UTC; any other takes them as Postrider's own
/// tables do.
fn bound<'q>(insert: Insert<'q>, event: &Recorded, field: Field, kind: Kind, now: i64) -> Insert<'q> {
    let (json, content_type, content) = parts(&event.payload);
    let time = |insert: Insert<'q>, time: OffsetDateTime| match kind {
        Kind::Text => insert.bind(time.format(&Rfc3339).unwrap_or_default()),
        Kind::Date => insert.bind(date(time)),
        Kind::Other => insert.bind(micros(time)),
    };
    match field {
        Field::Id => insert.bind(event.id),
        Field::EventId if kind == Kind::Text => insert.bind(event.event_id.to_string()),
        Field::EventId => insert.bind(event.event_id),
        Field::Stream => insert.bind(event.stream.to_string()),
        Field::EventType => insert.bind(event.event_type.to_string()),
        Field::AggregateType => insert.bind(event.aggregate_type.to_string()),
        Field::AggregateId => insert.bind(event.aggregate_id.clone()),
        Field::OrderingKey => insert.bind(event.key().into_owned()),
        Field::Sequence => insert.bind(event.sequence),
        Field::Payload => insert.bind(json),
        Field::ContentType => insert.bind(content_type),
        Field::Content => insert.bind(content),
        Field::Headers => insert.bind(event.headers.to_json()),
        Field::OccurredAt => time(insert, event.occurred_at),
        Field::RecordedAt => time(insert, event.recorded_at),
        Field::ArchivedAt => time(insert, time_of(now)),
    }
}

fn parts(payload: &Payload) -> (Option<String>, Option<String>, Option<Vec<u8>>) {
    match payload {
        Payload::Json(text) => (Some(text.clone()), None, None),
        Payload::Bytes { content_type, bytes } => (None, Some(content_type.clone()), Some(bytes.clone())),
    }
}

/// The statement, with the same for every value. Names are quoted as this server quotes them.
fn insert_into(target: &ArchiveTable, value: &str) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let (schema, table) = target.table();
    let table = schema.into_iter().chain([table]).map(quoted).collect::<Vec<_>>().join(".");
    let columns: Vec<String> = target.columns().iter().map(|(column, _)| quoted(column)).collect();
    let values = vec![value; columns.len()].join(", ");
    format!("insert into {table} ({}) values ({values})", columns.join(", "))
}

struct Column {
    name: String,
    kind: Kind,
    needed: bool,
}

async fn columns(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    target: &ArchiveTable,
) -> Result<Vec<Column>> {
    let (schema, table) = target.table();
    let look = store.sql.query(statement!("target.sql")).bind(table).bind(schema);
    let rows = look.fetch_all(conn, OP).await?;
    let column = |row| {
        let name = text(row, "name", OP)?.into_owned();
        Ok(Column { name, kind: Kind::of(&text(row, "kind", OP)?), needed: flag(row, "needed", OP)? })
    };
    rows.iter().map(column).collect()
}

/// Whether a table of the application can take events.
pub(crate) async fn check(store: &MySqlStore, target: &ArchiveTable) -> Result<()> {
    let name = target.name();
    let refuse = |what: String| Err(Error::new(ErrorKind::Invalid, OP, what));
    let mut conn = store.conn(OP).await?;
    let columns = columns(store, &mut conn, target).await?;
    if columns.is_empty() {
        return refuse(format!("there is no table {name} to archive into"));
    }
    if target.table().1.to_lowercase().starts_with("postrider_") {
        return refuse(format!("the table {name} is Postrider's own; archive into one of the application"));
    }
    let mapped = |column: &Column| target.columns().iter().any(|(mapped, _)| *mapped == column.name);
    if let Some((column, _)) =
        target.columns().iter().find(|(mapped, _)| columns.iter().all(|column| column.name != *mapped))
    {
        let all: Vec<String> = columns.into_iter().map(|column| column.name).collect();
        return refuse(format!("the table {name} has no column {column:?}; it has {}", all.join(", ")));
    }
    if let Some(column) = columns.iter().find(|column| column.needed && !mapped(column)) {
        let column = &column.name;
        return refuse(format!(
            "the column {column:?} of {name} needs a value, and no field of an event is mapped to it"
        ));
    }
    // It is understood and not carried out: the server says whether this user may do it.
    let explained = query(AssertSqlSafe(format!("explain {}", insert_into(target, "null"))));
    let explained = explained.fetch_all(&mut *conn).await;
    explained.map(|_| ()).map_err(|error| blame(target, &failed(OP)(error)))
}

/// What is wrong with a table of the application is said of it.
fn blame(target: &ArchiveTable, error: &Error) -> Error {
    let what = format!("events can't be archived into {}: {}", target.name(), error.message());
    Error::new(error.kind(), OP, what)
}
