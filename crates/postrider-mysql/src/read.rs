//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use postrider_core::{Batch, Lease, Order, Position, ReadEvent, Result};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::hash::hash_of;
use crate::position::{id_of, position};
use crate::row::{self, Names, flag, maybe_number, number, text};
use crate::run::{self, EVENT, Gathered};
use crate::sql::{Sql, statement};
use crate::store::MySqlStore;

const OP: &str = "read";

/// Reads at most `limit` numbers after `from`, and keeps the events of the lane that the subscription wants. Where there are
/// fewer, what has been committed gets its numbers first.
pub(crate) async fn read(store: &MySqlStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let (start, limit) = (id_of(from, OP)?, i64::from(limit));
    let target = lease.target.as_ref().map(|target| id_of(target, OP)).transpose()?;
    let mut conn = store.conn(OP).await?;
    let mut gathered = Gathered::new(start, target.unwrap_or(i64::MAX), limit);
    let recalled = look(store, &mut conn, lease, &mut gathered).await?;
    let (mut scanned, mut next) = gathered.reach();
    if scanned < limit && target.is_none() {
        let step = store.rounds.step(store.sql, &mut conn, OP).await?;
        if step.is_some_and(|step| step.seq > next) {
            gathered = Gathered::new(start, i64::MAX, limit);
            gathered.finish(store.sql, &mut conn, OP).await?;
            (scanned, next) = gathered.reach();
        }
    }
    if let Some(target) = target
        && scanned < limit
    {
        // Nothing is left before it, so this is where the lane has to arrive, whatever the last number was.
        next = next.max(target);
    }

    store.rounds.look_ahead(store.sql, next);

    let lane = (lease.lanes > 1).then_some((lease.lanes, lease.lane));
    let read = run::read(store.sql, &mut conn, &gathered.runs, EVENT, lane, OP).await?;
    let (mut names, mut events) = (Names::default(), Vec::with_capacity(read.len()));
    for run::Numbered { number, late, row } in &read {
        if wanted(lease, row)? {
            let mut event = row::recorded(row, &mut names, OP)?;
            event.id = *number;
            events.push(ReadEvent { event, late: *late, held: false, unreadable: None });
        }
    }
    if lease.open {
        hold(store.sql, &mut conn, lease, &mut events).await?;
    }
    let next = if next == start { from.clone() } else { position(next) };
    let scanned = u32::try_from(scanned).unwrap_or(u32::MAX);
    Ok(Batch { from: from.clone(), next, events, scanned, recalled, mark: String::new() })
}

/// Looks whether the lane is wanted back, and which runs come next.
async fn look(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    lease: &Lease,
    gathered: &mut Gathered,
) -> Result<bool> {
    let (after, upto) = gathered.range();
    let look = store.sql.query(statement!("read_look.sql")).bind(&lease.subscription).bind(lease.lane);
    let look = look.bind(id_of(&lease.position, OP)?).bind(after).bind(upto).bind(gathered.page());
    let rows = look.fetch_all(&mut *conn, OP).await?;
    // A subscription that is gone wants its lanes back, too.
    let recalled = rows.first().map_or(Ok(true), |row| flag(row, "recalled", OP))?;
    let there = rows.first().map_or(Ok(None), |row| maybe_number(row, "seq", OP))?;
    if there.is_some() && gathered.take(&rows, OP)? {
        gathered.finish(store.sql, conn, OP).await?;
    }
    Ok(recalled)
}

fn wanted(lease: &Lease, row: &MySqlRow) -> Result<bool> {
    if lease.since.is_none() && lease.filter.streams.is_empty() && lease.filter.types.is_empty() {
        return Ok(true);
    }
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
