//! Reading again what was read: every lane goes back, and its holders lose it.
//!
//! A lane's position says: all up to the frontier that the snapshot shows was read, and what it does not show comes late.
//! That stays true when only the frontier is lowered. So nothing that is owed is lost, whatever is open meanwhile; what lies
//! above the new frontier is read as if it were fresh.

use postrider_core::{Replay, ReplayFrom, ReplayRefusal, Replayed, Result, Subscription};
use sqlx_core::row::Row;
use sqlx_postgres::PgConnection;

use crate::error::during;
use crate::row;
use crate::store::PgStore;

const OP: &str = "replay";
/// Retention waits: it must not take events that are about to be read again, nor their inbox marks.
const STAND_ASIDE: &str = "select from {schema}.turn order by name for update";
/// The subscription first, then its lanes, as a change of lanes does.
const SUBSCRIPTION: &str =
    "select replay, lanes_next is not null, start_frontier from {schema}.subscription where name = $1";
const LANES: &str = "select from {schema}.lane where subscription = $1 order by lane for no key update";
const BY_EVENT: &str = "select id from {schema}.event where event_id = $1 \
     union all (select id from {schema}.archive where event_id = $1 order by id + 0 desc limit 1) limit 1";
/// Exact, whatever the clock did: it looks at every row before the first one that is wanted.
const BY_TIME: &str = "select min(id) from {schema}.event where recorded_at >= $1";
const SWEPT: &str = "select w.id, w.recorded_at, \
     (select e.recorded_at from {schema}.event e where e.id > w.id order by e.id limit 1) from {schema}.swept w";
const FORGOTTEN: &str = "select handled_at from {schema}.forgotten where consumer = $1";

impl PgStore {
    pub(crate) async fn read_again(&self, replay: &Replay) -> Result<Replayed> {
        let name = replay.subscription.clone();
        let text = |sql: &str| self.sql.text(OP, sql);
        let mut tx = self.pool.begin().await.map_err(during(OP))?;
        if !replay.dry_run {
            text(STAND_ASIDE).query().execute(&mut *tx).await.map_err(during(OP))?;
        }
        let lock = if replay.dry_run { "" } else { " for no key update" };
        let look = text(&format!("{SUBSCRIPTION}{lock}")).query().bind(name.clone());
        let look = look.fetch_optional(&mut *tx).await.map_err(during(OP))?;
        let look = look.ok_or_else(|| Subscription::unknown(&name, OP))?;
        let refuse = |refusal: ReplayRefusal| Err(refusal.error(&name));
        if !row::flag(&look, 0)? {
            return refuse(ReplayRefusal::Forbidden);
        }
        if row::flag(&look, 1)? {
            return refuse(ReplayRefusal::Changing);
        }
        let start = row::int64(&look, 2)?;
        let wanted = match self.before(&mut tx, &replay.from).await? {
            Ok(wanted) => wanted,
            Err(refusal) => return refuse(refusal),
        };
        let frontier = wanted.max(start);
        if let Some(refusal) = self.gone(&mut tx, replay, start, frontier, wanted).await? {
            return refuse(refusal);
        }
        if !replay.dry_run {
            text(LANES).query().bind(name.clone()).execute(&mut *tx).await.map_err(during(OP))?;
        }
        let replayed = self.count_again(&mut tx, &name, frontier).await?;
        if let Some(first) = replayed.first_recorded_at.filter(|_| !replay.effects_may_repeat) {
            let query = text(FORGOTTEN).query().bind(name.clone());
            let forgotten = query.fetch_optional(&mut *tx).await.map_err(during(OP))?;
            let until = forgotten.map(|row| row::timestamp(&row, 0)).transpose()?;
            if let Some(until) = until.filter(|until| first <= *until) {
                return refuse(ReplayRefusal::Forgotten(until));
            }
        }
        if replay.dry_run || frontier == i64::MAX {
            return Ok(replayed);
        }
        for statement in [
            include_str!("../sql/replay_lanes.sql"),
            include_str!("../sql/replay_batches.sql"),
            include_str!("../sql/replay_deliveries.sql"),
        ] {
            let query = text(statement).query().bind(name.clone()).bind(frontier);
            query.execute(&mut *tx).await.map_err(during(OP))?;
        }
        tx.commit().await.map_err(during(OP))?;
        self.ring().await?;
        Ok(replayed)
    }

    /// The id before which everything stays read; the greatest there is, if nothing is to be read again.
    async fn before(
        &self,
        connection: &mut PgConnection,
        from: &ReplayFrom,
    ) -> Result<Result<i64, ReplayRefusal>> {
        let first = match from {
            ReplayFrom::Time(time) => {
                let query = self.sql.text(OP, BY_TIME).query().bind(*time);
                row::opt_i64(&query.fetch_one(connection).await.map_err(during(OP))?, 0)?
            }
            ReplayFrom::Event(event) => {
                let query = self.sql.text(OP, BY_EVENT).query().bind(*event);
                match query.fetch_optional(connection).await.map_err(during(OP))? {
                    Some(row) => row::opt_i64(&row, 0)?,
                    None => return Ok(Err(ReplayRefusal::NoEvent(*event))),
                }
            }
        };
        Ok(Ok(first.map_or(i64::MAX, |first| first - 1)))
    }

    /// Whether retention has taken something that would have to come again.
    async fn gone(
        &self,
        connection: &mut PgConnection,
        replay: &Replay,
        start: i64,
        frontier: i64,
        wanted: i64,
    ) -> Result<Option<ReplayRefusal>> {
        let swept = self.sql.text(OP, SWEPT).query().fetch_optional(connection).await.map_err(during(OP))?;
        let Some(swept) = swept else { return Ok(None) };
        let (last, until) = (row::int64(&swept, 0)?, row::timestamp(&swept, 1)?);
        let asked_for = match replay.from {
            ReplayFrom::Time(time) => until >= time,
            ReplayFrom::Event(_) => last > wanted,
        };
        let refused = last > start && (last > frontier || asked_for);
        Ok(refused.then_some(ReplayRefusal::Gone(until, row::opt_time(&swept, 2)?)))
    }

    async fn count_again(
        &self,
        connection: &mut PgConnection,
        subscription: &str,
        frontier: i64,
    ) -> Result<Replayed> {
        let text = self.sql.text("replay_count", include_str!("../sql/replay_count.sql"));
        let query = text.query().bind(subscription.to_owned()).bind(frontier).bind(self.home().system);
        let query = query.bind(self.home().floor()).bind(i64::from(Replayed::MOST));
        let row = query.fetch_one(connection).await.map_err(during(OP))?;
        Ok(Replayed {
            events: u64::try_from(row::int64(&row, 0)?).unwrap_or(0),
            counted: row.try_get(2).map_err(during(OP))?,
            first_recorded_at: row::opt_time(&row, 1)?,
        })
    }
}
