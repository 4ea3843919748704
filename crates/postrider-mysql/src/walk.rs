//! A walk through the log and the archive, a page at a time.

use postrider_core::{LoggedEvent, Recorded, Result};
use postrider_sql::event::Names;
use postrider_sql::statement;
use sqlx_mysql::MySqlConnection;

use crate::row;
use crate::run::{self, EVENT};
use crate::sql::Sql;

const OP: &str = "events";

/// The next `rows` events after one number and before another, the oldest or the newest first.
pub(crate) async fn page(
    sql: Sql,
    conn: &mut MySqlConnection,
    oldest: bool,
    (after, before): (i64, i64),
    rows: u32,
    names: &mut Names,
) -> Result<Vec<LoggedEvent>> {
    let mut page = logged(sql, conn, oldest, (after, before), rows, names).await?;
    let archive = if oldest { statement!("archive_oldest.sql") } else { statement!("archive_newest.sql") };
    let archive = sql.query(archive).bind(after).bind(before).bind(rows);
    for row in &archive.fetch_all(conn, OP).await? {
        page.push(LoggedEvent { event: row::decoded(row, names, OP)?.event, archived: true });
    }
    page.sort_by_key(|logged| if oldest { logged.event.id } else { -logged.event.id });
    // What was filed between the two looks is in both.
    page.dedup_by_key(|logged| logged.event.id);
    page.truncate(rows as usize);
    Ok(page)
}

/// The same of the log alone. A run may have fewer events than numbers, after retention.
async fn logged(
    sql: Sql,
    conn: &mut MySqlConnection,
    oldest: bool,
    (mut after, mut before): (i64, i64),
    rows: u32,
    names: &mut Names,
) -> Result<Vec<LoggedEvent>> {
    let mut page: Vec<LoggedEvent> = Vec::new();
    while page.len() < rows as usize {
        let left = i64::from(rows) - page.len() as i64;
        let runs = if oldest {
            run::after(sql, conn, after, before - 1, left, OP).await?
        } else {
            run::back(sql, conn, before, after, left, OP).await?
        };
        let Some(last) = runs.last() else { break };
        if oldest {
            after = last.last;
        } else {
            before = last.before() + 1;
        }
        for read in run::read(sql, conn, &runs, EVENT, None, OP).await? {
            let event = Recorded { id: read.number, ..row::decoded(&read.row, names, OP)?.event };
            page.push(LoggedEvent { event, archived: false });
        }
    }
    Ok(page)
}
