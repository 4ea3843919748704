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
        Ok(()) => Check::good("sequence", "it is past everything that was read"),
        Err(error) => Check::bad("sequence", error.message().to_owned(), "as it says"),
    });
    checks.push(file(&mut conn, &row).await?);
    drop(conn);
    checks.push(writing(store).await);
    Ok(checks)
}

fn journal(row: &SqliteRow) -> Result<Check> {
    let mode: String = row.try_get("journal").map_err(failed(OP))?;
    Ok(match mode.as_str() {
        "wal" => Check::good("journal", "it is a write-ahead log"),
        "memory" => Check::good("journal", "the database is in memory"),
        other => Check::bad(
            "journal",
            format!("it is {other:?}: readers and writers stop each other"),
            "run: pragma journal_mode = wal; on a network drive it is not possible: use a local disk",
        ),
    })
}

fn patience(row: &SqliteRow) -> Result<Check> {
    let millis: i64 = row.try_get("busy").map_err(failed(OP))?;
    Ok(if u128::try_from(millis).unwrap_or(0) < PATIENCE.as_millis() {
        let what = format!("a connection waits {millis} ms for another");
        Check::warn("busy timeout", what, "set it to 5 s or more where the pool is made")
    } else {
        Check::good("busy timeout", format!("a connection waits {millis} ms for another"))
    })
}

fn lanes(row: &SqliteRow) -> Result<Check> {
    Ok(match row.try_get::<Option<String>, _>("unheld").map_err(failed(OP))? {
        None => Check::good("lanes", "no lane with something to read is without a holder"),
        Some(names) => Check::warn(
            "lanes",
            format!("nobody reads what waits for: {names}"),
            "start a relay with these subscriptions, or remove those that are not needed: retention waits for them",
        ),
    })
}

fn inbox(row: &SqliteRow) -> Result<Check> {
    Ok(match row.try_get::<Option<String>, _>("forgetful").map_err(failed(OP))? {
        None => Check::good("inbox", "it is kept as long as the events in the log"),
        Some(names) => Check::warn(
            "inbox",
            format!(
                "it has forgotten events that are still in the log, and that could be replayed, of: {names}"
            ),
            "keep the inbox at least as long as events, or a replay has to say that effects may repeat",
        ),
    })
}

fn space(row: &SqliteRow) -> Result<Check> {
    let all: i64 = row.try_get("bytes").map_err(failed(OP))?;
    let free: i64 = row.try_get("free_bytes").map_err(failed(OP))?;
    let (all_mb, free_mb) = (all >> 20, free >> 20);
    Ok(if free > LARGE && free > all / 2 {
        let what = format!("{free_mb} of the file's {all_mb} MB are free");
        Check::warn("free pages", what, "run `vacuum` when nobody writes, or leave it: new events use them")
    } else {
        Check::good("free pages", format!("{free_mb} of the file's {all_mb} MB"))
    })
}

async fn file(conn: &mut SqliteConnection, row: &SqliteRow) -> Result<Check> {
    let bytes: i64 = row.try_get("bytes").map_err(failed(OP))?;
    if bytes > LARGE {
        let what = format!("not looked at: it has {} MB; `pragma quick_check` does", bytes >> 20);
        return Ok(Check::good("file", what));
    }
    let found = query("pragma quick_check(1)").fetch_one(conn).await;
    let found: String = found.and_then(|row| row.try_get(0)).map_err(failed(OP))?;
    Ok(if found == "ok" {
        Check::good("file", "it is sound")
    } else {
        Check::bad("file", "it is damaged", "stop everything, copy it, and see `pragma integrity_check`")
    })
}

async fn writing(store: &SqliteStore) -> Check {
    match store.write(OP).await {
        Ok(_) => Check::good("writing", "the write lock was free in time"),
        Err(error) => Check::bad(
            "writing",
            error.message().to_owned(),
            "look who holds a transaction open, and whether the file and its folder may be written",
        ),
    }
}
