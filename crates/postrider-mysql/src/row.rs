//! Rows of the log as events, and the dates of the log: its times are kept as dates in UTC.

use postrider_core::{OffsetDateTime, Result};
use postrider_sql::event::{self, Decoded, Names, column, unreadable};
use postrider_sql::{Column, Columns};
use sqlx_core::row::Row;
use sqlx_mysql::MySqlRow;
use time::{PrimitiveDateTime, UtcOffset};

use crate::error::failed;

/// A time of the log.
pub(crate) fn date<'c>(
    row: &MySqlRow,
    column: impl Into<Column<'c>>,
    op: &'static str,
) -> Result<OffsetDateTime> {
    let date: PrimitiveDateTime = match column.into() {
        Column::At(place) => row.try_get_unchecked(place),
        Column::Named(name) => row.try_get_unchecked(name),
    }
    .map_err(failed(op))?;
    Ok(date.assume_utc())
}

/// A time as the log keeps it.
pub(crate) fn date_of(time: OffsetDateTime) -> PrimitiveDateTime {
    let time = time.to_offset(UtcOffset::UTC);
    PrimitiveDateTime::new(time.date(), time.time())
}

/// The event of a row; and, if not all of it can be read, why.
pub(crate) fn decoded(row: &MySqlRow, names: &mut Names, op: &'static str) -> Result<Decoded> {
    let mut decoded = event::decoded(row, date, names, op)?;
    let has = |column| matches!(row.maybe_bytes(column, op), Ok(Some(_)));
    if !has(column::PAYLOAD) && !has(column::CONTENT_TYPE) {
        decoded.unreadable.get_or_insert_with(|| unreadable("payload"));
    }
    Ok(decoded)
}
