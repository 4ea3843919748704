//! The last row that a read has passed: what a settle proves itself by.
//!
//! A file can be set back under a running relay, by SQLite's backup API for one. The lane may then stand where the relay believes it
//! to be, while the events of its batch are gone, and their numbers are given to others. A log that still has the witness has
//! given out only higher numbers since: one writer at a time, and the counter of numbers goes with the rows.

use postrider_core::{Error, ErrorKind, Result, Witness};
use postrider_sql::event::{column, event_id};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use crate::sql::Sql;

/// A row of the log, by its number and its event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) id: i64,
    event_id: Uuid,
}

impl Passed {
    /// A row of read.sql.
    pub(crate) fn of(row: &SqliteRow, op: &'static str) -> Result<Self> {
        Ok(Self { id: row.number(column::ID, op)?, event_id: event_id(row, op) })
    }

    /// Whether the log has it.
    pub(crate) async fn is_there(
        self,
        sql: Sql,
        conn: &mut SqliteConnection,
        op: &'static str,
    ) -> Result<bool> {
        let look = sql.query(statement!("settle_witness.sql")).bind(self.id).bind(self.event_id);
        Ok(look.fetch_optional(conn, op).await?.is_some())
    }
}

impl From<Passed> for Witness {
    fn from(passed: Passed) -> Self {
        Self { number: passed.id, id: passed.event_id.to_string() }
    }
}

impl TryFrom<&Witness> for Passed {
    type Error = Error;

    fn try_from(witness: &Witness) -> Result<Self> {
        let event_id = witness.id.parse().map_err(|_| {
            let message =
                format!("{:?} must be the id of an event to be a witness in an SQLite store", witness.id);
            Error::new(ErrorKind::Invalid, "settle", message)
        })?;
        Ok(Self { id: witness.number, event_id })
    }
}
