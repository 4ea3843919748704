//! What is wrong with the database, or will be, as far as it can tell itself.

use std::time::Duration;

use postrider_core::{Check, Result};
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::position;
use crate::sql::statement;
use crate::store::SqliteStore;

const OP: &str = "checks";
/// A larger file is not read through.
const LARGE: i64 = 256 << 20;
/// Below this a connection gives up too soon.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn checks(store: &SqliteStore) -> Result<Vec<Check>> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let row = store.sql.query(statement!("checks.sql")).bind(now).fetch_one(&mut *conn).await;
    let row = row.map_err(failed(OP))?;
    let mut checks = vec![journal(&row)?, patience(&row)?, lanes(&row)?, inbox(&row)?, space(&row)?];
    checks.push(match position::check_end(&mut conn, OP).await {
        Ok(()) => Check::good("sequence", "it is ahead of everything that was read"),
        Err(error) => Check::bad("sequence", error.message().to_owned(), "do what the message says"),
    });
    checks.push(file(&mut conn, &row).await?);
    drop(conn);
    checks.push(writing(store).await);
    Ok(checks)
}

fn journal(row: &SqliteRow) -> Result<Check> {
    let mode: String = row.try_get("journal").map_err(failed(OP))?;
    Ok(match mode.as_str() {
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
    let millis: i64 = row.try_get("busy").map_err(failed(OP))?;
    Ok(if u128::try_from(millis).unwrap_or(0) < PATIENCE.as_millis() {
        let what = format!("a connection waits {millis} ms for a lock");
        Check::warn("busy timeout", what, "set busy_timeout to 5 s or more where the pool is created")
    } else {
        Check::good("busy timeout", format!("a connection waits {millis} ms for a lock"))
    })
}

fn lanes(row: &SqliteRow) -> Result<Check> {
    Ok(match row.try_get::<Option<String>, _>("unheld").map_err(failed(OP))? {
        None => Check::good("lanes", "every lane with events to read has a holder"),
        Some(names) => Check::warn(
            "lanes",
            format!("no relay reads the waiting events of: {names}"),
            "start a relay with these subscriptions, or remove those that you don't need; until then retention can't remove their events",
        ),
    })
}

fn inbox(row: &SqliteRow) -> Result<Check> {
    Ok(match row.try_get::<Option<String>, _>("forgetful").map_err(failed(OP))? {
        None => Check::good("inbox", "it remembers every event in the log"),
        Some(names) => Check::warn(
            "inbox",
            format!("it has forgotten events that are still in the log and could be replayed, of: {names}"),
            "keep inbox marks at least as long as events; otherwise a replay needs --effects-may-repeat",
        ),
    })
}

fn space(row: &SqliteRow) -> Result<Check> {
    let all: i64 = row.try_get("bytes").map_err(failed(OP))?;
    let free: i64 = row.try_get("free_bytes").map_err(failed(OP))?;
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
    let bytes: i64 = row.try_get("bytes").map_err(failed(OP))?;
    if bytes > LARGE {
        let what = format!("not checked, because it has {} MB; run `pragma quick_check`", bytes >> 20);
        return Ok(Check::good("file", what));
    }
    let found = query("pragma quick_check(1)").fetch_one(conn).await;
    let found: String = found.and_then(|row| row.try_get(0)).map_err(failed(OP))?;
    Ok(if found == "ok" {
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
