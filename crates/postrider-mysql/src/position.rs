//! Whether positions are right: the number of the last event that was passed.

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::{Columns, statement};
use sqlx_core::acquire::Acquire;
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::sql::Sql;

/// Where a log ends, and how far the furthest lane has read. A lane that is ahead, as after a restore of some of the tables, loses
/// nothing: the next numbers are behind it (see the numbering step).
pub(crate) async fn ends(sql: Sql, conn: &mut MySqlConnection, op: &'static str) -> Result<(i64, i64)> {
    let row = sql.query(statement!("position_end.sql")).fetch_one(conn, op).await?;
    Ok((row.number("log_end", op)?, row.number("furthest", op)?))
}

/// Refuses a log whose next event would get an id that was used: as after a restore of some of the tables. It would be delivered
/// late or not at all.
pub(crate) async fn check_end(conn: &mut MySqlConnection, op: &'static str) -> Result<()> {
    let row = Sql::default().query(statement!("position_end.sql")).fetch_one(conn, op).await?;
    // The counter is known to the server alone: one id is taken and given up.
    let mut tx = conn.begin().await.map_err(failed(op))?;
    let taken = query("insert into postrider_arrival () values ()").execute(&mut *tx).await;
    let next = i64::try_from(taken.map_err(failed(op))?.last_insert_id()).unwrap_or(i64::MAX);
    tx.rollback().await.map_err(failed(op))?;
    let used = row.number("used", op)?;
    if next <= used {
        let message = format!(
            "the next event would get the id {next}, but {used} was used: run `alter table postrider_arrival auto_increment = \
             {}`",
            used.saturating_add(1)
        );
        return Err(Error::new(ErrorKind::Corrupt, op, message));
    }
    Ok(())
}
