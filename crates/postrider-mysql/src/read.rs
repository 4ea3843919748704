//! Reading what follows a position.

use std::collections::{BTreeSet, HashMap};

use postrider_core::{Batch, ByteBudget, Lease, Order, Position, ReadEvent, Result};
use postrider_sql::event::{Decoded, Names, column};
use postrider_sql::position::{number_of, position};
use postrider_sql::{Columns, statement};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::hash::hash_of;
use crate::row;
use crate::run::{self, EVENT, Gathered};
use crate::sql::Sql;
use crate::store::MySqlStore;

const OP: &str = "read";

/// Begins a transaction that sees one moment. A table that is made anew meanwhile is an error in it, and not empty.
pub(crate) const SNAPSHOT: &str = "set transaction isolation level repeatable read; \
     start transaction with consistent snapshot, read only";

/// Reads at most `limit` numbers after `from`, and keeps the events of the lane that the subscription wants; fewer numbers, if those
/// would be more bytes than the lease allows.
///
/// Rows are counted as they come. When they are too many bytes their connection is given up, because a server sends all of an answer
/// otherwise, and fewer are read. Whoever reads wide events again and again asks for fewer rows, so that it is the exception.
pub(crate) async fn read(store: &MySqlStore, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
    let (mut most, mut cut) = (i64::from(limit), false);
    loop {
        match read_at_most(store, lease, from, most).await? {
            Read::Whole(mut batch) => {
                batch.more |= cut;
                return Ok(batch);
            }
            // Half at most: in what order short runs come nobody promises.
            Read::TooWide { fit } => (most, cut) = (fit.clamp(1, (most / 2).max(1)), true),
        }
    }
}

/// What came of a read of so many numbers.
enum Read {
    Whole(Batch),
    /// They are too many bytes; so many of them were not.
    TooWide {
        fit: i64,
    },
}

/// Reads at most `limit` numbers. Where there are fewer, what has been committed gets its numbers first.
///
/// All of it is one snapshot on one session, and begins with a look at the lane: what is read is of the history that the lane is of,
/// also behind a proxy that changes servers between two transactions, and while a dump is being restored.
async fn read_at_most(store: &MySqlStore, lease: &Lease, from: &Position, limit: i64) -> Result<Read> {
    let start = number_of(from, OP)?;
    let target = lease.target.as_ref().map(|target| number_of(target, OP)).transpose()?;
    let look = Look { lease, from, start, limit, target };
    let mut conn = store.conn(OP).await?;
    // Up to a target everything has its number.
    let mut numbered = target.is_some();
    if !numbered && store.rounds.ends_before(start.saturating_add(limit)) {
        numbered = true;
        let step = store.rounds.step(store.sql, &mut conn, OP).await?;
        if step.is_some_and(|step| step.seq <= start) {
            let seen = look.at(store.sql, &mut conn).await?;
            if seen.gathered.runs.is_empty() {
                return Ok(Read::Whole(look.batch(&seen, Vec::new())));
            }
        }
    }
    loop {
        let mut snapshot = conn.begin_by(SNAPSHOT).await.map_err(failed(OP))?;
        let seen = look.at(store.sql, &mut snapshot).await?;
        if numbered || seen.gathered.reach().0 >= limit {
            let events = match look.events(store, &mut snapshot, &seen.gathered).await? {
                Ok(events) => events,
                Err(fit) => {
                    drop(snapshot);
                    conn.sever();
                    return Ok(Read::TooWide { fit });
                }
            };
            snapshot.rollback().await.map_err(failed(OP))?;
            store.rounds.look_ahead(store.sql, seen.gathered.reach().1);
            return Ok(Read::Whole(look.batch(&seen, events)));
        }
        snapshot.rollback().await.map_err(failed(OP))?;
        store.rounds.step(store.sql, &mut conn, OP).await?;
        numbered = true;
    }
}

/// What is to be read, and under which lease.
struct Look<'l> {
    lease: &'l Lease,
    from: &'l Position,
    start: i64,
    limit: i64,
    target: Option<i64>,
}

/// What a look found.
struct Seen {
    gathered: Gathered,
    recalled: bool,
}

impl Look<'_> {
    /// Looks whether the lane stands where the lease says, whether it is wanted back, and which runs come next.
    async fn at(&self, sql: Sql, conn: &mut MySqlConnection) -> Result<Seen> {
        let Self { lease, start, .. } = *self;
        let mut gathered = Gathered::new(start, self.target.unwrap_or(i64::MAX), self.limit);
        let (after, upto) = gathered.range();
        let look = sql.query(statement!("read_look.sql")).bind(&lease.subscription).bind(lease.lane);
        let look = look.bind(number_of(&lease.position, OP)?).bind(after).bind(upto).bind(gathered.page());
        let rows = look.bind(lease.epoch).bind(&lease.owner).fetch_all(conn, OP).await?;
        let first = rows.first().filter(|row| row.flag("sound", OP).unwrap_or(false));
        let first = first.ok_or_else(|| Lease::moved(OP))?;
        let recalled = first.flag("recalled", OP)?;
        if first.maybe_number("seq", OP)?.is_some() && gathered.take(&rows, OP)? {
            gathered.finish(sql, conn, OP).await?;
        }
        Ok(Seen { gathered, recalled })
    }

    /// The events of the lane that are wanted; or, if they are too many bytes, up to which number they were not.
    async fn events(
        &self,
        store: &MySqlStore,
        conn: &mut MySqlConnection,
        gathered: &Gathered,
    ) -> Result<Result<Vec<ReadEvent>, i64>> {
        let lease = self.lease;
        let lane = (lease.lanes > 1).then_some((lease.lanes, lease.lane));
        let (mut names, mut events, mut fill) = (Names::default(), Vec::new(), ByteBudget::new(lease.bytes));
        let take = |run::Numbered { number, late, row }| {
            if !wanted(lease, &row) {
                return Ok(true);
            }
            let Decoded { mut event, unreadable } = row::decoded(&row, &mut names, OP)?;
            event.id = number;
            // One alone is read, whatever its size.
            if !fill.takes(event.size()) {
                return Ok(false);
            }
            events.push(ReadEvent { event, late, held: false, unreadable });
            Ok(true)
        };
        if !run::read_each(store.sql, conn, &gathered.runs, EVENT, lane, OP, take).await? {
            return Ok(Err(events.last().map_or(0, |read| read.event.id - self.start)));
        }
        if !events.is_sorted_by_key(|read| read.event.id) {
            events.sort_unstable_by_key(|read| read.event.id);
        }
        if lease.open {
            hold(store.sql, conn, lease, &mut events).await?;
        }
        Ok(Ok(events))
    }

    fn batch(&self, seen: &Seen, events: Vec<ReadEvent>) -> Batch {
        let (scanned, mut next) = seen.gathered.reach();
        if let Some(target) = self.target
            && scanned < self.limit
        {
            // Nothing is left before it, so this is where the lane has to arrive, whatever the last number was.
            next = next.max(target);
        }
        Batch {
            from: self.from.clone(),
            next: if next == self.start { self.from.clone() } else { position(next) },
            events,
            scanned: u32::try_from(scanned).unwrap_or(u32::MAX),
            more: scanned >= self.limit,
            recalled: seen.recalled,
            witness: seen.gathered.witness(),
        }
    }
}

/// An event that does not even tell where it belongs is wanted: it has to be told of.
fn wanted(lease: &Lease, row: &MySqlRow) -> bool {
    if lease.since.is_none() && lease.filter.streams.is_empty() && lease.filter.types.is_empty() {
        return true;
    }
    let (Ok(stream), Ok(event_type), Ok(recorded_at)) = (
        row.text(column::STREAM, OP),
        row.text(column::EVENT_TYPE, OP),
        row::date(row, column::RECORDED_AT, OP),
    ) else {
        return true;
    };
    lease.since.is_none_or(|since| recorded_at >= since) && lease.filter.wants(&stream, &event_type)
}

/// The bytes of a key, as a statement takes them.
fn hex(key: &str) -> String {
    key.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Marks the events that an earlier one of their key (or lane) still holds up.
async fn hold(sql: Sql, conn: &mut MySqlConnection, lease: &Lease, events: &mut [ReadEvent]) -> Result<()> {
    match lease.order {
        Order::None => {}
        Order::Strict => {
            let held = sql.query(statement!("read_held_lane.sql")).bind(&lease.subscription);
            let held = held.bind(lease.lane).fetch_one(conn, OP).await?;
            let first = held.maybe_number("id", OP)?;
            for read in events {
                read.held = first.is_some_and(|first| first < read.event.id);
            }
        }
        Order::Key => {
            let keys: BTreeSet<String> = events.iter().map(|read| read.event.key().into_owned()).collect();
            let keys: Vec<String> = keys.into_iter().collect();
            let wanted = keys.iter().map(|key| serde_json::json!([hash_of(key), hex(key)]));
            let held = sql.query(statement!("read_held.sql")).bind(&lease.subscription);
            let held = held.bind(serde_json::Value::from_iter(wanted).to_string());
            let rows = held.fetch_all(conn, OP).await?;
            let mut firsts: HashMap<&str, i64> = HashMap::new();
            for row in &rows {
                let place = usize::try_from(row.number(0, OP)? - 1).unwrap_or(usize::MAX);
                let first = row.number(1, OP)?;
                firsts.extend(keys.get(place).map(|key| (key.as_str(), first)));
            }
            for read in events.iter_mut().filter(|_| !firsts.is_empty()) {
                read.held = firsts.get(&*read.event.key()).is_some_and(|first| *first < read.event.id);
            }
        }
    }
    Ok(())
}
