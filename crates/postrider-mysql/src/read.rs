//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use postrider_core::{Batch, Lease, Order, Position, ReadEvent, Result};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::hash::hash_of;
use crate::position::{id_of, position};
use crate::row::{self, Names, flag, maybe_number, number, text};
use crate::sql::{Sql, statement};
use crate::store::MySqlStore;

const OP: &str = "read";

/// What was read, how far that is, and over how many rows.
struct Read {
    rows: Vec<MySqlRow>,
    last: Option<i64>,
    scanned: u32,
}

/// Reads at most `limit` rows after `from`, and keeps those of the lane that the subscription wants. Where there are fewer,
/// what has been committed gets its numbers first.
pub(crate) async fn read(store: &MySqlStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let start = id_of(from, OP)?;
    let target = lease.target.as_ref().map(|target| id_of(target, OP)).transpose()?;
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("read_recalled.sql")).bind(&lease.subscription);
    let look = look.bind(lease.lane).bind(id_of(&lease.position, OP)?);
    let look = look.fetch_optional(&mut conn, OP).await?;
    let recalled = look.map_or(Ok(true), |look| flag(&look, "recalled", OP))?;

    let mut read = after(store.sql, &mut conn, lease, start, limit, target).await?;
    if read.scanned < limit && target.is_none() {
        let step = store.rounds.step(store.sql, &mut conn, OP).await?;
        if step.is_some_and(|step| step.seq > read.last.unwrap_or(start)) {
            read = after(store.sql, &mut conn, lease, start, limit, target).await?;
        }
    }
    let mut next = read.last.unwrap_or(start);
    if let Some(target) = target
        && read.scanned < limit
    {
        // Nothing is left before it, so this is where the lane has to arrive, whatever the last row was.
        next = next.max(target);
    }

    let (mut names, mut events) = (Names::default(), Vec::with_capacity(read.rows.len()));
    for row in &read.rows {
        if wanted(lease, row)? {
            let event = row::recorded(row, &mut names, OP)?;
            events.push(ReadEvent { event, late: row::is_late(row, OP)?, held: false });
        }
    }
    if lease.open {
        hold(store.sql, &mut conn, lease, &mut events).await?;
    }
    let next = if next == start { from.clone() } else { position(next) };
    Ok(Batch { from: from.clone(), next, events, scanned: read.scanned, recalled, mark: String::new() })
}

async fn after(
    sql: Sql,
    conn: &mut MySqlConnection,
    lease: &Lease,
    start: i64,
    limit: u32,
    target: Option<i64>,
) -> Result<Read> {
    let most = target.unwrap_or(i64::MAX);
    if lease.lanes <= 1 {
        let read = sql.query(statement!("read.sql")).bind(start).bind(limit).bind(most);
        let rows = read.fetch_all(&mut *conn, OP).await?;
        // A number without an event, of an insert that was ignored, is passed with the next one that has one.
        let last = rows.last().map(|row| number(row, 0, OP)).transpose()?;
        let scanned = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        if scanned > 0 {
            return Ok(Read { rows, last, scanned });
        }
    }
    let end = sql.query(statement!("read_end.sql")).bind(start).bind(limit).bind(most);
    let end = end.fetch_one(&mut *conn, OP).await?;
    let scanned = row::small(&end, "scanned", OP)?;
    let Some(last) = maybe_number(&end, "last_seq", OP)? else {
        return Ok(Read { rows: Vec::new(), last: None, scanned });
    };
    let read =
        sql.query(statement!("read_lane.sql")).bind(start).bind(last).bind(lease.lanes).bind(lease.lane);
    Ok(Read { rows: read.fetch_all(conn, OP).await?, last: Some(last), scanned })
}

fn wanted(lease: &Lease, row: &MySqlRow) -> Result<bool> {
    let address = row::address(row, OP)?;
    Ok(lease.since.is_none_or(|since| address.recorded_at >= since)
        && lease.filter.wants(&address.stream, &address.event_type))
}

/// Marks the events that an earlier one of their key (or lane) still holds up.
async fn hold(sql: Sql, conn: &mut MySqlConnection, lease: &Lease, events: &mut [ReadEvent]) -> Result<()> {
    match lease.order {
        Order::None => {}
        Order::Strict => {
            let held = sql.query(statement!("read_held_lane.sql")).bind(&lease.subscription);
            let held = held.bind(lease.lanes).bind(lease.lane).fetch_one(conn, OP).await?;
            let first = maybe_number(&held, "id", OP)?;
            for read in events {
                read.held = first.is_some_and(|first| first < read.event.id);
            }
        }
        Order::Key => {
            let hashes: BTreeSet<i64> = events.iter().map(|read| hash_of(&read.event.key())).collect();
            let held = sql.query(statement!("read_held.sql")).bind(&lease.subscription);
            let held = held.bind(serde_json::Value::from_iter(hashes).to_string());
            let rows = held.fetch_all(conn, OP).await?;
            let firsts: HashMap<String, i64> = rows
                .iter()
                .map(|row| Ok((text(row, 0, OP)?.into_owned(), number(row, 1, OP)?)))
                .collect::<Result<_>>()?;
            for read in events.iter_mut().filter(|_| !firsts.is_empty()) {
                read.held = firsts.get(&*read.event.key()).is_some_and(|first| *first < read.event.id);
            }
        }
    }
    Ok(())
}
