//! Changing the number of lanes: recall the holders, read all lanes up to one common position, share the
//! keys out anew. From the lowest of several positions events would repeat, from the highest they would be
//! lost.

use postrider_core::{Position, Relane, Result, Subscription};
use sqlx_core::row::Row;

use crate::error::during;
use crate::position::LogPosition;
use crate::store::PgStore;

const CHANGE: &str = "update {schema}.subscription s \
     set lanes_next = case when s.lanes_next is not null or s.lanes <> $2 then $2 end \
     where name = $1 returning lanes_next is not null";
const LOOK: &str = "select lanes_next is not null, lanes > 1 from {schema}.subscription where name = $1";
const LOCK: &str = "select lanes_next, target from {schema}.subscription where name = $1 for no key update";
const LANES: &str = "select position, lease_epoch, \
     lease_owner is not null and lease_until > coalesce($2::timestamptz, clock_timestamp()) \
         and lease_until <= coalesce($2::timestamptz, clock_timestamp()) + lease_for + interval '1 second' as leased \
     from {schema}.lane where subscription = $1 order by lane for no key update";
const FENCE: &str = "update {schema}.lane set lease_epoch = lease_epoch + 1, lease_owner = null, lease_until = null \
     where subscription = $1";
const AIM: &str = "update {schema}.subscription set target = $2 \
     where name = $1 and lanes_next is not null and target is null \
       and (select max(lease_epoch) from {schema}.lane where subscription = $1) = $3 \
       and not exists (select from {schema}.lane where subscription = $1 and lease_owner is not null)";
const CLOSE: &str = "delete from {schema}.lane where subscription = $1";
const PLACE: &str = "update {schema}.delivery set lane = lane_hash % $2::integer \
     where subscription = $1 and (holds or state in ('waiting', 'running', 'retrying', 'dead')) \
       and lane is distinct from lane_hash % $2::integer";
const FINISH: &str = "update {schema}.subscription set lanes = lanes_next, lanes_next = null, target = null \
     where name = $1";

/// What the lanes of a subscription are like.
pub(crate) enum Lanes {
    Changing,
    One,
    Several,
}

impl PgStore {
    pub(crate) async fn change_lanes(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        Subscription::new(subscription).lanes(lanes).check()?;
        let query =
            self.sql.text("relane", CHANGE).query().bind(subscription.to_owned()).bind(lanes.cast_signed());
        let Some(row) = query.fetch_optional(&self.pool).await.map_err(during("relane"))? else {
            return Err(Subscription::unknown(subscription, "relane"));
        };
        if !row.try_get::<bool, _>(0).map_err(during("relane"))? {
            return Ok(Relane::Done);
        }
        self.ring().await?;
        self.step_lanes(subscription).await
    }

    pub(crate) async fn look_at_lanes(&self, subscription: &str) -> Result<Lanes> {
        let look = self.sql.text("relane", LOOK).query().bind(subscription.to_owned());
        let Some(row) = look.fetch_optional(&self.pool).await.map_err(during("claim"))? else {
            return Err(Subscription::unknown(subscription, "claim"));
        };
        let flag = |column: usize| row.try_get::<bool, _>(column).map_err(during("claim"));
        Ok(match (flag(0)?, flag(1)?) {
            (true, _) => Lanes::Changing,
            (false, true) => Lanes::Several,
            (false, false) => Lanes::One,
        })
    }

    /// Takes the next step of a change of lanes, if one is under way and its time has come.
    pub(crate) async fn step_lanes(&self, subscription: &str) -> Result<Relane> {
        let text = |sql: &str| self.sql.text("relane", sql);
        let mut tx = self.pool.begin().await.map_err(during("relane"))?;
        let name = subscription.to_owned();
        let row =
            text(LOCK).query().bind(name.clone()).fetch_one(&mut *tx).await.map_err(during("relane"))?;
        let wanted: Option<i32> = row.try_get(0).map_err(during("relane"))?;
        let target: Option<String> = row.try_get(1).map_err(during("relane"))?;
        let Some(wanted) = wanted.and_then(|lanes| u32::try_from(lanes).ok()) else {
            return Ok(Relane::Done);
        };
        let query = text(LANES).query().bind(name.clone()).bind(self.clock.now());
        let lanes = query.fetch_all(&mut *tx).await.map_err(during("relane"))?;
        let mut leased = false;
        let mut epoch = 0;
        let mut all_there = true;
        for lane in &lanes {
            leased |= lane.try_get::<bool, _>(2).map_err(during("relane"))?;
            epoch = epoch.max(lane.try_get::<i64, _>(1).map_err(during("relane"))?);
            all_there &= Some(lane.try_get::<String, _>(0).map_err(during("relane"))?) == target;
        }
        let Some(target) = target else {
            if leased {
                return Ok(Relane::Recalling);
            }
            // Nobody holds a lane and nobody can claim one: after this, positions stand still.
            text(FENCE).query().bind(name.clone()).execute(&mut *tx).await.map_err(during("relane"))?;
            tx.commit().await.map_err(during("relane"))?;
            self.aim(subscription, epoch + 1).await?;
            return Ok(Relane::Draining);
        };
        if leased || !all_there {
            return Ok(Relane::Draining);
        }
        text(CLOSE).query().bind(name.clone()).execute(&mut *tx).await.map_err(during("relane"))?;
        let at = LogPosition::parse(&Position::new(target))?;
        self.open_lanes(&mut tx, subscription, wanted, &at, epoch + 1).await?;
        // By now nobody settles: what is open goes where its key is from now on.
        let place = text(PLACE).query().bind(name.clone()).bind(wanted.cast_signed());
        place.execute(&mut *tx).await.map_err(during("relane"))?;
        text(FINISH).query().bind(name).execute(&mut *tx).await.map_err(during("relane"))?;
        tx.commit().await.map_err(during("relane"))?;
        Ok(Relane::Done)
    }

    /// Takes the common position, in a transaction of its own: the one that fenced the lanes has an xid already. The fence must
    /// be there (the highest epoch tells): after a failover in between, a lane may still be held and move on.
    async fn aim(&self, subscription: &str, fenced: i64) -> Result<()> {
        let mut tx = self.pool.begin().await.map_err(during("relane"))?;
        let target = Position::from(&self.stand(&mut tx, subscription, None).await?);
        let query = self.sql.text("relane", AIM).query().bind(subscription.to_owned());
        let query = query.bind(target.as_str().to_owned()).bind(fenced);
        query.execute(&mut *tx).await.map_err(during("relane"))?;
        tx.commit().await.map_err(during("relane"))
    }
}
