//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use futures_util::TryStreamExt;
use postrider_core::{Batch, ByteBudget, Error, ErrorKind, Lease, Order, Position, ReadEvent, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::micros;
use crate::error::failed;
use crate::hash::lane_of;
use crate::position::{id_of, position};
use crate::row::{self, Names};
use crate::sql::{Sql, statement};
use crate::store::SqliteStore;
use crate::witness::Passed;

const OP: &str = "read";

/// Reads at most `limit` rows after `from`, and keeps those of the lane that the subscription wants, until their bytes are enough:
/// what is left is not even read from the file, but for the few rows that the driver has ready.
pub(crate) async fn read(store: &SqliteStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let start = id_of(from, OP)?;
    let target = lease.target.as_ref().map(|target| id_of(target, OP)).transpose()?;
    let mut conn = store.snapshot(OP).await?;
    let recalled = stand(store, &mut conn, lease, start, OP).await?;

    let read = store.sql.query(statement!("read.sql")).bind(start).bind(i64::from(limit));
    let mut rows = read.bind(target.unwrap_or(i64::MAX)).fetch(&mut *conn);
    let since = lease.since.map(micros);
    let (mut names, mut events) = (Names::default(), Vec::new());
    let (mut fill, mut cut, mut scanned, mut last) = (ByteBudget::new(lease.bytes), false, 0, None);
    while let Some(row) = &rows.try_next().await.map_err(failed(OP))? {
        if wanted(lease, since, row)? {
            let (event, unreadable) = row::recorded(row, &mut names, OP)?;
            cut = !fill.takes(event.size());
            if cut {
                break;
            }
            events.push(ReadEvent { event, late: false, held: false, unreadable });
        }
        scanned += 1;
        last = Some(Passed::of(row, OP)?);
    }
    drop(rows);
    let more = cut || scanned >= limit;
    let mut next = last.as_ref().map_or(start, |last| last.id);
    if let Some(target) = target
        && !more
    {
        // Nothing is left before it, so this is where the lane has to arrive, whatever the last row was.
        next = next.max(target);
    }
    if lease.open {
        hold(store.sql, &mut conn, lease, &mut events).await?;
    }
    let next = if next == start { from.clone() } else { position(next) };
    let witness = last.map(Into::into);
    Ok(Batch { from: from.clone(), next, events, scanned, more, recalled, witness })
}

/// Whether the lane is wanted back, if it stands where its reader believes it to be.
pub(crate) async fn stand(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    lease: &Lease,
    from: i64,
    op: &'static str,
) -> Result<bool> {
    let look = store.sql.query(statement!("stand.sql")).bind(&lease.subscription).bind(i64::from(lease.lane));
    let look = look.bind(lease.epoch).bind(id_of(&lease.position, op)?).bind(from);
    let look = look.fetch_optional(conn).await.map_err(failed(op))?;
    let stands = look.as_ref().map_or(Ok(false), |look| look.try_get("stands")).map_err(failed(op))?;
    match look {
        Some(look) if stands => look.try_get("recalled").map_err(failed(op)),
        _ => {
            let message = "the position of the lane has changed since this lease read it: another relay claimed it, a replay reset \
                           it, or the database was restored; the relay claims it again";
            Err(Error::new(ErrorKind::LeaseLost, op, message))
        }
    }
}

fn wanted(lease: &Lease, since: Option<i64>, row: &SqliteRow) -> Result<bool> {
    let address = row::address(row, OP)?;
    Ok(since.is_none_or(|since| address.recorded_at >= since)
        && lease.filter.wants(&address.stream, &address.event_type)
        && (lease.lanes <= 1 || lane_of(&row::key(row, OP)?, lease.lanes) == lease.lane))
}

/// Marks the events that an earlier one of their key (or lane) still holds up.
async fn hold(sql: Sql, conn: &mut SqliteConnection, lease: &Lease, events: &mut [ReadEvent]) -> Result<()> {
    match lease.order {
        Order::None => {}
        Order::Strict => {
            let held = sql.query(statement!("read_held_lane.sql")).bind(&lease.subscription);
            let held = held.bind(i64::from(lease.lane));
            let first: Option<i64> =
                held.fetch_one(conn).await.and_then(|row| row.try_get("id")).map_err(failed(OP))?;
            for read in events {
                read.held = first.is_some_and(|first| first < read.event.id);
            }
        }
        Order::Key => {
            let keys: BTreeSet<String> = events.iter().map(|read| read.event.key().into_owned()).collect();
            let held = sql.query(statement!("read_held.sql")).bind(&lease.subscription);
            let held = held.bind(serde_json::Value::from_iter(keys).to_string());
            let rows = held.fetch_all(conn).await.map_err(failed(OP))?;
            let firsts: HashMap<String, i64> = rows
                .iter()
                .map(|row| Ok((row::text(row, 0, OP)?.into_owned(), row.try_get(1).map_err(failed(OP))?)))
                .collect::<Result<_>>()?;
            for read in events.iter_mut().filter(|_| !firsts.is_empty()) {
                read.held = firsts.get(&*read.event.key()).is_some_and(|first| *first < read.event.id);
            }
        }
    }
    Ok(())
}
