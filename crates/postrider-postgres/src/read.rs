//! Reading what follows a position.

use futures_util::TryStreamExt;
use postrider_core::{Batch, ByteBudget, Lease, Position, ReadEvent, Result, Witness};
use serde::Deserialize;
use sqlx_core::query::Query;
use sqlx_postgres::{PgArguments, Postgres};

use crate::error::during;
use crate::position::{LogPosition, Snapshot};
use crate::row::{self, Names};
use crate::store::{Home, PgStore};

/// The column that only the first row of a read has.
const HEAD: usize = 17;

/// The rows of a read, as far as they were taken.
struct Taken {
    events: Vec<ReadEvent>,
    head: Head,
    /// Whether the rest was left, because the events would have exceeded their bytes; and whether the first of it is late.
    cut: Option<bool>,
}

impl Taken {
    /// The last of the events, if the rest was left within the late ones.
    fn cut_late(&self) -> Option<i64> {
        self.events.last().filter(|_| self.cut == Some(true)).map(|read| read.event.id)
    }

    /// The last of the fresh events, if the rest was left within the fresh ones; the frontier, if that is all of them.
    fn cut_fresh(&self, frontier: i64) -> Option<i64> {
        (self.cut == Some(false)).then(|| last_fresh(&self.events).unwrap_or(frontier))
    }
}

/// What the first row of a read says of the read itself: the column `head` of read.sql.
#[derive(Deserialize)]
struct Head {
    /// Whether the lane stands where the lease says.
    stands: bool,
    /// Whether the lane is wanted back.
    recalled: bool,
    snapshot: Option<String>,
    bound: Option<String>,
    late: i64,
    last_late: Option<i64>,
    fresh: Option<i64>,
    last_fresh: Option<i64>,
    /// A row at or above the new frontier, if the statement has looked for one.
    witness: Option<Row>,
}

/// A row of the log, by its number and its event id.
#[derive(Deserialize)]
struct Row {
    number: i64,
    id: String,
}

impl From<Row> for Witness {
    fn from(row: Row) -> Self {
        Self { number: row.number, id: row.id }
    }
}

impl PgStore {
    pub(crate) async fn read_from(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        let position = LogPosition::parse(from)?;
        if let Some(part) = position.part.clone() {
            return self.read_part(lease, from, &position, &part, limit).await;
        }
        if let Some(target) = &lease.target {
            return self.read_up_to(lease, from, &position, target, limit).await;
        }
        let home = self.home();
        let filtered = self.is_filtered(lease);
        let query = self.bind_late(
            self.sql.read[variant(filtered, lease.open)].query(),
            &home,
            lease,
            &position,
            (position.system != home.system, 0, limit),
        );
        let query = if filtered { bind_filter(query, lease) } else { query };
        let taken = self.fetch(query, lease.bytes).await?;
        let (cut_late, cut_fresh) = (taken.cut_late(), taken.cut_fresh(position.frontier));
        let Taken { mut events, head, cut } = taken;
        let snapshot = head.snapshot.as_deref().and_then(Snapshot::parse);
        let bound = head.bound.as_deref().and_then(|bound| bound.parse().ok());
        let (Some(snapshot), Some(bound)) = (snapshot, bound) else {
            return Ok(idle(from, head.recalled));
        };
        let next = match cut_late.or(head.last_late.filter(|_| head.late >= i64::from(limit))) {
            // There may be more late rows: read them all, as this snapshot shows them, before anything fresh.
            Some(last) => {
                events.retain(|read| read.late);
                position.within(last, home.system, snapshot, bound)
            }
            None => {
                let last_fresh = cut_fresh.or(if filtered { head.last_fresh } else { last_fresh(&events) });
                LogPosition {
                    system: home.system,
                    frontier: position.frontier.max(last_fresh.unwrap_or(0)),
                    snapshot,
                    bound,
                    part: None,
                }
            }
        };
        let scanned = match cut {
            Some(_) => events.len() as i64,
            None if filtered => head.late + head.fresh.unwrap_or(0),
            None => head.late + fresh(&events).count() as i64,
        };
        let more = cut.is_some() || scanned >= i64::from(limit);
        Ok(batch(from, &next, events, (scanned, more), head.recalled, head.witness))
    }

    /// The next part of late rows that were too many for one read.
    async fn read_part(
        &self,
        lease: &Lease,
        from: &Position,
        position: &LogPosition,
        part: &crate::position::Part,
        limit: u32,
    ) -> Result<Batch> {
        let home = self.home();
        // The part's snapshot restricts the late rows only if it is of the cluster whose transactions they were.
        let query = self.sql.read_as_of[variant(true, lease.open)].query();
        let unrestricted = position.system != part.system;
        let query = bind_filter(
            self.bind_late(query, &home, lease, position, (unrestricted, part.after, limit)),
            lease,
        )
        .bind(part.snapshot.to_string())
        .bind(position.frontier)
        .bind(home.floor());
        let taken = self.fetch(query, lease.bytes).await?;
        let cut_late = taken.cut_late();
        let Taken { events, head, cut } = taken;
        let next = match cut_late.or(head.last_late.filter(|_| head.late >= i64::from(limit))) {
            Some(last) => position.within(last, part.system, part.snapshot.clone(), part.bound),
            None => LogPosition {
                system: part.system,
                frontier: position.frontier,
                snapshot: part.snapshot.clone(),
                bound: part.bound,
                part: None,
            },
        };
        let scanned = if cut.is_some() { events.len() as i64 } else { head.late };
        let more = cut.is_some() || scanned >= i64::from(limit);
        Ok(batch(from, &next, events, (scanned, more), head.recalled, head.witness))
    }

    /// What lies between a lane and the common position of a change of lanes.
    async fn read_up_to(
        &self,
        lease: &Lease,
        from: &Position,
        position: &LogPosition,
        target: &Position,
        limit: u32,
    ) -> Result<Batch> {
        if from == target {
            return Ok(idle(from, true));
        }
        let end = LogPosition::parse(target)?;
        let home = self.home();
        let foreign = position.system != home.system;
        let query = self.sql.read_as_of[variant(true, lease.open)].query();
        let query = bind_filter(self.bind_late(query, &home, lease, position, (foreign, 0, limit)), lease)
            .bind(end.snapshot.to_string())
            .bind(end.frontier)
            .bind(home.floor());
        let taken = self.fetch(query, lease.bytes).await?;
        let (cut_late, cut_fresh) = (taken.cut_late(), taken.cut_fresh(position.frontier));
        let Taken { mut events, head, cut } = taken;
        let (late, fresh, limit) = (head.late, head.fresh.unwrap_or(0), i64::from(limit));
        let last_late = cut_late.or(head.last_late.filter(|_| late >= limit));
        let last_fresh = cut_fresh.or(head.last_fresh.filter(|_| fresh >= limit));
        let next = match (last_late, last_fresh) {
            (Some(last), _) => {
                events.retain(|read| read.late);
                position.within(last, end.system, end.snapshot, end.bound)
            }
            (None, Some(last)) => LogPosition { frontier: last, ..end },
            (None, None) => end,
        };
        let scanned = if cut.is_some() { events.len() as i64 } else { late + fresh };
        let more = cut.is_some() || scanned >= limit;
        Ok(batch(from, &next, events, (scanned, more), head.recalled, head.witness))
    }

    /// Whether the rows must be filtered in the database.
    fn is_filtered(&self, lease: &Lease) -> bool {
        lease.lanes > 1 || lease.since.is_some() || !lease.filter.is_all()
    }

    /// A position of another cluster does one last look for what it owes, by that cluster's transaction ids. Either way a
    /// snapshot is compared only with rows that were written where it was taken.
    fn bind_late<'q>(
        &self,
        query: Query<'q, Postgres, PgArguments>,
        home: &Home,
        lease: &Lease,
        position: &LogPosition,
        (unrestricted, after, limit): (bool, i64, u32),
    ) -> Query<'q, Postgres, PgArguments> {
        query
            .bind(position.frontier)
            .bind(position.in_flight())
            .bind(unrestricted)
            .bind(after.max(home.floor_of(position.system)))
            .bind(i64::from(limit.max(1)))
            .bind(lease.subscription.clone())
            .bind(lease.row_location.clone())
            .bind(lease.lane.cast_signed())
            .bind(lease.epoch)
            .bind(lease.owner.clone())
            .bind(lease.position.as_str().to_owned())
            .bind(Position::from(position).as_str().to_owned())
            .bind(home.system)
    }

    /// Takes rows as they come, in the order of the statement, until the next event would exceed `bytes`. What is left is never
    /// sent: its connection is given up, because a server sends all of an answer otherwise. Whoever reads wide events again and
    /// again asks for fewer rows, so that it is the exception.
    async fn fetch(&self, query: Query<'_, Postgres, PgArguments>, bytes: u64) -> Result<Taken> {
        let mut connection = self.pool.hold("read").await?;
        let mut rows = query.fetch(&mut *connection);
        let mut head = None;
        let mut events: Vec<ReadEvent> = Vec::new();
        let (mut fill, mut cut) = (ByteBudget::new(bytes), None);
        let mut names = Names::of(&self.sql);
        while let Some(row) = self.noticed(rows.try_next().await).map_err(during("read"))? {
            if row::opt_bytes(&row, 1)?.is_none() {
                head = Some(
                    serde_json::from_str::<Head>(row::text(&row, HEAD)?).map_err(|_| row::malformed(HEAD))?,
                );
            } else {
                let decoded = row::decoded(&row, &mut names)?;
                let late = row::flag(&row, 15)?;
                let is_next = events.last().is_none_or(|last| last.event.id < decoded.event.id);
                if !fill.takes(decoded.event.size()) && is_next {
                    cut = Some(late);
                    break;
                }
                events.push(ReadEvent {
                    event: decoded.event,
                    late,
                    held: row::flag(&row, 16)?,
                    unreadable: decoded.unreadable,
                });
            }
        }
        drop(rows);
        if cut.is_some() {
            connection.sever();
        } else {
            connection.finish("read").await?;
        }
        let head = head.ok_or_else(|| row::malformed(HEAD))?;
        if !head.stands {
            return Err(self.elsewhere("read").await);
        }
        if !events.is_sorted_by_key(|read| read.event.id) {
            events.sort_by_key(|read| read.event.id);
        }
        Ok(Taken { events, head, cut })
    }
}

fn variant(filtered: bool, open: bool) -> usize {
    usize::from(filtered) * 2 + usize::from(open)
}

fn fresh(events: &[ReadEvent]) -> impl Iterator<Item = &ReadEvent> {
    events.iter().filter(|read| !read.late)
}

fn last_fresh(events: &[ReadEvent]) -> Option<i64> {
    fresh(events).map(|read| read.event.id).max()
}

fn bind_filter<'q>(
    query: Query<'q, Postgres, PgArguments>,
    lease: &Lease,
) -> Query<'q, Postgres, PgArguments> {
    let likes = |patterns: &[postrider_core::Pattern]| -> Option<Vec<String>> {
        (!patterns.is_empty()).then(|| patterns.iter().map(postrider_core::Pattern::to_like).collect())
    };
    query
        .bind(likes(&lease.filter.streams))
        .bind(likes(&lease.filter.types))
        .bind(lease.since)
        .bind(lease.lanes.cast_signed())
}

fn idle(from: &Position, recalled: bool) -> Batch {
    Batch {
        from: from.clone(),
        next: from.clone(),
        events: Vec::new(),
        scanned: 0,
        more: false,
        recalled,
        witness: None,
    }
}

/// A batch with its witness: the row that the statement named, or the last event.
fn batch(
    from: &Position,
    next: &LogPosition,
    events: Vec<ReadEvent>,
    (scanned, more): (i64, bool),
    recalled: bool,
    witness: Option<Row>,
) -> Batch {
    let scanned = u32::try_from(scanned).unwrap_or(u32::MAX);
    let last =
        || events.last().map(|read| Witness { number: read.event.id, id: read.event.event_id.to_string() });
    let witness = witness.map(Into::into).or_else(last);
    Batch { from: from.clone(), next: next.into(), events, scanned, more, recalled, witness }
}
