//! Rows of the log as events, and the columns of other rows.
//!
//! Nothing that a table accepts may stop a reader: text that is not UTF-8 is read with replacement characters, a time that no calendar
//! has as the time of recording, and what can't be read at all is told of beside the event.

use std::borrow::Cow;
use std::sync::Arc;

use postrider_core::{Headers, OffsetDateTime, Payload, Recorded, Result};
use sqlx_core::column::ColumnIndex;
use sqlx_core::row::Row;
use sqlx_mysql::MySqlRow;
use time::PrimitiveDateTime;
use uuid::Uuid;

use crate::clock::time_of;
use crate::error::failed;

/// Nearly all text is UTF-8, which is told faster than what is wrong with it.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Text of a column.
pub(crate) fn text<'r>(
    row: &'r MySqlRow,
    column: impl ColumnIndex<MySqlRow>,
    op: &'static str,
) -> Result<Cow<'r, str>> {
    let bytes: &[u8] = row.try_get_unchecked(column).map_err(failed(op))?;
    Ok(lossy(bytes))
}

/// Text of a column that may be null.
pub(crate) fn maybe_text(
    row: &MySqlRow,
    column: impl ColumnIndex<MySqlRow>,
    op: &'static str,
) -> Result<Option<String>> {
    let bytes: Option<&[u8]> = row.try_get_unchecked(column).map_err(failed(op))?;
    Ok(bytes.map(|bytes| lossy(bytes).into_owned()))
}

/// A whole number of a column, of whatever size the server takes it for.
pub(crate) fn number(row: &MySqlRow, column: impl ColumnIndex<MySqlRow>, op: &'static str) -> Result<i64> {
    row.try_get_unchecked(column).map_err(failed(op))
}

/// A whole number of a column that may be null.
pub(crate) fn maybe_number(
    row: &MySqlRow,
    column: impl ColumnIndex<MySqlRow>,
    op: &'static str,
) -> Result<Option<i64>> {
    row.try_get_unchecked(column).map_err(failed(op))
}

/// A small number of a column.
pub(crate) fn small(row: &MySqlRow, column: impl ColumnIndex<MySqlRow>, op: &'static str) -> Result<u32> {
    Ok(u32::try_from(number(row, column, op)?).unwrap_or(u32::MAX))
}

/// Whether a column says so.
pub(crate) fn flag(row: &MySqlRow, column: impl ColumnIndex<MySqlRow>, op: &'static str) -> Result<bool> {
    Ok(maybe_number(row, column, op)?.is_some_and(|flag| flag != 0))
}

/// A time of a column, which may be null, in microseconds.
pub(crate) fn maybe_time(
    row: &MySqlRow,
    column: impl ColumnIndex<MySqlRow>,
    op: &'static str,
) -> Result<Option<OffsetDateTime>> {
    Ok(maybe_number(row, column, op)?.map(time_of))
}

/// A time of the log.
pub(crate) fn date(
    row: &MySqlRow,
    column: impl ColumnIndex<MySqlRow>,
    op: &'static str,
) -> Result<OffsetDateTime> {
    let date: PrimitiveDateTime = row.try_get_unchecked(column).map_err(failed(op))?;
    Ok(date.assume_utc())
}

/// The id of an event.
pub(crate) fn id(row: &MySqlRow, column: impl ColumnIndex<MySqlRow>, op: &'static str) -> Result<Uuid> {
    row.try_get_unchecked(column).map_err(failed(op))
}

/// Names that many events of a batch share, kept once.
#[derive(Default)]
pub(crate) struct Names(Vec<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        // A batch with hundreds of names shares little: don't search for long.
        if self.0.len() < 64 {
            self.0.push(Arc::clone(&new));
        }
        new
    }
}

/// The columns of an event, in the order of every statement that reads them.
mod column {
    pub(super) const ID: usize = 0;
    pub(super) const EVENT_ID: usize = 1;
    pub(super) const STREAM: usize = 2;
    pub(super) const EVENT_TYPE: usize = 3;
    pub(super) const AGGREGATE_TYPE: usize = 4;
    pub(super) const AGGREGATE_ID: usize = 5;
    pub(super) const ORDERING_KEY: usize = 6;
    pub(super) const SEQUENCE: usize = 7;
    pub(super) const PAYLOAD: usize = 8;
    pub(super) const CONTENT_TYPE: usize = 9;
    pub(super) const CONTENT: usize = 10;
    pub(super) const HEADERS: usize = 11;
    pub(super) const OCCURRED_AT: usize = 12;
    pub(super) const RECORDED_AT: usize = 13;
    pub(super) const MAX_ATTEMPTS: usize = 14;
}

/// What tells whether an event is wanted, before the rest of it is looked at.
pub(crate) struct Address<'r> {
    pub(crate) stream: Cow<'r, str>,
    pub(crate) event_type: Cow<'r, str>,
    pub(crate) recorded_at: OffsetDateTime,
}

/// Where an event belongs.
pub(crate) fn address<'r>(row: &'r MySqlRow, op: &'static str) -> Result<Address<'r>> {
    Ok(Address {
        stream: text(row, column::STREAM, op)?,
        event_type: text(row, column::EVENT_TYPE, op)?,
        recorded_at: date(row, column::RECORDED_AT, op)?,
    })
}

/// An event, and why it can't be delivered if its row can't be read.
pub(crate) struct Decoded {
    pub(crate) event: Recorded,
    pub(crate) unreadable: Option<String>,
}

/// The event of a row, as far as it can be read.
pub(crate) fn recorded(row: &MySqlRow, names: &mut Names, op: &'static str) -> Result<Recorded> {
    Ok(decoded(row, names, op)?.event)
}

/// The event of a row. Which one it is must be told; what else can't be read is left empty, and named.
pub(crate) fn decoded(row: &MySqlRow, names: &mut Names, op: &'static str) -> Result<Decoded> {
    let mut unread = Unread::default();
    let recorded_at = date(row, column::RECORDED_AT, op);
    let recorded_at = unread.or(recorded_at, "recorded_at", OffsetDateTime::UNIX_EPOCH);
    let mut word = |place, name| unread.or(text(row, place, op), name, Cow::Borrowed(""));
    let event = Recorded {
        id: number(row, column::ID, op)?,
        event_id: id(row, column::EVENT_ID, op)?,
        stream: names.shared(&word(column::STREAM, "stream")),
        event_type: names.shared(&word(column::EVENT_TYPE, "event_type")),
        aggregate_type: names.shared(&word(column::AGGREGATE_TYPE, "aggregate_type")),
        aggregate_id: word(column::AGGREGATE_ID, "aggregate_id").into_owned(),
        ordering_key: maybe_text(row, column::ORDERING_KEY, op)?,
        sequence: maybe_number(row, column::SEQUENCE, op)?,
        headers: Headers::from_json(word(column::HEADERS, "headers").into_owned()),
        payload: unread.or(payload(row, op), "payload", Payload::Json(String::new())),
        // A zero date, or a day that the calendar does not have, is no reason to withhold an event.
        occurred_at: date(row, column::OCCURRED_AT, op).unwrap_or(recorded_at),
        recorded_at,
        max_attempts: maybe_number(row, column::MAX_ATTEMPTS, op)?.and_then(|most| u32::try_from(most).ok()),
    };
    Ok(Decoded { event, unreadable: unread.sentence() })
}

fn payload(row: &MySqlRow, op: &'static str) -> Result<Payload> {
    Ok(match maybe_text(row, column::PAYLOAD, op)? {
        Some(json) => Payload::Json(json),
        None => Payload::Bytes {
            content_type: text(row, column::CONTENT_TYPE, op)?.into_owned(),
            bytes: row.try_get_unchecked(column::CONTENT).map_err(failed(op))?,
        },
    })
}

/// The columns of a row that can't be read.
#[derive(Default)]
struct Unread(Vec<&'static str>);

impl Unread {
    fn or<T>(&mut self, read: Result<T>, name: &'static str, instead: T) -> T {
        read.unwrap_or_else(|_| {
            self.0.push(name);
            instead
        })
    }

    fn sentence(&self) -> Option<String> {
        let names = self.0.join(", ");
        (!self.0.is_empty())
            .then(|| format!("these columns of its row in postrider_event can't be read: {names}"))
    }
}
