//! How a subscription is doing, in numbers.

use std::time::Duration;

use postrider_core::{Figures, OffsetDateTime, Result, Subscription};
use sqlx_core::row::Row;

use crate::error::during;
use crate::row;
use crate::sql::Text;
use crate::store::PgStore;

/// Nothing is older, and an interval holds it.
const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);

impl PgStore {
    pub(crate) async fn figures_of(&self, subscription: &str) -> Result<Vec<Figures>> {
        let counted = self.count(&self.sql.figures, subscription, None).await?;
        Ok(counted.into_iter().map(|(figures, _)| figures).collect())
    }

    pub(crate) async fn figures_sampled(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        let text = include_str!("../sql/figures.sql").replace("{most}", &most.to_string());
        let counted = self.count(&self.sql.text("figures", &text), subscription, None).await?;
        Ok(counted.into_iter().map(|(figures, _)| figures).collect())
    }

    pub(crate) async fn count_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        let counted = self.count(&self.sql.figures, subscription, Some(age)).await?;
        Ok(counted.iter().map(|(_, over)| over).sum())
    }

    pub(crate) async fn unread_of(&self, subscription: &str) -> Result<Option<OffsetDateTime>> {
        let text = self.sql.text("unread_since", include_str!("../sql/unread_since.sql"));
        let query = text.query().bind(subscription.to_owned());
        let row = query.fetch_optional(&self.pool).await.map_err(during("figures"))?;
        row.map(|row| row::timestamp(&row, 0)).transpose()
    }

    async fn count(
        &self,
        text: &Text,
        subscription: &str,
        age: Option<Duration>,
    ) -> Result<Vec<(Figures, u64)>> {
        // This comes first. Asked after the count, a subscription that was made in between would have nothing to deliver.
        if !self.exists(subscription).await? {
            return Err(Subscription::unknown(subscription, "figures"));
        }
        let rows = text
            .query()
            .bind(subscription.to_owned())
            .bind(self.clock.now())
            .bind(self.home().system)
            .bind(self.home().floor())
            .bind(age.map(|age| age.min(CENTURY).as_secs_f64()))
            .fetch_all(&self.pool)
            .await
            .map_err(during("figures"))?;
        rows.iter()
            .map(|row| {
                let number = |column| row::int64(row, column).map(|n| u64::try_from(n).unwrap_or(0));
                let figures = Figures {
                    subscription: subscription.to_owned(),
                    stream: row::shown(row, 0)?,
                    pending: number(1)?,
                    processing: number(2)?,
                    retrying: number(3)?,
                    dead: number(4)?,
                    oldest_seconds: row.try_get(5).map_err(during("figures"))?,
                    attempts: number(6)?,
                    waiting: number(8)?,
                    retry_in: row.try_get(9).map_err(during("figures"))?,
                    due: number(10)?,
                    oldest_pending_seconds: row.try_get(11).map_err(during("figures"))?,
                };
                Ok((figures, number(7)?))
            })
            .collect()
    }
}
