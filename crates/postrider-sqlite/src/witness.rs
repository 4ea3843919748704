//! The last row that a read has passed: what a settle proves itself by.
//!
//! A file can be set back under a running relay, by SQLite's backup API for one. The lane may then stand where the relay believes it
//! to be, while the events of its batch are gone, and their numbers are given to others. A log that still has the witness has
//! given out only higher numbers since: one writer at a time, and the counter of numbers goes with the rows.

use std::fmt;
use std::str::FromStr;

use postrider_core::{Error, ErrorKind, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use crate::error::failed;
use crate::row;
use crate::sql::{Sql, statement};

/// A row of the log, by its number and its event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) id: i64,
    event_id: Uuid,
}

impl Witness {
    /// A row of read.sql.
    pub(crate) fn of(row: &SqliteRow, op: &'static str) -> Result<Self> {
        Ok(Self { id: row.try_get(0).map_err(failed(op))?, event_id: row::event_id(row) })
    }

    /// Whether the log has it.
    pub(crate) async fn is_there(
        self,
        sql: Sql,
        conn: &mut SqliteConnection,
        op: &'static str,
    ) -> Result<bool> {
        let look = sql.query(statement!("settle_witness.sql")).bind(self.id).bind(self.event_id);
        Ok(look.fetch_optional(conn).await.map_err(failed(op))?.is_some())
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.event_id)
    }
}

impl FromStr for Witness {
    type Err = Error;

    fn from_str(mark: &str) -> Result<Self> {
        let parts =
            mark.split_once('/').and_then(|(id, event_id)| Some((id.parse().ok()?, event_id.parse().ok()?)));
        let (id, event_id) = parts.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "settle",
                format!("{mark:?} is not the mark of a batch of this store"),
            )
        })?;
        Ok(Self { id, event_id })
    }
}
