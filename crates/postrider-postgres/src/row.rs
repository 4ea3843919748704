//! Rows as they come over the wire, made into words.
//!
//! The columns are taken by number and without a type check: the statements are ours, and this is the one
//! place where time is spent per event.

use std::sync::Arc;

use postrider_core::{Error, ErrorKind, Headers, OffsetDateTime, Payload, Recorded, Result, Uuid};
use sqlx_core::row::Row;
use sqlx_postgres::{PgRow, PgValueRef};
use time::Duration;

/// PostgreSQL counts its microseconds from here.
const EPOCH: OffsetDateTime = time::macros::datetime!(2000-01-01 00:00 UTC);

pub(crate) fn malformed(column: usize) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "read",
        format!("column {column} of the log is not as this program knows it"),
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
pub(crate) struct Names([Option<Arc<str>>; 3]);

impl Names {
    fn get(&mut self, place: usize, name: &str) -> Arc<str> {
        match &self.0[place] {
            Some(last) if **last == *name => Arc::clone(last),
            _ => {
                let name: Arc<str> = name.into();
                self.0[place] = Some(Arc::clone(&name));
                name
            }
        }
    }
}

/// The event in the first fifteen columns, in the order of every statement that returns events.
pub(crate) fn recorded(row: &PgRow, names: &mut Names) -> Result<Recorded> {
    let payload = match opt_text(row, 9)? {
        None => Payload::Json(text(row, 8)?.to_owned()),
        Some(content_type) => Payload::Bytes {
            content_type: content_type.to_owned(),
            bytes: opt_bytes(row, 10)?.unwrap_or_default().to_vec(),
        },
    };
    Ok(Recorded {
        id: int64(row, 0)?,
        event_id: uuid(row, 1)?,
        stream: names.get(0, text(row, 2)?),
        event_type: names.get(1, text(row, 3)?),
        aggregate_type: names.get(2, text(row, 4)?),
        aggregate_id: text(row, 5)?.to_owned(),
        ordering_key: opt_text(row, 6)?.map(ToOwned::to_owned),
        sequence: opt_i64(row, 7)?,
        payload,
        headers: Headers::from_json(text(row, 11)?.to_owned()),
        occurred_at: timestamp(row, 12)?,
        recorded_at: timestamp(row, 13)?,
        max_attempts: opt_i32(row, 14)?.and_then(|attempts| u32::try_from(attempts).ok()),
    })
}
