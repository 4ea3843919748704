//! Open deliveries: due ones, and operations on dead ones.

use std::time::Duration;

use futures_util::TryStreamExt;
use postrider_core::{ByteBudget, Due, DueBatch, Error, ErrorKind, Lease, PastAttempt, ResolveDead, Result};

use crate::error::during;
use crate::row::{self, Names};
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn due_now(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        let mut connection = self.pool.hold("due").await?;
        let mut rows = self
            .sql
            .due_of(lease.order)
            .query()
            .bind(lease.subscription.clone())
            .bind(lease.lane.cast_signed())
            .bind(i64::from(limit))
            .bind(self.clock.now())
            .bind(lease.row_location.clone())
            .bind(lease.epoch)
            .bind(lease.owner.clone())
            .bind(lease.position.as_str().to_owned())
            .bind(self.home().system)
            .fetch(&mut *connection);
        let mut names = Names::of(&self.sql);
        let mut batch = DueBatch::default();
        let (mut fill, mut cut, mut stands) = (ByteBudget::new(lease.bytes), false, true);
        while let Some(row) = &self.noticed(rows.try_next().await).map_err(during("due"))? {
            let now = row::timestamp(row, 20)?;
            if row::opt_i64(row, 0)?.is_none() {
                stands = row::flag(row, 23)?;
                batch.next_in = row::opt_time(row, 21)?.and_then(|next| Duration::try_from(next - now).ok());
                batch.holds = row::flag(row, 22)?;
                continue;
            }
            let decoded = row::decoded(row, &mut names)?;
            let past = row::opt_text(row, 19)?;
            cut = !fill.takes(decoded.event.size() + past.map_or(0, |past| past.len() as u64));
            if cut {
                break;
            }
            batch.deliveries.push(Due {
                event: decoded.event,
                state: row::text(row, 15)?.parse()?,
                attempts: row::count(row, 16)?,
                first_failed_at: row::opt_time(row, 17)?,
                error_code: row::opt_text(row, 18)?.map(ToOwned::to_owned),
                past: past.map(PastAttempt::decode).unwrap_or_default(),
                now,
                unreadable: decoded.unreadable,
            });
        }
        drop(rows);
        // The rest is due at the next look. As in a read: a server would send all of it first.
        if cut {
            connection.sever();
        } else {
            connection.finish("due").await?;
        }
        if !stands {
            return Err(self.elsewhere("due").await);
        }
        Ok(batch)
    }

    pub(crate) async fn resolve_all(&self, action: &ResolveDead) -> Result<u64> {
        let (subscription, events, query) = match action {
            ResolveDead::Requeue { subscription, events } => (subscription, events, self.sql.requeue.query()),
            ResolveDead::Discard { subscription, events } => (subscription, events, self.sql.discard.query()),
        };
        let query = query.bind(subscription.clone()).bind((!events.is_empty()).then(|| events.clone()));
        let query = match action {
            ResolveDead::Requeue { .. } => query.bind(self.clock.now()),
            ResolveDead::Discard { .. } => query,
        };
        let mut tx = self.pool.begin().await.map_err(during("resolve"))?;
        self.lock_lanes(&mut tx, subscription, "resolve").await?;
        let changed = query.execute(&mut *tx).await.map_err(during("resolve"))?.rows_affected();
        tx.commit().await.map_err(during("resolve"))?;
        if changed == 0 && !self.exists(subscription).await? {
            return Err(Error::new(
                ErrorKind::NotFound,
                "resolve",
                format!("there is no subscription {subscription:?}"),
            ));
        }
        if changed > 0 {
            self.ring().await?;
        }
        Ok(changed)
    }
}
