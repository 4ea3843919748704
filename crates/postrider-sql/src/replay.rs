//! Reading again what was read: where that begins, whether it is possible, and what it comes to.
//!
//! Numbers are in the order of commits, so nothing appears below one that was read: a lower position is all there is to it.

use postrider_core::{Replay, ReplayFrom, ReplayRefusal, Replayed, Result, Subscription};
use sqlx_core::arguments::IntoArguments;
use sqlx_core::database::Database;
use sqlx_core::executor::Executor;

use crate::clock::{micros, time_of};
use crate::columns::Columns;
use crate::statement::{Connection, Dialect, DriverRow, Sql, Statement};
use crate::unread::{Address, PAGE, ReadProgress};

/// How many pages are counted at most.
pub const PAGES: i64 = Replayed::MOST as i64 / PAGE;

/// The statements that say where a replay begins.
#[derive(Clone, Copy)]
pub struct ReplayStatements {
    /// The row of the subscription: replay_look.sql.
    pub look: Statement,
    /// The first event since a time: replay_time.sql.
    pub time: Statement,
    /// The place of an event: replay_event.sql.
    pub event: Statement,
}

impl<D: Dialect> Sql<D>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
    DriverRow<D>: Columns,
{
    /// The row of the subscription, and the number up to which everything stays read. It is refused if the subscription must not
    /// read again.
    pub async fn replay_from(
        self,
        statements: ReplayStatements,
        conn: &mut Connection<D>,
        replay: &Replay,
        op: &'static str,
    ) -> Result<(DriverRow<D>, i64)> {
        let name = &replay.subscription;
        let look = self.query(statements.look).bind(name).fetch_optional(conn, op).await?;
        let look = look.ok_or_else(|| Subscription::unknown(name, op))?;
        check_allowed(&look, replay, op)?;
        let first = match replay.from {
            ReplayFrom::Time(time) => self.query(statements.time).bind(micros(time)),
            ReplayFrom::Event(event) => self.query(statements.event).bind(event),
        };
        let first = first.fetch_one(conn, op).await?.maybe_number("id", op)?;
        let frontier = frontier(&look, replay, first, op)?;
        Ok((look, frontier))
    }
}

/// Refuses a subscription that must not read again, by the row of replay_look.sql.
fn check_allowed(look: &impl Columns, replay: &Replay, op: &'static str) -> Result<()> {
    if !look.flag("replay", op)? {
        return Err(ReplayRefusal::Forbidden.error(&replay.subscription));
    }
    if look.flag("changing", op)? {
        return Err(ReplayRefusal::Changing.error(&replay.subscription));
    }
    Ok(())
}

/// The number up to which everything stays read, if `first` is the first event that is wanted again; the greatest there is, if nothing
/// is. It is refused if retention has taken something that would have to come again.
fn frontier(look: &impl Columns, replay: &Replay, first: Option<i64>, op: &'static str) -> Result<i64> {
    let refuse = |refusal: ReplayRefusal| Err(refusal.error(&replay.subscription));
    if let (ReplayFrom::Event(event), None) = (replay.from, first) {
        return refuse(ReplayRefusal::NoEvent(event));
    }
    let start = look.number("start_frontier", op)?;
    let wanted = first.map_or(i64::MAX, |first| first - 1);
    let frontier = wanted.max(start);
    let swept = look.maybe_number("swept_id", op)?.zip(look.maybe_time("swept_at", op)?);
    let Some((last, until)) = swept else { return Ok(frontier) };
    let asked_for = match replay.from {
        ReplayFrom::Time(time) => until >= time,
        ReplayFrom::Event(_) => last > wanted,
    };
    if last > start && (last > frontier || asked_for) {
        return refuse(ReplayRefusal::Gone(until, look.maybe_time("whole_from", op)?));
    }
    Ok(frontier)
}

/// Refuses a replay of events whose marks the inbox has forgotten, unless their effects may repeat.
pub fn check_remembered(
    look: &impl Columns,
    replay: &Replay,
    replayed: &Replayed,
    op: &'static str,
) -> Result<()> {
    let forgotten = look.maybe_time("forgotten_at", op)?.filter(|_| !replay.effects_may_repeat);
    match forgotten.filter(|until| replayed.first_recorded_at.is_some_and(|first| first <= *until)) {
        Some(until) => Err(ReplayRefusal::Forgotten(until).error(&replay.subscription)),
        None => Ok(()),
    }
}

/// How many events come again, as they are being counted.
#[derive(Default)]
pub struct Tally {
    events: u64,
    first: Option<i64>,
}

impl Tally {
    /// Counts an event, if its lane has read it.
    pub fn take(&mut self, progress: &ReadProgress, event: &Address<'_>) {
        let was_read = progress.lane(event).is_some_and(|lane| event.number <= lane.position);
        if was_read && progress.wants(event) {
            self.events += 1;
            self.first = Some(self.first.map_or(event.recorded_at, |first| first.min(event.recorded_at)));
        }
    }

    /// The count, and whether these are all.
    pub fn replayed(self, counted: bool) -> Replayed {
        Replayed { events: self.events, counted, first_recorded_at: self.first.map(time_of) }
    }
}
