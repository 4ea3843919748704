//! Retention: archive, prune, forget what was handled, drop old months of the archive.

use std::sync::{Mutex, PoisonError};

use postrider_core::{OffsetDateTime, Result, Sweep, Sweepable, Swept};
use sqlx_core::query::Query;
use sqlx_core::row::Row;
use sqlx_postgres::{PgArguments, Postgres};

use crate::error::during;
use crate::lane::micros;
use crate::row;
use crate::store::PgStore;

const OP: &str = "sweep";

/// How far a sweep has got that goes on in another round.
///
/// What was deleted stays in the index until nobody's snapshot shows it: a round that began at the start of the log would look
/// at all that was taken before it. So it begins behind the round before, and what that passed over waits for the next sweep.
#[derive(Default)]
pub(crate) struct Reached(Mutex<Option<(Sweep, Place)>>);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Id(i64),
    Time(OffsetDateTime),
}

impl Reached {
    fn of(&self, sweep: &Sweep) -> Option<Place> {
        let reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reached.as_ref().filter(|(of, _)| of == sweep).map(|(_, place)| *place)
    }

    pub(crate) fn id(&self, sweep: &Sweep) -> i64 {
        match self.of(sweep) {
            Some(Place::Id(id)) => id,
            _ => 0,
        }
    }

    fn time(&self, sweep: &Sweep) -> Option<OffsetDateTime> {
        match self.of(sweep) {
            Some(Place::Time(time)) => Some(time),
            _ => None,
        }
    }

    pub(crate) fn note(&self, sweep: &Sweep, swept: Swept, place: Option<Place>) {
        let mut reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !swept.more {
            *reached = None;
        } else if let Some(place) = place {
            *reached = Some((sweep.clone(), place));
        }
    }
}

impl PgStore {
    pub(crate) async fn sweep_once(&self, sweep: &Sweep) -> Result<Swept> {
        match sweep {
            Sweep::Archive { archiving, .. } if !archiving.is_plain() => self.file(sweep, archiving).await,
            Sweep::Archive { .. } => self.take_out(sweep, true).await,
            Sweep::Prune { .. } => self.take_out(sweep, false).await,
            Sweep::Inbox { .. } => self.forget(sweep).await,
            Sweep::Archived { .. } => self.drop_month(sweep).await,
        }
    }

    /// The time, the age and the limit, which every statement of retention begins with.
    pub(crate) fn aged<'q>(&self, name: &str, text: &str, sweep: &Sweep) -> Query<'q, Postgres, PgArguments> {
        self.aged_up_to(name, text, sweep, sweep.limit())
    }

    /// The same with another limit.
    pub(crate) fn aged_up_to<'q>(
        &self,
        name: &str,
        text: &str,
        sweep: &Sweep,
        limit: u32,
    ) -> Query<'q, Postgres, PgArguments> {
        let query = self.sql.text(name, text).query().bind(self.clock.now()).bind(micros(sweep.older_than()));
        query.bind(i32::try_from(limit).unwrap_or(i32::MAX))
    }

    async fn take_out(&self, sweep: &Sweep, keep: bool) -> Result<Swept> {
        let query = self.aged("sweep", include_str!("../sql/sweep.sql"), sweep);
        let query = query.bind(self.reached.id(sweep)).bind(keep);
        let row = query.fetch_one(&self.pool).await.map_err(during(OP))?;
        let taken = u64::try_from(row::int64(&row, 0)?).unwrap_or(0);
        self.taken(sweep, taken, row::opt_i64(&row, 1)?, false).await
    }

    /// So many events are gone up to an id, and some were left if it was `cut`: after the last of them goes their history.
    pub(crate) async fn taken(
        &self,
        sweep: &Sweep,
        taken: u64,
        last: Option<i64>,
        cut: bool,
    ) -> Result<Swept> {
        let mut swept = Swept { taken, more: cut || taken >= u64::from(sweep.limit()) };
        if !swept.more {
            let query = self.aged("sweep_history", include_str!("../sql/sweep_history.sql"), sweep);
            let row = query.fetch_one(&self.pool).await.map_err(during(OP))?;
            let forgotten = u64::try_from(row::int64(&row, 0)?).unwrap_or(0);
            swept.more = forgotten > 0 && forgotten >= u64::from(sweep.limit());
        }
        self.reached.note(sweep, swept, last.map(Place::Id));
        Ok(swept)
    }

    async fn forget(&self, sweep: &Sweep) -> Result<Swept> {
        let query = self.aged("sweep_inbox", include_str!("../sql/sweep_inbox.sql"), sweep);
        let row = query.bind(self.reached.time(sweep)).fetch_one(&self.pool).await.map_err(during(OP))?;
        let taken = u64::try_from(row::int64(&row, 0)?).unwrap_or(0);
        let swept = Swept { taken, more: taken > 0 && taken >= u64::from(sweep.limit()) };
        self.reached.note(sweep, swept, row::opt_time(&row, 1)?.map(Place::Time));
        Ok(swept)
    }

    async fn drop_month(&self, sweep: &Sweep) -> Result<Swept> {
        let text = self.sql.text("sweep_archive", include_str!("../sql/sweep_archive.sql"));
        let query = text.query().bind(self.clock.now()).bind(micros(sweep.older_than()));
        let row = query.fetch_one(&self.pool).await.map_err(during(OP))?;
        Ok(Swept { taken: u64::try_from(row::int64(&row, 0)?).unwrap_or(0), more: row::flag(&row, 1)? })
    }

    /// How much a sweep would take.
    pub(crate) async fn count_sweep(&self, sweep: &Sweep) -> Result<Sweepable> {
        const EVENTS: &str = "select count(*) from {schema}.sweepable(coalesce($1::timestamptz, clock_timestamp()) \
             - $2::bigint * interval '1 microsecond', 0, $3)";
        const INBOX: &str = "select count(*) from {schema}.forgettable(coalesce($1::timestamptz, clock_timestamp()) \
             - $2::bigint * interval '1 microsecond', '-infinity', $3)";
        const ARCHIVED: &str = "select least(coalesce(sum(m.events), 0), $3::integer)::bigint from {schema}.archive_month m \
             where m.month < date_trunc('month', (coalesce($1::timestamptz, clock_timestamp()) \
                 - $2::bigint * interval '1 microsecond') at time zone 'UTC')";
        let text = match sweep {
            Sweep::Archive { .. } | Sweep::Prune { .. } => EVENTS,
            Sweep::Inbox { .. } => INBOX,
            Sweep::Archived { .. } => ARCHIVED,
        };
        let query = self.sql.text("sweepable", text).query();
        let query = query.bind(self.clock.now()).bind(micros(sweep.older_than()));
        let query = query.bind(i32::try_from(Sweepable::MOST).unwrap_or(i32::MAX));
        let row = query.fetch_one(&self.pool).await.map_err(during(OP))?;
        Ok(Sweepable::of(row.try_get::<i64, _>(0).map_err(during(OP))?.unsigned_abs()))
    }
}
