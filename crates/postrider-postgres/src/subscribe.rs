//! Subscriptions: made once, changed by asking again.

use postrider_core::{Pattern, Result, Start, Subscribed, Subscription};
use sqlx_core::row::Row;
use sqlx_postgres::PgConnection;

use crate::error::during;
use crate::position::{LogPosition, Snapshot};
use crate::row;
use crate::store::PgStore;

const POLICY: &str =
    "select order_policy, on_dead from {schema}.subscription where name = $1 for no key update";
const LANES: &str = "select lane from {schema}.lane where subscription = $1 order by lane for no key update";

impl PgStore {
    pub(crate) async fn ensure(&self, subscription: &Subscription) -> Result<Subscribed> {
        subscription.check()?;
        let since = match subscription.start {
            Start::At(time) => Some(time),
            Start::Beginning | Start::Now => None,
        };
        // One that exists keeps its place, and nobody looks through the log for a time.
        let looked_for = if self.exists(&subscription.name).await? { None } else { since };
        let mut tx = self.pool.begin().await.map_err(during("subscribe"))?;
        let mut start = self.stand(&mut tx, &subscription.name, looked_for).await?;
        if subscription.start == Start::Beginning {
            start.frontier = 0;
        }
        // Locked, so that of two who ask for different policies at once the second sees what the first has made of it.
        let before = self.sql.text("subscribe", POLICY).query().bind(subscription.name.clone());
        let before = before.fetch_optional(&mut *tx).await.map_err(during("subscribe"))?;
        let policy = (subscription.order.as_str(), subscription.on_dead.as_str());
        let same = match &before {
            Some(row) => (row::text(row, 0)?, row::text(row, 1)?) == policy,
            None => false,
        };
        let likes = |patterns: &[Pattern]| patterns.iter().map(Pattern::to_like).collect::<Vec<_>>();
        let row = self
            .sql
            .text("subscribe", include_str!("../sql/subscribe.sql"))
            .query()
            .bind(subscription.name.clone())
            .bind(likes(&subscription.filter.streams))
            .bind(likes(&subscription.filter.types))
            .bind(subscription.order.as_str())
            .bind(subscription.on_dead.as_str())
            .bind(subscription.lanes.cast_signed())
            .bind(since)
            .bind(start.frontier)
            .bind(start.snapshot.to_string())
            .bind(self.clock.now())
            .bind(subscription.replay)
            .fetch_one(&mut *tx)
            .await
            .map_err(during("subscribe"))?;
        let is_new: bool = row.try_get(0).map_err(during("subscribe"))?;
        if is_new {
            self.open_lanes(&mut tx, &subscription.name, subscription.lanes, &start, 0).await?;
        }
        // A changed policy holds for what is open, too.
        if !same {
            self.lock_lanes(&mut tx, &subscription.name, "subscribe").await?;
            let policy = self.sql.text("policy", include_str!("../sql/policy.sql"));
            let policy = policy.query().bind(subscription.name.clone());
            policy.execute(&mut *tx).await.map_err(during("subscribe"))?;
        }
        tx.commit().await.map_err(during("subscribe"))?;
        if row.try_get::<bool, _>(1).map_err(during("subscribe"))? {
            self.ring().await?;
        }
        Ok(if is_new { Subscribed::New } else { Subscribed::Known })
    }

    /// Locks the lanes of a subscription. A settle that is under way is waited for: who changes open deliveries beside it would stand in
    /// its way. Always before the deliveries, so that of two who change them the second waits for the first, and not both for each other.
    pub(crate) async fn lock_lanes(
        &self,
        connection: &mut PgConnection,
        subscription: &str,
        op: &'static str,
    ) -> Result<()> {
        let lanes = self.sql.text("lanes", LANES).query().bind(subscription.to_owned());
        lanes.fetch_all(connection).await.map_err(during(op))?;
        Ok(())
    }

    /// A position at which everything visible now (or recorded before a time) counts as read. The connection is in a
    /// transaction in which this is the first statement.
    pub(crate) async fn stand(
        &self,
        connection: &mut PgConnection,
        subscription: &str,
        since: Option<time::OffsetDateTime>,
    ) -> Result<LogPosition> {
        let query = self.sql.stand.query().bind(subscription.to_owned()).bind(since);
        let row = query.fetch_one(connection).await.map_err(during("subscribe"))?;
        Ok(LogPosition {
            system: row::int64(&row, 3)?,
            frontier: row::int64(&row, 1)?,
            snapshot: Snapshot::parse(row::text(&row, 0)?).ok_or_else(|| row::malformed(0))?,
            bound: row::text(&row, 2)?.parse().map_err(|_| row::malformed(2))?,
            part: None,
        })
    }

    /// Makes the lanes of a subscription, all at one position, each with the row that its history begins with.
    pub(crate) async fn open_lanes(
        &self,
        connection: &mut PgConnection,
        subscription: &str,
        lanes: u32,
        at: &LogPosition,
        epoch: i64,
    ) -> Result<()> {
        self.sql
            .text("open_lanes", include_str!("../sql/open_lanes.sql"))
            .query()
            .bind(subscription.to_owned())
            .bind(lanes.cast_signed())
            .bind(postrider_core::Position::from(at).as_str().to_owned())
            .bind(at.frontier)
            .bind(at.snapshot.to_string())
            .bind(at.system)
            .bind(epoch)
            .bind(self.clock.now())
            .execute(connection)
            .await
            .map_err(during("subscribe"))?;
        Ok(())
    }
}
