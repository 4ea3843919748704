//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use postrider_core::{Batch, Lease, Order, Position, ReadEvent, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::micros;
use crate::error::failed;
use crate::hash::lane_of;
use crate::position::{id_of, position};
use crate::row::{self, Names};
use crate::sql::{Sql, statement};
use crate::store::SqliteStore;

const OP: &str = "read";

/// Reads at most `limit` rows after `from`, and keeps those of the lane that the subscription wants.
pub(crate) async fn read(store: &SqliteStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let start = id_of(from, OP)?;
    let target = lease.target.as_ref().map(|target| id_of(target, OP)).transpose()?;
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("read_recalled.sql")).bind(&lease.subscription);
    let look = look.bind(i64::from(lease.lane)).bind(id_of(&lease.position, OP)?);
    let look = look.fetch_optional(&mut *conn).await.map_err(failed(OP))?;
    let recalled = look.map_or(Ok(true), |look| look.try_get("recalled")).map_err(failed(OP))?;

    let read = store.sql.query(statement!("read.sql")).bind(start).bind(i64::from(limit));
    let rows = read.bind(target.unwrap_or(i64::MAX)).fetch_all(&mut *conn).await.map_err(failed(OP))?;
    let scanned = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let mut next = rows.last().map_or(Ok(start), |row| row.try_get(0).map_err(failed(OP)))?;
    if let Some(target) = target
        && scanned < limit
    {
        // Nothing is left before it, so this is where the lane has to arrive, whatever the last row was.
        next = next.max(target);
    }

    let since = lease.since.map(micros);
    let (mut names, mut events) = (Names::default(), Vec::with_capacity(rows.len()));
    for row in &rows {
        if wanted(lease, since, row)? {
            events.push(ReadEvent {
                event: row::recorded(row, &mut names, OP)?,
                late: false,
                held: false,
                unreadable: None,
            });
        }
    }
    if lease.open {
        hold(store.sql, &mut conn, lease, &mut events).await?;
    }
    let next = if next == start { from.clone() } else { position(next) };
    Ok(Batch { from: from.clone(), next, events, scanned, recalled, mark: String::new() })
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
            let held = held.bind(i64::from(lease.lanes)).bind(i64::from(lease.lane));
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
