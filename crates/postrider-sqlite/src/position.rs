//! Whether positions are right: the id of the last event that was passed.

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::SqliteConnection;

use crate::sql::Sql;

/// Refuses a log that ends before what was already read of it: its new events would never be delivered.
pub(crate) async fn check_end(conn: &mut SqliteConnection, op: &'static str) -> Result<()> {
    let row = Sql::default().query(statement!("position_end.sql")).fetch_one(conn, op).await?;
    let (end, furthest) = (row.number("log_end", op)?, row.number("furthest", op)?);
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
