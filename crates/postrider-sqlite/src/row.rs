//! Rows of the log as events. SQLite takes text that is not UTF-8, and keeps times in microseconds.

use postrider_core::Result;
use postrider_sql::Columns;
use postrider_sql::event::{self, Decoded, Names, column};
use sqlx_sqlite::SqliteRow;

/// The key that an event is ordered by.
pub(crate) fn key(row: &SqliteRow, op: &'static str) -> Result<String> {
    match row.maybe_text(column::ORDERING_KEY, op)? {
        Some(key) => Ok(key),
        None => {
            Ok(format!("{}:{}", row.text(column::AGGREGATE_TYPE, op)?, row.text(column::AGGREGATE_ID, op)?))
        }
    }
}

/// The event of a row; and, if not all of it can be read, why.
pub(crate) fn decoded(row: &SqliteRow, names: &mut Names, op: &'static str) -> Result<Decoded> {
    event::decoded(row, Columns::time, names, op)
}
