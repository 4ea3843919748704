//! How a subscription is doing, in numbers.

use postrider_core::{Figures, Result};
use sqlx_core::row::Row;

use crate::error::during;
use crate::row;
use crate::sql::Text;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn figures_of(&self, subscription: &str) -> Result<Vec<Figures>> {
        self.count_by(&self.sql.figures, subscription).await
    }

    pub(crate) async fn figures_sampled(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        let text = include_str!("../sql/figures.sql").replace("{most}", &most.to_string());
        self.count_by(&self.sql.text("figures", &text), subscription).await
    }

    async fn count_by(&self, text: &Text, subscription: &str) -> Result<Vec<Figures>> {
        let rows = text
            .query()
            .bind(subscription.to_owned())
            .bind(self.clock.now())
            .bind(self.system)
            .bind(self.floor)
            .fetch_all(&self.pool)
            .await
            .map_err(during("figures"))?;
        if rows.is_empty() && !self.exists(subscription).await? {
            return Err(Self::unknown("figures", subscription));
        }
        rows.iter()
            .map(|row| {
                let number = |column| row::int64(row, column).map(|n| u64::try_from(n).unwrap_or(0));
                Ok(Figures {
                    subscription: subscription.to_owned(),
                    stream: row::text(row, 0)?.to_owned(),
                    pending: number(1)?,
                    processing: number(2)?,
                    retrying: number(3)?,
                    dead: number(4)?,
                    oldest_seconds: row.try_get(5).map_err(during("figures"))?,
                    attempts: number(6)?,
                })
            })
            .collect()
    }
}
