//! Lanes and their leases: claim, extend, release.

use std::time::Duration;

use postrider_core::{Error, Filter, Lease, LeaseStatus, Pattern, Position, Relane, Result};
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
        granted(&row, subscription, owner, row::text(&row, 6)?.to_owned()).map(Some)
    }

    pub(crate) async fn extend_lease(
        &self,
        lease: &mut Lease,
        by: Duration,
        ahead: Option<&Position>,
    ) -> Result<LeaseStatus> {
        let ahead = reading(ahead)?;
        for text in [&self.sql.extend, &self.sql.extend_by_key] {
            let row = text
                .query()
                .bind(lease.row_location.clone())
                .bind(lease.subscription.clone())
                .bind(lease.lane.cast_signed())
                .bind(lease.epoch)
                .bind(lease.owner.clone())
                .bind(micros(by))
                .bind(self.clock.now())
                .bind(ahead)
                .bind(lease.position.as_str().to_owned())
                .bind(lease.away_to_keep())
                .fetch_optional(&self.pool)
                .await
                .map_err(during("extend"))?;
            if let Some(row) = row {
                lease.row_location = row::text(&row, 0)?.to_owned();
                lease.until = row::timestamp(&row, 1)?;
                lease.open = row::flag(&row, 2)?;
                return Ok(if row::flag(&row, 3)? { LeaseStatus::Recalled } else { LeaseStatus::Held });
            }
        }
        Ok(LeaseStatus::Lost)
    }

    /// The error of who finds a lane elsewhere than the lease says. There may be another server behind the address: the store
    /// gets to know it, so that the next claim finds its way there.
    pub(crate) async fn elsewhere(&self, op: &'static str) -> Error {
        if let Err(error) = self.come_home().await {
            return error;
        }
        Lease::moved(op)
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

fn granted(row: &PgRow, subscription: &str, owner: &str, row_location: String) -> Result<Lease> {
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
        row_location,
        open: row::flag(row, 7)?,
        filter: Filter { streams: patterns(8)?, types: patterns(9)? },
        since: row::opt_time(row, 10)?,
        order: row::text(row, 11)?.parse()?,
        target: row::opt_text(row, 12)?.map(Position::new),
        bytes: postrider_core::BATCH_BYTES,
        away: None,
    })
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
