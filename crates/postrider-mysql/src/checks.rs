//! What is wrong with the database, or will be, as far as it can tell itself.

use postrider_core::{Check, OffsetDateTime, Result};
use postrider_sql::checks::{inbox, lanes};
use postrider_sql::clock::micros;
use postrider_sql::{Columns, statement};
use sqlx_core::query::query;
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::months;
use crate::position;
use crate::relays;
use crate::routines;
use crate::store::MySqlStore;

const OP: &str = "checks";
/// A clock that is off by more than this misleads people; leases don't depend on it.
const DRIFT: i64 = 2_000_000;
/// More of them make every look at the log slower.
const MANY_HOLES: i64 = 10_000;
/// Several payloads at the usual limit, and a settle of many failures.
const SMALL_PACKET: i64 = 8 << 20;
/// A transaction that is open for longer keeps the server from removing old rows.
const LONG: i64 = 3_600;

pub(crate) async fn checks(store: &MySqlStore, asked_at: OffsetDateTime) -> Result<Vec<Check>> {
    let mut conn = store.conn(OP).await?;
    // Before numbers are given, which puts it right.
    let ends = position::ends(store.sql, &mut conn, OP).await?;
    store.catch_up(&mut conn, OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let row = store.sql.query(statement!("checks.sql")).bind(now).fetch_one(&mut conn, OP).await?;
    let relays = relays::known(store, &mut conn, now).await?;
    let mut checks = vec![
        clock(&row, asked_at)?,
        zone(&row)?,
        counter(&row)?,
        binlog(&row)?,
        packet(&row)?,
        engine(&row)?,
        isolation(&mut conn).await?,
        locking(&mut conn).await,
        long_transactions(&mut conn).await,
        months::doctor(store, &mut conn).await?,
        holes(&row)?,
        positions(ends),
        routines_there(&mut conn).await?,
        lanes(row.maybe_text("unheld", OP)?.as_deref(), &relays),
        inbox(row.maybe_text("forgetful", OP)?.as_deref()),
    ];
    checks.push(match position::check_end(&mut conn, OP).await {
        Ok(()) => Check::good("sequence", "the next id is higher than every id already read"),
        Err(error) => Check::bad("sequence", error.message().to_owned(), "follow the message"),
    });
    Ok(checks)
}

fn clock(row: &MySqlRow, asked_at: OffsetDateTime) -> Result<Check> {
    let drift = micros(asked_at).saturating_sub(row.number("clock", OP)?);
    Ok(if drift.abs() > DRIFT {
        let what =
            format!("the clocks of the database and of this machine differ by {} s", drift.abs() / 1_000_000);
        Check::warn("clock", what, "synchronize both with NTP")
    } else {
        Check::good("clock", "the clocks of the database and of this machine agree")
    })
}

fn zone(row: &MySqlRow) -> Result<Check> {
    let zone = row.text("zone", OP)?;
    Ok(if ["+00:00", "UTC", "SYSTEM"].contains(&&*zone) {
        Check::good("time zone", format!("it is {zone}; events always use UTC"))
    } else {
        Check::warn(
            "time zone",
            format!("the server time zone is {zone}, but events use UTC"),
            "set occurred_at in UTC (utc_timestamp(6), not now()), or set time_zone = '+00:00' for publishers",
        )
    })
}

fn counter(row: &MySqlRow) -> Result<Check> {
    let (mode, step) = (row.number("autoinc", OP)?, row.number("step", OP)?);
    Ok(if step != 1 {
        Check::warn(
            "auto-increment",
            format!("auto_increment_increment is {step}; it must be 1, because each gap costs a lookup"),
            "write to one server only, and set auto_increment_increment = 1 there; if transactions commit on several servers, as \
             in a Galera cluster, events of a key can come out of order",
        )
    } else if mode == 0 {
        Check::warn(
            "auto-increment",
            "innodb_autoinc_lock_mode is 0: publishers block each other for the length of a statement",
            "set innodb_autoinc_lock_mode = 2 with binlog_format = ROW, or 1",
        )
    } else {
        Check::good("auto-increment", format!("innodb_autoinc_lock_mode is {mode}"))
    })
}

fn binlog(row: &MySqlRow) -> Result<Check> {
    let format = row.text("format", OP)?;
    Ok(if !row.flag("logging", OP)? {
        Check::good("binary log", "there is none")
    } else if &*format == "STATEMENT" {
        Check::bad(
            "binary log",
            "binlog_format is STATEMENT: relays can't write, because they use READ COMMITTED",
            "set binlog_format = ROW (or MIXED)",
        )
    } else {
        Check::good("binary log", format!("its format is {format}"))
    })
}

fn packet(row: &MySqlRow) -> Result<Check> {
    let bytes = row.number("packet", OP)?;
    let what = format!("max_allowed_packet is {} MB", bytes >> 20);
    Ok(if bytes < SMALL_PACKET {
        Check::warn(
            "packet",
            what,
            "set it to 16 MB or more: a payload may have 1 MiB, and one statement can record many of them",
        )
    } else {
        Check::good("packet", what)
    })
}

fn engine(row: &MySqlRow) -> Result<Check> {
    Ok(match row.number("strangers", OP)? {
        0 => Check::good("engine", "all tables are InnoDB"),
        some => Check::bad(
            "engine",
            format!("{some} of the postrider_… tables are not InnoDB, so they have no transactions"),
            "run: alter table … engine = InnoDB",
        ),
    })
}

/// The isolation level of publishers that don't set one.
async fn isolation(conn: &mut MySqlConnection) -> Result<Check> {
    let level =
        query("show global variables where variable_name in ('tx_isolation', 'transaction_isolation')");
    let level = level.fetch_all(conn).await.map_err(failed(OP))?;
    let level = level.first().map_or(Ok(None), |row| row.maybe_text(1, OP))?.unwrap_or_default();
    Ok(if level == "READ-UNCOMMITTED" {
        Check::warn(
            "isolation",
            "the default isolation level is READ UNCOMMITTED: applications can read changes that are rolled back later",
            "set transaction_isolation to READ-COMMITTED or REPEATABLE-READ; events are delivered correctly with every level",
        )
    } else {
        Check::good("isolation", format!("the default isolation level is {level}; every level works"))
    })
}

/// Tried, not believed: a proxy in between may not know it.
async fn locking(conn: &mut MySqlConnection) -> Check {
    let tried = query("select one from postrider_numbering where one = 1 for update skip locked");
    match tried.fetch_all(conn).await.map_err(failed(OP)) {
        Ok(_) => Check::good("locking", "SKIP LOCKED works"),
        Err(error) => Check::bad(
            "locking",
            format!("can't lock a row with SKIP LOCKED: {}", error.message()),
            "use MariaDB 10.6 or MySQL 8.0.11 or later, and grant the UPDATE privilege",
        ),
    }
}

async fn long_transactions(conn: &mut MySqlConnection) -> Check {
    const NAME: &str = "long transactions";
    let oldest = query(
        "select cast(coalesce(max(timestampdiff(second, trx_started, now())), 0) as signed) as seconds \
         from information_schema.innodb_trx",
    );
    let oldest = oldest.fetch_one(conn).await.map_err(failed(OP)).and_then(|row| row.number("seconds", OP));
    match oldest {
        Ok(seconds) if seconds > LONG => Check::warn(
            NAME,
            format!(
                "a transaction has been open for {} minutes: its events wait, and the server can't remove old rows",
                seconds / 60
            ),
            "end it; see information_schema.innodb_trx",
        ),
        Ok(_) => Check::good(NAME, "no transaction has been open for more than an hour"),
        Err(_) => Check::good(NAME, "not checked: the user needs the PROCESS privilege"),
    }
}

fn holes(row: &MySqlRow) -> Result<Check> {
    let holes = row.number("holes", OP)?;
    let what =
        format!("{holes} gaps in the ids, of open or rolled back transactions, are checked for late events");
    Ok(if holes > MANY_HOLES {
        Check::warn(
            "gaps",
            what,
            "find out why so many transactions are rolled back; a gap is forgotten 10 s after its rollback",
        )
    } else {
        Check::good("gaps", what)
    })
}

fn positions((end, furthest): (i64, i64)) -> Check {
    if furthest <= end {
        return Check::good("positions", "no lane is ahead of the log");
    }
    Check::warn(
        "positions",
        format!(
            "a lane has read up to {furthest}, but the log ends at {end}, as after a restore of some of the tables: the events \
             between are not in this database"
        ),
        "look for the missing events in the backup; new events get higher numbers and are delivered",
    )
}

async fn routines_there(conn: &mut MySqlConnection) -> Result<Check> {
    let missing = routines::missing(conn, OP).await?;
    Ok(match routines::sentence(&missing) {
        None => Check::good("routines", "all triggers, routines and views are those of this version"),
        Some(sentence) => Check::bad("routines", sentence, "run `postrider migrate`"),
    })
}
