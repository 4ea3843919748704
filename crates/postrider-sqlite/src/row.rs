//! Rows of the log as events.
//!
//! Nothing that a table accepts may stop a reader: what is not as it must be (text that is not UTF-8, for one, which SQLite takes)
//! is read as far as it can be, and named, so that the event is dead by itself and not delivered as another one.

use std::borrow::Cow;
use std::sync::Arc;

use postrider_core::{Headers, Payload, Recorded, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteRow;
use uuid::Uuid;

use crate::clock::time_of;
use crate::error::failed;

/// Text of a column.
pub(crate) fn text<'r>(row: &'r SqliteRow, column: usize, op: &'static str) -> Result<Cow<'r, str>> {
    let bytes: &[u8] = row.try_get_unchecked(column).map_err(failed(op))?;
    Ok(String::from_utf8_lossy(bytes))
}

/// Text of a column that may be null.
pub(crate) fn maybe_text(row: &SqliteRow, column: usize, op: &'static str) -> Result<Option<String>> {
    let bytes: Option<&[u8]> = row.try_get(column).map_err(failed(op))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
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

/// The columns of read.sql and due.sql, in their order.
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

/// What tells whether an event belongs to a lane, before the rest of it is looked at.
pub(crate) struct Address<'r> {
    pub(crate) stream: Cow<'r, str>,
    pub(crate) event_type: Cow<'r, str>,
    pub(crate) recorded_at: i64,
}

/// Where an event belongs.
pub(crate) fn address<'r>(row: &'r SqliteRow, op: &'static str) -> Result<Address<'r>> {
    Ok(Address {
        stream: text(row, column::STREAM, op)?,
        event_type: text(row, column::EVENT_TYPE, op)?,
        recorded_at: number(row, column::RECORDED_AT).unwrap_or(0),
    })
}

/// The key that an event is ordered by.
pub(crate) fn key(row: &SqliteRow, op: &'static str) -> Result<String> {
    match maybe_text(row, column::ORDERING_KEY, op)? {
        Some(key) => Ok(key),
        None => {
            Ok(format!("{}:{}", text(row, column::AGGREGATE_TYPE, op)?, text(row, column::AGGREGATE_ID, op)?))
        }
    }
}

/// A number, or what SQLite makes one of; nothing where there is none.
fn number(row: &SqliteRow, column: usize) -> Option<i64> {
    row.try_get_unchecked::<Option<i64>, _>(column).ok().flatten()
}

/// The event id. One that is none (checks can be turned off for a connection) is made of the event's number.
pub(crate) fn event_id(row: &SqliteRow) -> Uuid {
    given_id(row)
        .unwrap_or_else(|| Uuid::from_u64_pair(0, number(row, column::ID).unwrap_or(0).cast_unsigned()))
}

fn given_id(row: &SqliteRow) -> Option<Uuid> {
    let bytes: Option<&[u8]> = row.try_get_unchecked(column::EVENT_ID).ok()?;
    Uuid::from_slice(bytes?).ok()
}

/// What of a row is not as it must be: nothing of that may be delivered as if it were.
#[derive(Default)]
struct Flaws(Vec<&'static str>);

impl Flaws {
    fn text<'r>(
        &mut self,
        row: &'r SqliteRow,
        (column, name): (usize, &'static str),
        op: &'static str,
    ) -> Result<Cow<'r, str>> {
        let text = text(row, column, op)?;
        if matches!(text, Cow::Owned(_)) {
            self.0.push(name);
        }
        Ok(text)
    }

    fn maybe_text(
        &mut self,
        row: &SqliteRow,
        (column, name): (usize, &'static str),
        op: &'static str,
    ) -> Result<Option<String>> {
        let bytes: Option<&[u8]> = row.try_get_unchecked(column).map_err(failed(op))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            self.0.push(name);
        }
        Ok(Some(text.into_owned()))
    }

    fn sentence(self) -> Option<String> {
        let columns = self.0.join(", ");
        (!columns.is_empty()).then(|| {
            format!(
                "can't read the event: {columns} must be UTF-8 text (event_id: 16 bytes); record it again"
            )
        })
    }
}

/// The event of a row; and, if not all of it can be read, why. What can't is as near to it as can be.
pub(crate) fn recorded(
    row: &SqliteRow,
    names: &mut Names,
    op: &'static str,
) -> Result<(Recorded, Option<String>)> {
    let mut flaws = Flaws::default();
    let payload = match flaws.maybe_text(row, (column::PAYLOAD, "payload"), op)? {
        Some(json) => Payload::Json(json),
        None => Payload::Bytes {
            content_type: flaws
                .maybe_text(row, (column::CONTENT_TYPE, "content_type"), op)?
                .unwrap_or_default(),
            bytes: row
                .try_get_unchecked::<Option<Vec<u8>>, _>(column::CONTENT)
                .ok()
                .flatten()
                .unwrap_or_default(),
        },
    };
    let id = row.try_get(column::ID).map_err(failed(op))?;
    if given_id(row).is_none() {
        flaws.0.push("event_id");
    }
    let recorded_at = time_of(number(row, column::RECORDED_AT).unwrap_or(0));
    let event = Recorded {
        id,
        event_id: event_id(row),
        stream: names.shared(&flaws.text(row, (column::STREAM, "stream"), op)?),
        event_type: names.shared(&flaws.text(row, (column::EVENT_TYPE, "event_type"), op)?),
        aggregate_type: names.shared(&flaws.text(row, (column::AGGREGATE_TYPE, "aggregate_type"), op)?),
        aggregate_id: flaws.text(row, (column::AGGREGATE_ID, "aggregate_id"), op)?.into_owned(),
        ordering_key: flaws.maybe_text(row, (column::ORDERING_KEY, "ordering_key"), op)?,
        sequence: number(row, column::SEQUENCE),
        payload,
        headers: Headers::from_json(flaws.text(row, (column::HEADERS, "headers"), op)?.into_owned()),
        occurred_at: number(row, column::OCCURRED_AT).map_or(recorded_at, time_of),
        recorded_at,
        max_attempts: number(row, column::MAX_ATTEMPTS).and_then(|most| u32::try_from(most).ok()),
    };
    Ok((event, flaws.sentence()))
}
