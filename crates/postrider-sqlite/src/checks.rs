//! What is wrong with the database, or will be, as far as it can tell itself.

use std::time::Duration;

use postrider_core::{Check, Result};
use postrider_sql::checks::{inbox, lanes};
use postrider_sql::{Columns, statement};
use sqlx_core::query::query;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::position;
use crate::relays;
use crate::store::SqliteStore;

const OP: &str = "checks";
/// A larger file is not read through.
const LARGE: i64 = 256 << 20;
/// Below this a connection gives up too soon.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn checks(store: &SqliteStore) -> Result<Vec<Check>> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let row = store.sql.query(statement!("checks.sql")).bind(now).fetch_one(&mut conn, OP).await?;
    let relays = relays::known(store, &mut conn, now).await?;
    let mut checks = vec![
        journal(&row)?,
        patience(&row)?,
        lanes(row.maybe_text("unheld", OP)?.as_deref(), &relays),
        inbox(row.maybe_text("forgetful", OP)?.as_deref()),
        space(&row)?,
    ];
    checks.push(match position::check_end(&mut conn, OP).await {
        Ok(()) => Check::good("sequence", "the next id is higher than every id already read"),
        Err(error) => Check::bad("sequence", error.message().to_owned(), "follow the message"),
    });
    checks.push(file(&mut conn, &row).await?);
    drop(conn);
    checks.push(writing(store).await);
    Ok(checks)
}

fn journal(row: &SqliteRow) -> Result<Check> {
    Ok(match &*row.text("journal", OP)? {
        "wal" => Check::good("journal", "write-ahead log (WAL)"),
        "memory" => Check::good("journal", "the database is in memory"),
        other => Check::bad(
            "journal",
            format!("the journal mode is {other:?}: readers and writers block each other"),
            "run: pragma journal_mode = wal; it does not work on a network drive, so use a local disk",
        ),
    })
}

fn patience(row: &SqliteRow) -> Result<Check> {
    let millis = row.number("busy", OP)?;
    Ok(if u128::try_from(millis).unwrap_or(0) < PATIENCE.as_millis() {
        let what = format!("a connection waits {millis} ms for a lock");
        Check::warn("busy timeout", what, "set busy_timeout to 5 s or more where the pool is created")
    } else {
        Check::good("busy timeout", format!("a connection waits {millis} ms for a lock"))
    })
}

fn space(row: &SqliteRow) -> Result<Check> {
    let (all, free) = (row.number("bytes", OP)?, row.number("free_bytes", OP)?);
    let (all_mb, free_mb) = (all >> 20, free >> 20);
    Ok(if free > LARGE && free > all / 2 {
        let what = format!("{free_mb} of the file's {all_mb} MB are free");
        Check::warn(
            "free pages",
            what,
            "run `vacuum` when nothing writes, or do nothing: new events will use them",
        )
    } else {
        Check::good("free pages", format!("{free_mb} of the file's {all_mb} MB"))
    })
}

async fn file(conn: &mut SqliteConnection, row: &SqliteRow) -> Result<Check> {
    let bytes = row.number("bytes", OP)?;
    if bytes > LARGE {
        let what = format!("not checked, because it has {} MB; run `pragma quick_check`", bytes >> 20);
        return Ok(Check::good("file", what));
    }
    let found = query("pragma quick_check(1)").fetch_one(conn).await.map_err(failed(OP))?;
    Ok(if found.text(0, OP)? == "ok" {
        Check::good("file", "it is intact")
    } else {
        Check::bad(
            "file",
            "it is damaged",
            "stop everything, copy the file, and run `pragma integrity_check`",
        )
    })
}

async fn writing(store: &SqliteStore) -> Check {
    match store.write(OP).await {
        Ok(_) => Check::good("writing", "the write lock was available in time"),
        Err(error) => Check::bad(
            "writing",
            error.message().to_owned(),
            "check for open transactions, and that the file and its folder are writable",
        ),
    }
}
