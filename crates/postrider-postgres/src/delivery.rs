//! The deliveries that did not simply succeed: what is due, and what operators do about the dead.

use std::time::Duration;

use postrider_core::{Amend, Due, DueBatch, Error, ErrorKind, Lease, Order, Result};

use crate::error::during;
use crate::row::{self, Names};
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn due_now(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        let text = match lease.order {
            Order::Key => &self.sql.due[0],
            Order::Strict => &self.sql.due[1],
            Order::None => &self.sql.due[2],
        };
        let rows = text
            .query()
            .bind(lease.subscription.clone())
            .bind(lease.lanes.cast_signed())
            .bind(lease.lane.cast_signed())
            .bind(i64::from(limit))
            .bind(self.clock.now())
            .bind(lease.cookie.clone())
            .bind(lease.epoch)
            .bind(lease.owner.clone())
            .bind(lease.position.as_str().to_owned())
            .bind(self.home().system)
            .fetch_all(&self.pool)
            .await
            .map_err(during("due"))?;
        let mut names = Names::of(&self.sql);
        let mut batch = DueBatch::default();
        for row in &rows {
            let now = row::timestamp(row, 19)?;
            if row::opt_i64(row, 0)?.is_none() {
                if !row::flag(row, 22)? {
                    return Err(self.elsewhere("due").await);
                }
                batch.next_in = row::opt_time(row, 20)?.and_then(|next| Duration::try_from(next - now).ok());
                batch.holds = row::flag(row, 21)?;
                continue;
            }
            let decoded = row::decoded(row, &mut names)?;
            batch.deliveries.push(Due {
                event: decoded.event,
                state: row::text(row, 15)?.parse()?,
                attempts: row::count(row, 16)?,
                first_failed_at: row::opt_time(row, 17)?,
                error_code: row::opt_text(row, 18)?.map(ToOwned::to_owned),
                now,
                unreadable: decoded.unreadable,
            });
        }
        Ok(batch)
    }

    pub(crate) async fn amend_dead(&self, amend: &Amend) -> Result<u64> {
        let (subscription, events, query) = match amend {
            Amend::Requeue { subscription, events } => (subscription, events, self.sql.requeue.query()),
            Amend::Discard { subscription, events } => (subscription, events, self.sql.discard.query()),
        };
        let query = query.bind(subscription.clone()).bind((!events.is_empty()).then(|| events.clone()));
        let query = match amend {
            Amend::Requeue { .. } => query.bind(self.clock.now()),
            Amend::Discard { .. } => query,
        };
        let changed = query.execute(&self.pool).await.map_err(during("amend"))?.rows_affected();
        if changed == 0 && !self.exists(subscription).await? {
            return Err(Error::new(
                ErrorKind::NotFound,
                "amend",
                format!("there is no subscription {subscription:?}"),
            ));
        }
        if changed > 0 {
            self.ring().await?;
        }
        Ok(changed)
    }
}
