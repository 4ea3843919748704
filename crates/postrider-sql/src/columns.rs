//! The columns of a row, whichever driver it came from.

use std::borrow::Cow;
use std::fmt;

use postrider_core::{Error, ErrorKind, OffsetDateTime, Result};
use sqlx_core::column::ColumnIndex;
use sqlx_core::decode::Decode;
use sqlx_core::row::Row;
use uuid::Uuid;

use crate::clock::time_of;

/// A column, by its place or its name.
#[derive(Clone, Copy)]
pub enum Column<'c> {
    /// The place, from 0 on.
    At(usize),
    /// The name.
    Named(&'c str),
}

impl From<usize> for Column<'_> {
    fn from(place: usize) -> Self {
        Self::At(place)
    }
}

impl<'c> From<&'c str> for Column<'c> {
    fn from(name: &'c str) -> Self {
        Self::Named(name)
    }
}

impl fmt::Display for Column<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(place) => write!(f, "{place}"),
            Self::Named(name) => write!(f, "{name:?}"),
        }
    }
}

fn unexpected(column: Column<'_>, op: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, op, format!("the database has an unexpected value in {column}"))
}

/// Nearly all text is UTF-8, which is told faster than what is wrong with it.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The values of a row. Text that is not UTF-8 is read with replacement characters.
pub trait Columns {
    /// The bytes of a text or a blob; nothing if it is null.
    fn maybe_bytes<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<&[u8]>>;

    /// A whole number, of whatever size the database takes it for; nothing if it is null.
    fn maybe_number<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<i64>>;

    /// The bytes of a text or a blob.
    fn bytes<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<&[u8]> {
        let column = column.into();
        self.maybe_bytes(column, op)?.ok_or_else(|| unexpected(column, op))
    }

    /// A text.
    fn text<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Cow<'_, str>> {
        self.bytes(column, op).map(lossy)
    }

    /// A text that may be null.
    fn maybe_text<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<String>> {
        Ok(self.maybe_bytes(column, op)?.map(|bytes| lossy(bytes).into_owned()))
    }

    /// A whole number.
    fn number<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<i64> {
        let column = column.into();
        self.maybe_number(column, op)?.ok_or_else(|| unexpected(column, op))
    }

    /// A number of lanes or attempts.
    fn small<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<u32> {
        Ok(u32::try_from(self.number(column, op)?).unwrap_or(u32::MAX))
    }

    /// A number of rows; null is none.
    fn count<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<u64> {
        Ok(self.maybe_number(column, op)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    /// Whether the column says so; null does not.
    fn flag<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<bool> {
        Ok(self.maybe_number(column, op)?.is_some_and(|flag| flag != 0))
    }

    /// A time that is kept in microseconds.
    fn time<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<OffsetDateTime> {
        self.number(column, op).map(time_of)
    }

    /// A time that is kept in microseconds, or null.
    fn maybe_time<'c>(
        &self,
        column: impl Into<Column<'c>>,
        op: &'static str,
    ) -> Result<Option<OffsetDateTime>> {
        Ok(self.maybe_number(column, op)?.map(time_of))
    }

    /// The id of an event or a relay.
    fn id<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Uuid> {
        let column = column.into();
        self.maybe_id(column, op)?.ok_or_else(|| unexpected(column, op))
    }

    /// The id of an event, which may be null.
    fn maybe_id<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<Uuid>> {
        let column = column.into();
        let id = self.maybe_bytes(column, op)?.map(Uuid::from_slice).transpose();
        id.map_err(|error| unexpected(column, op).caused_by(error))
    }
}

impl<R> Columns for R
where
    R: Row,
    usize: ColumnIndex<R>,
    for<'n> &'n str: ColumnIndex<R>,
    for<'r> &'r [u8]: Decode<'r, R::Database>,
    for<'r> i64: Decode<'r, R::Database>,
{
    fn maybe_bytes<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<&[u8]>> {
        let column = column.into();
        let bytes = match column {
            Column::At(place) => self.try_get_unchecked(place),
            Column::Named(name) => self.try_get_unchecked(name),
        };
        bytes.map_err(|error| unexpected(column, op).caused_by(error))
    }

    fn maybe_number<'c>(&self, column: impl Into<Column<'c>>, op: &'static str) -> Result<Option<i64>> {
        let column = column.into();
        let number = match column {
            Column::At(place) => self.try_get_unchecked(place),
            Column::Named(name) => self.try_get_unchecked(name),
        };
        number.map_err(|error| unexpected(column, op).caused_by(error))
    }
}
