//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use postrider_core::{Batch, ByteBudget, Lease, Order, Position, ReadEvent, Result};
use postrider_sql::clock::micros;
use postrider_sql::event::{Decoded, Names, column};
use postrider_sql::position::{number_of, position};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::hash::lane_of;
use crate::row;
use crate::sql::Sql;
use crate::store::SqliteStore;
use crate::witness::Passed;

const OP: &str = "read";

/// Reads at most `limit` rows after `from`, and keeps those of the lane that the subscription wants, until their bytes are enough:
/// what is left is not even read from the file, but for the few rows that the driver has ready.
pub(crate) async fn read(store: &SqliteStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let start = number_of(from, OP)?;
    let target = lease.target.as_ref().map(|target| number_of(target, OP)).transpose()?;
    let mut conn = store.snapshot(OP).await?;
    let recalled = stand(store, &mut conn, lease, start, OP).await?;

    let read =
        store.sql.query(statement!("read.sql")).bind(start).bind(limit).bind(target.unwrap_or(i64::MAX));
    let since = lease.since.map(micros);
    let (mut names, mut events) = (Names::default(), Vec::new());
    let (mut fill, mut scanned, mut last) = (ByteBudget::new(lease.bytes), 0, None);
    let take = |row| {
        if wanted(lease, since, &row)? {
            let Decoded { event, unreadable } = row::decoded(&row, &mut names, OP)?;
            if !fill.takes(event.size()) {
                return Ok(false);
            }
            events.push(ReadEvent { event, late: false, held: false, unreadable });
        }
        scanned += 1;
        last = Some(Passed::of(&row, OP)?);
        Ok(true)
    };
    let whole = read.fetch_each(&mut conn, OP, take).await?;
    let more = !whole || scanned >= limit;
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
    let look = store.sql.query(statement!("stand.sql")).bind(&lease.subscription).bind(lease.lane);
    let look = look.bind(lease.epoch).bind(number_of(&lease.position, op)?).bind(from);
    match look.fetch_optional(conn, op).await? {
        Some(look) if look.flag("stands", op)? => look.flag("recalled", op),
        _ => Err(Lease::moved(op)),
    }
}

fn wanted(lease: &Lease, since: Option<i64>, row: &SqliteRow) -> Result<bool> {
    let recorded_at = row.number(column::RECORDED_AT, OP).unwrap_or(0);
    Ok(since.is_none_or(|since| recorded_at >= since)
        && lease.filter.wants(&row.text(column::STREAM, OP)?, &row.text(column::EVENT_TYPE, OP)?)
        && (lease.lanes <= 1 || lane_of(&row::key(row, OP)?, lease.lanes) == lease.lane))
}

/// Marks the events that an earlier one of their key (or lane) still holds up.
async fn hold(sql: Sql, conn: &mut SqliteConnection, lease: &Lease, events: &mut [ReadEvent]) -> Result<()> {
    match lease.order {
        Order::None => {}
        Order::Strict => {
            let held = sql.query(statement!("read_held_lane.sql")).bind(&lease.subscription);
            let first = held.bind(lease.lane).fetch_one(conn, OP).await?.maybe_number("id", OP)?;
            for read in events {
                read.held = first.is_some_and(|first| first < read.event.id);
            }
        }
        Order::Key => {
            let keys: BTreeSet<String> = events.iter().map(|read| read.event.key().into_owned()).collect();
            let held = sql.query(statement!("read_held.sql")).bind(&lease.subscription);
            let held = held.bind(serde_json::Value::from_iter(keys).to_string());
            let rows = held.fetch_all(conn, OP).await?;
            let firsts: HashMap<String, i64> = rows
                .iter()
                .map(|row| Ok((row.text(0, OP)?.into_owned(), row.number(1, OP)?)))
                .collect::<Result<_>>()?;
            for read in events.iter_mut().filter(|_| !firsts.is_empty()) {
                read.held = firsts.get(&*read.event.key()).is_some_and(|first| *first < read.event.id);
            }
        }
    }
    Ok(())
}
