//! Events that are masked on their way into the archive, or go to a table of the application.

use postrider_core::{ArchiveTable, Error, ErrorKind, Field, OffsetDateTime, Recorded, Result};
use time::format_description::well_known::Rfc3339;

use crate::clock::{micros, time_of};
use crate::record::payload;
use crate::value::Value;

const OP: &str = "archive";

/// What a column of the application takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text: ids and times as people write them.
    Text,
    /// A date: times in UTC.
    Date,
    /// Anything else: ids and times as Postrider's own tables keep them.
    Other,
}

/// A column of a table of the application.
pub struct TargetColumn {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub kind: Kind,
    /// Whether it must have a value and has none by itself.
    pub needed: bool,
}

/// The parameters of sweep_file.sql.
pub fn archived(event: &Recorded, now: i64) -> Vec<Value> {
    let (json, content_type, content) = payload(&event.payload);
    vec![
        event.id.into(),
        event.event_id.into(),
        Value::from(&*event.stream),
        Value::from(&*event.event_type),
        Value::from(&*event.aggregate_type),
        Value::from(&event.aggregate_id),
        event.ordering_key.clone().into(),
        event.sequence.into(),
        event.max_attempts.into(),
        event.occurred_at.into(),
        event.recorded_at.into(),
        event.headers.to_json().into(),
        json,
        content_type,
        content,
        time_of(now).into(),
    ]
}

/// The fields of an event that are mapped to columns of the application, as these take them.
pub fn mapped<'e>(
    event: &'e Recorded,
    target: &'e ArchiveTable,
    columns: &'e [TargetColumn],
    now: i64,
) -> impl Iterator<Item = Value> + 'e {
    target.columns().iter().map(move |(name, field)| {
        let column = columns.iter().find(|column| column.name == *name);
        given(event, *field, column.map_or(Kind::Other, |column| column.kind), now)
    })
}

fn given(event: &Recorded, field: Field, kind: Kind, now: i64) -> Value {
    let (json, content_type, content) = payload(&event.payload);
    let time = |time: OffsetDateTime| match kind {
        Kind::Text => time.format(&Rfc3339).unwrap_or_default().into(),
        Kind::Date => time.into(),
        Kind::Other => micros(time).into(),
    };
    match field {
        Field::Id => event.id.into(),
        Field::EventId if kind == Kind::Text => event.event_id.to_string().into(),
        Field::EventId => event.event_id.into(),
        Field::Stream => Value::from(&*event.stream),
        Field::EventType => Value::from(&*event.event_type),
        Field::AggregateType => Value::from(&*event.aggregate_type),
        Field::AggregateId => Value::from(&event.aggregate_id),
        Field::OrderingKey => event.key().into_owned().into(),
        Field::Sequence => event.sequence.into(),
        Field::Payload => json,
        Field::ContentType => content_type,
        Field::Content => content,
        Field::Headers => event.headers.to_json().into(),
        Field::OccurredAt => time(event.occurred_at),
        Field::RecordedAt => time(event.recorded_at),
        Field::ArchivedAt => time(time_of(now)),
    }
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::new(ErrorKind::Invalid, OP, what))
}

/// Checks that a table of the application with these columns can take events.
pub fn check_target(target: &ArchiveTable, columns: &[TargetColumn]) -> Result<()> {
    let name = target.name();
    if columns.is_empty() {
        return refuse(format!("there is no table {name} to archive into"));
    }
    if target.table().1.to_lowercase().starts_with("postrider_") {
        return refuse(format!("the table {name} belongs to Postrider; use a table of your own"));
    }
    check_columns(target, columns)
}

/// Checks that the columns are those that events are mapped to.
pub fn check_columns(target: &ArchiveTable, columns: &[TargetColumn]) -> Result<()> {
    let name = target.name();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    if let Some((column, _)) = target.columns().iter().find(|(mapped, _)| !names.contains(&mapped.as_str())) {
        let names = names.join(", ");
        return refuse(format!("the table {name} has no column {column:?}; its columns are {names}"));
    }
    let mapped = |column: &TargetColumn| target.columns().iter().any(|(mapped, _)| *mapped == column.name);
    if let Some(column) = columns.iter().find(|column| column.needed && !mapped(column)) {
        return refuse(format!(
            "the column {:?} of {name} must have a value; map a field of the event to it",
            column.name
        ));
    }
    Ok(())
}

/// What is wrong with a table of the application is said of it.
pub fn blame(target: &ArchiveTable, error: &Error) -> Error {
    let what = format!("can't archive into {}: {}", target.name(), error.message());
    Error::new(error.kind(), OP, what)
}

/// The column by which rows are left alone that are there already must be unique.
pub fn not_unique(target: &ArchiveTable) -> Error {
    let column = target.existing_by().map_or("", |(column, _)| column);
    let what = format!(
        "the column {column:?} of {} must be unique, to skip events that are there already; create a unique index on it",
        target.name()
    );
    Error::new(ErrorKind::Invalid, OP, what)
}
