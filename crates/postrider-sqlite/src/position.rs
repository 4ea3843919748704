//! A position of this store: the id of the last event that was passed.

use postrider_core::{Error, ErrorKind, Position, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::sql::{Sql, statement};

/// The position behind an event.
pub(crate) fn position(id: i64) -> Position {
    Position::new(id.to_string())
}

/// The id that a position stands for.
pub(crate) fn id_of(position: &Position, op: &'static str) -> Result<i64> {
    position.as_str().parse().map_err(|_| {
        Error::new(ErrorKind::Invalid, op, format!("{:?} is not a position of this store", position.as_str()))
    })
}

/// Refuses a log that ends before what was already read of it: its new events would never be delivered.
pub(crate) async fn check_end(conn: &mut SqliteConnection, op: &'static str) -> Result<()> {
    let row =
        Sql::default().query(statement!("position_end.sql")).fetch_one(conn).await.map_err(failed(op))?;
    let end: i64 = row.try_get("log_end").map_err(failed(op))?;
    let furthest: i64 = row.try_get("furthest").map_err(failed(op))?;
    if furthest > end {
        return Err(Error::new(
            ErrorKind::Corrupt,
            op,
            format!(
                "the log ends at {end}, but a lane has read up to {furthest}: new events would never be delivered; \
                 stop the publishers and set seq to {furthest} in sqlite_sequence for postrider_event"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_of_another_store_is_refused() {
        assert_eq!(id_of(&position(42), "read").expect("ours"), 42);
        assert!(id_of(&Position::new("7/10:20:"), "read").is_err());
    }
}
