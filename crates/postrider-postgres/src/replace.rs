//! A corrected event in place of a dead one, in one transaction.

use postrider_core::{ReplaceDead, Result};

use crate::error::during;
use crate::record::{insert, taken};
use crate::row;
use crate::store::PgStore;

const OP: &str = "replace";

impl PgStore {
    pub(crate) async fn replace(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        let headers = replacement.check()?;
        let old = replacement.event_id;
        let mut tx = self.pool.begin().await.map_err(during(OP))?;
        let dead_for = self.sql.text("dead_for", include_str!("../sql/dead_for.sql"));
        let rows = dead_for.query().bind(old).fetch_all(&mut *tx).await.map_err(during(OP))?;
        let mut discarded = Vec::new();
        // By name: two who replace at once wait for each other in one order.
        for row in &rows {
            let subscription = row::text(row, 0)?;
            self.lock_lanes(&mut tx, subscription, OP).await?;
            let discard = self.sql.discard.query().bind(subscription.to_owned()).bind(Some(vec![old]));
            if discard.execute(&mut *tx).await.map_err(during(OP))?.rows_affected() > 0 {
                self.audit_on(&mut *tx, &replacement.entry(Some(subscription))).await?;
                discarded.push(subscription.to_owned());
            }
        }
        if discarded.is_empty() {
            return Err(replacement.not_dead(OP));
        }
        // Last: a transaction in front of whose events others wait should end soon.
        if !insert(&self.sql, &mut tx, &replacement.by, false, headers).await? {
            return Err(taken());
        }
        tx.commit().await.map_err(during(OP))?;
        self.ring().await?;
        Ok(discarded)
    }
}
