//! Rows as they come over the wire, made into words.
//!
//! The columns are taken by number and without a type check: the statements are ours, and this is the one
//! place where time is spent per event.

use std::borrow::Cow;
use std::sync::Arc;

use postrider_core::{Error, ErrorKind, Headers, OffsetDateTime, Payload, Recorded, Result, Uuid};
use postrider_sql::event::Decoded;
use sqlx_core::row::Row;
use sqlx_postgres::{PgRow, PgValueRef};
use time::Duration;

use crate::sql::Sql;

/// PostgreSQL counts its microseconds from here.
const EPOCH: OffsetDateTime = time::macros::datetime!(2000-01-01 00:00 UTC);

pub(crate) fn malformed(column: usize) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "read",
        format!("column {column} of the log does not have the type that this program expects"),
    )
}

fn raw(row: &PgRow, column: usize) -> Result<Option<PgValueRef<'_>>> {
    let value = row.try_get_raw(column).map_err(|_| malformed(column))?;
    Ok(if sqlx_core::value::ValueRef::is_null(&value) { None } else { Some(value) })
}

pub(crate) fn opt_bytes(row: &PgRow, column: usize) -> Result<Option<&[u8]>> {
    raw(row, column)?.map(|value| value.as_bytes().map_err(|_| malformed(column))).transpose()
}

pub(crate) fn opt_text(row: &PgRow, column: usize) -> Result<Option<&str>> {
    opt_bytes(row, column)?.map(|bytes| std::str::from_utf8(bytes).map_err(|_| malformed(column))).transpose()
}

/// A text for people, with what is not UTF-8 replaced.
pub(crate) fn shown(row: &PgRow, column: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(opt_bytes(row, column)?.ok_or_else(|| malformed(column))?).into_owned())
}

pub(crate) fn text(row: &PgRow, column: usize) -> Result<&str> {
    opt_text(row, column)?.ok_or_else(|| malformed(column))
}

pub(crate) fn opt_i64(row: &PgRow, column: usize) -> Result<Option<i64>> {
    opt_bytes(row, column)?
        .map(|bytes| bytes.try_into().map(i64::from_be_bytes).map_err(|_| malformed(column)))
        .transpose()
}

pub(crate) fn int64(row: &PgRow, column: usize) -> Result<i64> {
    opt_i64(row, column)?.ok_or_else(|| malformed(column))
}

pub(crate) fn opt_i32(row: &PgRow, column: usize) -> Result<Option<i32>> {
    opt_bytes(row, column)?
        .map(|bytes| bytes.try_into().map(i32::from_be_bytes).map_err(|_| malformed(column)))
        .transpose()
}

/// A count, which is never negative in our tables.
pub(crate) fn count(row: &PgRow, column: usize) -> Result<u32> {
    opt_i32(row, column)?.and_then(|value| u32::try_from(value).ok()).ok_or_else(|| malformed(column))
}

pub(crate) fn flag(row: &PgRow, column: usize) -> Result<bool> {
    Ok(opt_bytes(row, column)? == Some(&[1]))
}

pub(crate) fn opt_time(row: &PgRow, column: usize) -> Result<Option<OffsetDateTime>> {
    Ok(opt_i64(row, column)?.and_then(|micros| EPOCH.checked_add(Duration::microseconds(micros))))
}

pub(crate) fn timestamp(row: &PgRow, column: usize) -> Result<OffsetDateTime> {
    opt_time(row, column)?.ok_or_else(|| malformed(column))
}

pub(crate) fn uuid(row: &PgRow, column: usize) -> Result<Uuid> {
    opt_bytes(row, column)?.and_then(|bytes| Uuid::from_slice(bytes).ok()).ok_or_else(|| malformed(column))
}

/// Names that repeat from row to row are kept once.
#[derive(Default)]
pub(crate) struct Names {
    last: [Option<Arc<str>>; 3],
    /// Whether the rows are of a statement that puts a mark where the server can't send a text.
    careful: bool,
}

/// What stands in place of a text that the server can't send: see `sendable` in the migrations.
const MARK: &str = "postrider: unreadable";
const JSON_MARK: &str = "\"postrider: unreadable\"";

impl Names {
    /// For the rows of these statements.
    pub(crate) fn of(sql: &Sql) -> Self {
        Self { careful: sql.is_careful(), ..Self::default() }
    }

    fn get(&mut self, place: usize, name: &str) -> Arc<str> {
        match &self.last[place] {
            Some(last) if **last == *name => Arc::clone(last),
            _ => {
                let name: Arc<str> = name.into();
                self.last[place] = Some(Arc::clone(&name));
                name
            }
        }
    }

    fn is_mark(&self, text: &[u8]) -> bool {
        self.careful && (text == MARK.as_bytes() || text == JSON_MARK.as_bytes())
    }
}

/// The texts of a row, one after the other; what can't be read is remembered and is something harmless.
struct Texts<'r> {
    row: &'r PgRow,
    names: &'r mut Names,
    unreadable: Option<String>,
}

impl<'r> Texts<'r> {
    fn fail(&mut self, what: &str, why: &str) {
        self.unreadable.get_or_insert_with(|| format!("can't read {what}: {why}"));
    }

    fn opt(&mut self, column: usize, what: &str) -> Option<Cow<'r, str>> {
        let bytes = opt_bytes(self.row, column).ok().flatten()?;
        if self.names.is_mark(bytes) {
            self.fail(what, "the database can't send it as UTF-8");
            // Something that every encoding has: it may go into the archive.
            return Some(Cow::Borrowed("?"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(Cow::Borrowed(text)),
            Err(_) => {
                self.fail(what, "it is not UTF-8");
                Some(String::from_utf8_lossy(bytes))
            }
        }
    }

    fn text(&mut self, column: usize, what: &str) -> Cow<'r, str> {
        self.opt(column, what).unwrap_or_else(|| {
            self.fail(what, "it is missing");
            Cow::Borrowed("")
        })
    }

    fn name(&mut self, place: usize, column: usize, what: &str) -> Arc<str> {
        let name = self.text(column, what);
        self.names.get(place, &name)
    }

    /// JSON, or this in its place.
    fn json(&mut self, column: usize, what: &str, otherwise: &str) -> String {
        match opt_bytes(self.row, column).ok().flatten() {
            Some(bytes) if self.names.is_mark(bytes) => {
                self.fail(what, "the database can't send it as UTF-8");
                otherwise.to_owned()
            }
            _ => self.text(column, what).into_owned(),
        }
    }

    fn payload(&mut self) -> Payload {
        let Some(content_type) = self.opt(9, "content_type") else {
            return Payload::Json(self.json(8, "payload", "null"));
        };
        let bytes = opt_bytes(self.row, 10).ok().flatten().unwrap_or_default();
        if self.names.is_mark(bytes) {
            self.fail("content", "it is too large");
            return Payload::Bytes { content_type: content_type.into_owned(), bytes: Vec::new() };
        }
        Payload::Bytes { content_type: content_type.into_owned(), bytes: bytes.to_vec() }
    }

    /// When it was recorded, and when it occurred. A time that nobody can show becomes that of the recording.
    fn times(&mut self, event_id: Uuid) -> (OffsetDateTime, OffsetDateTime) {
        let recorded_at = opt_time(self.row, 13).ok().flatten().unwrap_or_else(|| {
            self.fail("recorded_at", "it is out of range");
            OffsetDateTime::UNIX_EPOCH
        });
        // What RFC 3339 can write.
        let can_be_shown = |time: &OffsetDateTime| (1..=9999).contains(&time.year());
        let occurred_at = opt_time(self.row, 12).ok().flatten().filter(can_be_shown).unwrap_or_else(|| {
            tracing::warn!(%event_id, "occurred_at is out of range; using the time of recording instead");
            recorded_at
        });
        (recorded_at, occurred_at)
    }
}

/// The event in the first fifteen columns, in the order of every statement that returns events. Its number and its id are always
/// there; nothing else of it can fail.
pub(crate) fn decoded(row: &PgRow, names: &mut Names) -> Result<Decoded> {
    let (id, event_id) = (int64(row, 0)?, uuid(row, 1)?);
    let mut texts = Texts { row, names, unreadable: None };
    let payload = texts.payload();
    let (recorded_at, occurred_at) = texts.times(event_id);
    let event = Recorded {
        id,
        event_id,
        stream: texts.name(0, 2, "stream"),
        event_type: texts.name(1, 3, "event_type"),
        aggregate_type: texts.name(2, 4, "aggregate_type"),
        aggregate_id: texts.text(5, "aggregate_id").into_owned(),
        ordering_key: texts.opt(6, "ordering_key").map(Cow::into_owned),
        sequence: opt_i64(row, 7).ok().flatten(),
        payload,
        headers: Headers::from_json(texts.json(11, "headers", "{}")),
        occurred_at,
        recorded_at,
        // It counts the first try: anything below says nothing.
        max_attempts: opt_i32(row, 14)
            .ok()
            .flatten()
            .and_then(|most| u32::try_from(most).ok())
            .filter(|most| *most > 0),
    };
    Ok(Decoded { event, unreadable: texts.unreadable })
}

/// The same for people: as much of it as can be read.
pub(crate) fn recorded(row: &PgRow, names: &mut Names) -> Result<Recorded> {
    decoded(row, names).map(|decoded| decoded.event)
}
