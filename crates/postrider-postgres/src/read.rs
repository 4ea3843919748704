//! Reading what follows a position.

use futures_util::TryStreamExt;
use postrider_core::{Batch, Lease, Position, ReadEvent, Result};
use sqlx_core::query::Query;
use sqlx_postgres::{PgArguments, Postgres};

use crate::error::{acquire, during};
use crate::position::{LogPosition, Snapshot};
use crate::row::{self, Names};
use crate::store::{Home, PgStore};

/// What the first row of a read says of the read itself.
struct Scan {
    late: i64,
    last_late: Option<i64>,
    fresh: Option<i64>,
    last_fresh: Option<i64>,
    snapshot: Option<Snapshot>,
    bound: Option<u64>,
    recalled: bool,
    /// A row at or above the new frontier, if the statement has looked for one.
    witness: Option<String>,
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
        let (mut events, scan) = self.fetch(query).await?;
        let witness = scan.witness;
        let (Some(snapshot), Some(bound)) = (scan.snapshot, scan.bound) else {
            return Ok(idle(from, scan.recalled));
        };
        let next = match scan.last_late {
            // There may be more late rows: read them all, as this snapshot shows them, before anything fresh.
            Some(last) if scan.late >= i64::from(limit) => {
                events.retain(|read| read.late);
                position.within(last, home.system, snapshot, bound)
            }
            _ => {
                let last_fresh =
                    if filtered { scan.last_fresh } else { fresh(&events).map(|read| read.event.id).max() };
                LogPosition {
                    system: home.system,
                    frontier: position.frontier.max(last_fresh.unwrap_or(0)),
                    snapshot,
                    bound,
                    part: None,
                }
            }
        };
        let fresh = if filtered { scan.fresh.unwrap_or(0) } else { fresh(&events).count() as i64 };
        Ok(batch(from, &next, events, scan.late + fresh, scan.recalled, witness))
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
        let (events, scan) = self.fetch(query).await?;
        let next = match scan.last_late {
            Some(last) if scan.late >= i64::from(limit) => {
                position.within(last, part.system, part.snapshot.clone(), part.bound)
            }
            _ => LogPosition {
                system: part.system,
                frontier: position.frontier,
                snapshot: part.snapshot.clone(),
                bound: part.bound,
                part: None,
            },
        };
        Ok(batch(from, &next, events, scan.late, scan.recalled, scan.witness))
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
        let (mut events, scan) = self.fetch(query).await?;
        let (late, fresh) = (scan.late, scan.fresh.unwrap_or(0));
        let next = match (scan.last_late, scan.last_fresh) {
            (Some(last), _) if late >= i64::from(limit) => {
                events.retain(|read| read.late);
                position.within(last, end.system, end.snapshot, end.bound)
            }
            (_, Some(last)) if fresh >= i64::from(limit) => LogPosition { frontier: last, ..end },
            _ => end,
        };
        Ok(batch(from, &next, events, late + fresh, scan.recalled, scan.witness))
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
            .bind(lease.cookie.clone())
            .bind(lease.lane.cast_signed())
            .bind(lease.epoch)
            .bind(lease.owner.clone())
            .bind(lease.position.as_str().to_owned())
            .bind(Position::from(position).as_str().to_owned())
            .bind(home.system)
    }

    async fn fetch(&self, query: Query<'_, Postgres, PgArguments>) -> Result<(Vec<ReadEvent>, Scan)> {
        let mut connection = acquire(&self.pool, "read").await?;
        let mut rows = query.fetch(&mut *connection);
        let mut scan = None;
        let mut stands = false;
        let mut events = Vec::new();
        let mut names = Names::of(&self.sql);
        while let Some(row) = rows.try_next().await.map_err(during("read"))? {
            if row::opt_bytes(&row, 1)?.is_none() {
                scan = Some(Scan {
                    late: row::int64(&row, 0)?,
                    last_late: row::opt_i64(&row, 7)?,
                    fresh: row::opt_i32(&row, 14)?.map(i64::from),
                    last_fresh: row::opt_i64(&row, 17)?,
                    snapshot: row::opt_text(&row, 2)?.and_then(Snapshot::parse),
                    bound: row::opt_text(&row, 3)?.and_then(|bound| bound.parse().ok()),
                    recalled: row::flag(&row, 16)?,
                    witness: row::opt_text(&row, 4)?.map(ToOwned::to_owned),
                });
                stands = row::flag(&row, 15)?;
            } else {
                let decoded = row::decoded(&row, &mut names)?;
                events.push(ReadEvent {
                    event: decoded.event,
                    late: row::flag(&row, 15)?,
                    held: row::flag(&row, 16)?,
                    unreadable: decoded.unreadable,
                });
            }
        }
        if !stands {
            drop(rows);
            drop(connection);
            return Err(self.elsewhere("read").await);
        }
        if !events.is_sorted_by_key(|read| read.event.id) {
            events.sort_by_key(|read| read.event.id);
        }
        Ok((events, scan.ok_or_else(|| row::malformed(0))?))
    }
}

fn variant(filtered: bool, open: bool) -> usize {
    usize::from(filtered) * 2 + usize::from(open)
}

fn fresh(events: &[ReadEvent]) -> impl Iterator<Item = &ReadEvent> {
    events.iter().filter(|read| !read.late)
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
        recalled,
        mark: String::new(),
    }
}

/// A batch with its witness: the row that the statement named, or the last event.
fn batch(
    from: &Position,
    next: &LogPosition,
    events: Vec<ReadEvent>,
    scanned: i64,
    recalled: bool,
    witness: Option<String>,
) -> Batch {
    let scanned = u32::try_from(scanned).unwrap_or(u32::MAX);
    let last = || events.last().map(|read| format!("{}/{}", read.event.id, read.event.event_id));
    let mark = witness.or_else(last).unwrap_or_default();
    Batch { from: from.clone(), next: next.into(), events, scanned, recalled, mark }
}
