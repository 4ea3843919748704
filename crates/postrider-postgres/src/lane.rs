//! Lanes and their leases: claim, extend, release.

use std::sync::atomic::Ordering;
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Filter, Lease, Pattern, Position, Relane, Result, Standing};
use sqlx_core::row::Row;
use sqlx_postgres::PgRow;

use crate::error::during;
use crate::relane::Lanes;
use crate::row;
use crate::settle::reading;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn claim_lane(
        &self,
        subscription: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<Lease>> {
        if let Some(lease) = self.claim_free(subscription, owner, lease).await? {
            return Ok(Some(lease));
        }
        // Nothing free: perhaps because the lanes are being changed, and it is for us to take the next step.
        match self.look_at_lanes(subscription).await? {
            Lanes::Changing => match self.step_lanes(subscription).await? {
                Relane::Recalling => Ok(None),
                Relane::Draining | Relane::Done => self.claim_free(subscription, owner, lease).await,
            },
            Lanes::Several => {
                let query = self.sql.want.query().bind(subscription.to_owned()).bind(owner.to_owned());
                query.bind(self.clock.now()).execute(&self.pool).await.map_err(during("claim"))?;
                Ok(None)
            }
            Lanes::One => Ok(None),
        }
    }

    async fn claim_free(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        let row = self
            .sql
            .claim
            .query()
            .bind(subscription.to_owned())
            .bind(owner.to_owned())
            .bind(micros(lease))
            .bind(self.clock.now())
            .fetch_optional(&self.pool)
            .await
            .map_err(during("claim"))?;
        let Some(row) = row else { return Ok(None) };
        if let Some(until) = row::opt_time(&row, 13)? {
            // The lane is claimed whatever becomes of this; what is not taken back lapses.
            let heard = self.sql.heard.query().bind(subscription.to_owned()).bind(until);
            let _ = heard.execute(&self.pool).await;
        }
        granted(&row, subscription, owner, self.cookie(row::text(&row, 6)?)).map(Some)
    }

    pub(crate) async fn extend_lease(
        &self,
        lease: &mut Lease,
        by: Duration,
        ahead: Option<&Position>,
    ) -> Result<Standing> {
        let ahead = reading(ahead)?;
        for text in [&self.sql.extend, &self.sql.extend_by_key] {
            let row = text
                .query()
                .bind(Cookie::parse(&lease.cookie).ctid.to_owned())
                .bind(lease.subscription.clone())
                .bind(lease.lane.cast_signed())
                .bind(lease.epoch)
                .bind(lease.owner.clone())
                .bind(micros(by))
                .bind(self.clock.now())
                .bind(ahead)
                .bind(lease.position.as_str().to_owned())
                .fetch_optional(&self.pool)
                .await
                .map_err(during("extend"))?;
            if let Some(row) = row {
                // Not the count of connections: an extension says nothing of a batch that was read before it.
                lease.cookie = format!("{}@{}", row::text(&row, 0)?, Cookie::parse(&lease.cookie).connects);
                lease.until = row::timestamp(&row, 1)?;
                lease.open = row::flag(&row, 2)?;
                return Ok(if row::flag(&row, 3)? { Standing::Recalled } else { Standing::Held });
            }
        }
        Ok(Standing::Lost)
    }

    /// Whether the lane stands where the lease says, asked only if a connection was made since the store last saw it
    /// there: behind a new connection there may be a database that was set back. A lane that was given back, and that nobody
    /// has claimed since, stands there, too.
    pub(crate) async fn verify(&self, lease: &Lease) -> Result<()> {
        if Cookie::parse(&lease.cookie).connects == self.connects.load(Ordering::Acquire) {
            return Ok(());
        }
        const STANDS: &str = "select from {schema}.lane where subscription = $1 and lane = $2 \
             and lease_epoch = $3 and coalesce(lease_owner, $4) = $4 and position = $5";
        let query = self.sql.text("verify", STANDS).query();
        let query = query.bind(lease.subscription.clone()).bind(lease.lane.cast_signed()).bind(lease.epoch);
        let query = query.bind(lease.owner.clone()).bind(lease.position.as_str().to_owned());
        if query.fetch_optional(&self.pool).await.map_err(during("read"))?.is_some() {
            return Ok(());
        }
        let message = "the lane does not stand where this relay left it; it will be claimed anew";
        Err(Error::new(ErrorKind::LeaseLost, "read", message))
    }

    /// What the store keeps in a lease: where its row is, and how many connections there had been by then.
    pub(crate) fn cookie(&self, ctid: &str) -> String {
        format!("{ctid}@{}", self.connects.load(Ordering::Acquire))
    }

    pub(crate) async fn release_lease(&self, lease: Lease) -> Result<()> {
        let query = self.sql.release.query();
        let query =
            query.bind(lease.subscription).bind(lease.lane.cast_signed()).bind(lease.epoch).bind(lease.owner);
        let query = query.bind(self.clock.now());
        query.execute(&self.pool).await.map_err(during("release"))?;
        Ok(())
    }
}

pub(crate) struct Cookie<'c> {
    pub(crate) ctid: &'c str,
    pub(crate) connects: u64,
}

impl<'c> Cookie<'c> {
    pub(crate) fn parse(text: &'c str) -> Self {
        let (ctid, connects) = text.split_once('@').unwrap_or(("(0,0)", ""));
        Self { ctid, connects: connects.parse().unwrap_or(0) }
    }
}

fn granted(row: &PgRow, subscription: &str, owner: &str, cookie: String) -> Result<Lease> {
    let patterns = |column| -> Result<Vec<Pattern>> {
        let likes: Vec<String> = row.try_get(column).map_err(during("claim"))?;
        Ok(likes.iter().map(|like| Pattern::from_like(like)).collect())
    };
    Ok(Lease {
        subscription: subscription.to_owned(),
        lane: row::count(row, 0)?,
        lanes: row::count(row, 1)?,
        owner: owner.to_owned(),
        epoch: row::int64(row, 2)?,
        until: row::timestamp(row, 3)?,
        position: Position::new(row::text(row, 4)?),
        claims: row::count(row, 5)?,
        cookie,
        open: row::flag(row, 7)?,
        filter: Filter { streams: patterns(8)?, types: patterns(9)? },
        since: row::opt_time(row, 10)?,
        order: row::text(row, 11)?.parse()?,
        target: row::opt_text(row, 12)?.map(Position::new),
    })
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
