//! ArchiveOptions events that are masked, or go to a table of the application, in the transaction that takes them out of the log.

use std::collections::HashSet;

use postrider_core::{
    ArchiveOptions, ArchiveTable, ByteBudget, Error, ErrorKind, Field, Payload, Recorded, Result,
};
use sqlx_core::query::{Query, query};
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::clock::{micros, time_of};
use crate::error::failed;
use crate::row::{self, Names};
use crate::sql::statement;
use crate::store::SqliteStore;

const OP: &str = "archive";

/// How many of these events, from the first on, go through memory at once.
pub(crate) async fn fitting(store: &SqliteStore, conn: &mut SqliteConnection, ids: &[i64]) -> Result<usize> {
    let sizes = store.sql.query(statement!("sweep_sizes.sql")).bind(serde_json::Value::from(ids).to_string());
    let sizes = sizes.fetch_all(conn).await.map_err(failed(OP))?;
    let mut fill = ByteBudget::new(ArchiveOptions::BYTES);
    for (count, row) in sizes.iter().enumerate() {
        if !fill.takes(row.try_get::<i64, _>(0).map_err(failed(OP))?.unsigned_abs()) {
            return Ok(count);
        }
    }
    Ok(ids.len())
}

/// Files the events of these ids, a JSON array.
pub(crate) async fn file(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    archiving: &ArchiveOptions,
    ids: &str,
    now: i64,
) -> Result<()> {
    let rows = store.sql.query(statement!("sweep_take.sql")).bind(ids).fetch_all(&mut *conn).await;
    let mut names = Names::default();
    let texts = match &archiving.target {
        Some(target) => text_columns(store, conn, target).await?,
        None => HashSet::new(),
    };
    for row in &rows.map_err(failed(OP))? {
        let (mut event, _) = row::recorded(row, &mut names, OP)?;
        archiving.mask.apply(&mut event);
        match &archiving.target {
            None => {
                let insert = archived(store.sql.query(statement!("sweep_file.sql")), &event, now);
                insert.execute(&mut *conn).await.map_err(failed(OP))?;
            }
            Some(target) => {
                let mut insert = query(AssertSqlSafe(insert_into(target)));
                for (column, field) in target.columns() {
                    insert = bound(insert, &event, *field, texts.contains(column), now);
                }
                let done = insert.execute(&mut *conn).await;
                done.map_err(|error| blame(target, &failed(OP)(error)))?;
            }
        }
    }
    Ok(())
}

type Insert<'q> = Query<'q, Sqlite, SqliteArguments>;

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
        .bind(micros(event.occurred_at))
        .bind(micros(event.recorded_at))
        .bind(event.headers.to_json())
        .bind(json)
        .bind(kind)
        .bind(content)
        .bind(now)
}

/// A column of text takes ids and times as people write them; any other takes them as Postrider's own tables do.
fn bound<'q>(insert: Insert<'q>, event: &Recorded, field: Field, as_text: bool, now: i64) -> Insert<'q> {
    let (json, kind, content) = parts(&event.payload);
    let time = |insert: Insert<'q>, time: OffsetDateTime| match as_text {
        true => insert.bind(time.format(&Rfc3339).unwrap_or_default()),
        false => insert.bind(micros(time)),
    };
    match field {
        Field::Id => insert.bind(event.id),
        Field::EventId if as_text => insert.bind(event.event_id.to_string()),
        Field::EventId => insert.bind(event.event_id),
        Field::Stream => insert.bind(event.stream.to_string()),
        Field::EventType => insert.bind(event.event_type.to_string()),
        Field::AggregateType => insert.bind(event.aggregate_type.to_string()),
        Field::AggregateId => insert.bind(event.aggregate_id.clone()),
        Field::OrderingKey => insert.bind(event.key().into_owned()),
        Field::Sequence => insert.bind(event.sequence),
        Field::Payload => insert.bind(json),
        Field::ContentType => insert.bind(kind),
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

fn insert_into(target: &ArchiveTable) -> String {
    let places: Vec<String> = (1..=target.columns().len()).map(|place| format!("?{place}")).collect();
    format!(
        "insert into {} ({}) values ({})",
        target.quoted_table(),
        target.quoted_columns(),
        places.join(", ")
    )
}

/// The columns of text.
async fn text_columns(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    target: &ArchiveTable,
) -> Result<HashSet<String>> {
    let columns = columns(store, conn, target).await?;
    let text = |kind: &str| ["TEXT", "CHAR", "CLOB"].iter().any(|part| kind.to_uppercase().contains(part));
    Ok(columns.into_iter().filter(|column| text(&column.kind)).map(|column| column.name).collect())
}

struct Column {
    name: String,
    kind: String,
    needed: bool,
}

async fn columns(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    target: &ArchiveTable,
) -> Result<Vec<Column>> {
    let (schema, table) = target.table();
    let look = store.sql.query(statement!("target.sql")).bind(table).bind(schema.unwrap_or("main"));
    let rows = look.fetch_all(conn).await.map_err(failed(OP))?;
    rows.iter()
        .map(|row| {
            Ok(Column {
                name: row.try_get(0).map_err(failed(OP))?,
                kind: row.try_get(1).map_err(failed(OP))?,
                needed: row.try_get(2).map_err(failed(OP))?,
            })
        })
        .collect()
}

/// Whether a table of the application can take events.
pub(crate) async fn check(store: &SqliteStore, target: &ArchiveTable) -> Result<()> {
    let name = target.name();
    let refuse = |what: String| Err(Error::new(ErrorKind::Invalid, OP, what));
    let mut conn = store.conn(OP).await?;
    let columns = columns(store, &mut conn, target).await?;
    if columns.is_empty() {
        return refuse(format!("there is no table {name} to archive into"));
    }
    if target.table().1.to_lowercase().starts_with("postrider_") {
        return refuse(format!("the table {name} belongs to Postrider; use a table of your own"));
    }
    let mapped = |column: &Column| target.columns().iter().any(|(mapped, _)| *mapped == column.name);
    if let Some((column, _)) =
        target.columns().iter().find(|(mapped, _)| columns.iter().all(|column| column.name != *mapped))
    {
        let all: Vec<String> = columns.into_iter().map(|column| column.name).collect();
        return refuse(format!(
            "the table {name} has no column {column:?}; its columns are {}",
            all.join(", ")
        ));
    }
    if let Some(column) = columns.iter().find(|column| column.needed && !mapped(column)) {
        let column = &column.name;
        return refuse(format!(
            "the column {column:?} of {name} must have a value; map a field of the event to it"
        ));
    }
    // It is understood and not carried out: SQLite says what it thinks of it.
    let explained =
        query(AssertSqlSafe(format!("explain {}", insert_into(target)))).fetch_all(&mut *conn).await;
    explained.map(|_| ()).map_err(|error| blame(target, &failed(OP)(error)))
}

/// What is wrong with a table of the application is said of it.
fn blame(target: &ArchiveTable, error: &Error) -> Error {
    let what = format!("can't archive into {}: {}", target.name(), error.message());
    Error::new(error.kind(), OP, what)
}
