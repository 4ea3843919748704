//! Retention: archive, prune, forget what was handled.

use std::time::Duration;

use postrider_core::{Result, Sweep, Swept};
use sqlx_core::row::Row;

use crate::error::during;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn sweep_once(&self, sweep: &Sweep) -> Result<Swept> {
        let (older_than, limit) = match *sweep {
            Sweep::Archive { older_than, limit }
            | Sweep::Prune { older_than, limit }
            | Sweep::Inbox { older_than, limit } => (older_than, limit),
        };
        let text = match sweep {
            Sweep::Inbox { .. } => include_str!("../sql/sweep_inbox.sql"),
            Sweep::Archive { .. } | Sweep::Prune { .. } => include_str!("../sql/sweep.sql"),
        };
        let query = self
            .sql
            .text("sweep", text)
            .query()
            .bind(self.clock.now())
            .bind(micros(older_than))
            .bind(i32::try_from(limit).unwrap_or(i32::MAX));
        let query = match sweep {
            Sweep::Inbox { .. } => query,
            Sweep::Archive { .. } | Sweep::Prune { .. } => query.bind(matches!(sweep, Sweep::Archive { .. })),
        };
        let row = query.fetch_one(&self.pool).await.map_err(during("sweep"))?;
        let taken: i64 = row.try_get(0).map_err(during("sweep"))?;
        let taken = u64::try_from(taken).unwrap_or(0);
        Ok(Swept { taken, more: taken >= u64::from(limit) })
    }
}

fn micros(age: Duration) -> i64 {
    i64::try_from(age.as_micros()).unwrap_or(i64::MAX)
}
