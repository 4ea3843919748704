//! Rows of the log as events.
//!
//! Nothing that a table accepts may stop a reader, so text that is not UTF-8 is read with replacement
//! characters and not refused.

use std::borrow::Cow;
use std::sync::Arc;

use postrider_core::{Headers, Payload, Recorded, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteRow;

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
        recorded_at: row.try_get(column::RECORDED_AT).map_err(failed(op))?,
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

/// The event of a row.
pub(crate) fn recorded(row: &SqliteRow, names: &mut Names, op: &'static str) -> Result<Recorded> {
    let payload = match maybe_text(row, column::PAYLOAD, op)? {
        Some(json) => Payload::Json(json),
        None => Payload::Bytes {
            content_type: text(row, column::CONTENT_TYPE, op)?.into_owned(),
            bytes: row.try_get(column::CONTENT).map_err(failed(op))?,
        },
    };
    let max_attempts: Option<i64> = row.try_get(column::MAX_ATTEMPTS).map_err(failed(op))?;
    Ok(Recorded {
        id: row.try_get(column::ID).map_err(failed(op))?,
        event_id: row.try_get(column::EVENT_ID).map_err(failed(op))?,
        stream: names.shared(&text(row, column::STREAM, op)?),
        event_type: names.shared(&text(row, column::EVENT_TYPE, op)?),
        aggregate_type: names.shared(&text(row, column::AGGREGATE_TYPE, op)?),
        aggregate_id: text(row, column::AGGREGATE_ID, op)?.into_owned(),
        ordering_key: maybe_text(row, column::ORDERING_KEY, op)?,
        sequence: row.try_get(column::SEQUENCE).map_err(failed(op))?,
        payload,
        headers: Headers::from_json(text(row, column::HEADERS, op)?.into_owned()),
        occurred_at: time_of(row.try_get(column::OCCURRED_AT).map_err(failed(op))?),
        recorded_at: time_of(row.try_get(column::RECORDED_AT).map_err(failed(op))?),
        max_attempts: max_attempts.and_then(|most| u32::try_from(most).ok()),
    })
}
