//! Lanes and their leases: claim, extend, release.

use std::time::Duration;

use postrider_core::{Lease, LeaseStatus, Position, Result, Subscription};
use postrider_sql::clock::{given, micros_of};
use postrider_sql::position::number_of;
use postrider_sql::subscription::lease as lease_of;
use postrider_sql::{Columns, statement};
use sqlx_mysql::MySqlRow;

use crate::relane;
use crate::sql::call;
use crate::store::MySqlStore;
use crate::subscribe::found;

/// Claims one free lane, after taking the next step of a change of lanes that may be under way. Who finds none while another
/// holds too many says so.
pub(crate) async fn claim(
    store: &MySqlStore,
    subscription: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<Lease>> {
    const OP: &str = "claim";
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("claimable.sql")).bind(subscription).bind(given(&store.clock));
    let look = look.bind(owner).fetch_optional(&mut conn, OP).await?;
    let look = look.ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let (relaning, free) = (look.flag("relaning", OP)?, look.flag("free", OP)?);
    if look.flag("hungry", OP)? {
        let now = store.now(&mut conn, OP).await?;
        let want = store.sql.query(statement!("want.sql")).bind(subscription);
        want.bind(look.number("own", OP)?).bind(now).execute(&mut conn, OP).await?;
    }
    drop(conn);
    if relaning {
        relane::take_steps(store, subscription, OP).await?;
    } else if !free {
        return Ok(None);
    }
    let Some((claimed, wanted)) = claim_free(store, subscription, owner, lease).await? else {
        return Ok(None);
    };
    if wanted {
        let mut conn = store.conn(OP).await?;
        store.sql.query(statement!("heard.sql")).bind(subscription).execute(&mut conn, OP).await?;
    }
    Ok(Some(claimed))
}

/// Claims the lane that was free longest, and says whether somebody had wanted one. The subscription stays as it is meanwhile:
/// a claim must not slip past the fence of a change of lanes.
async fn claim_free(
    store: &MySqlStore,
    subscription: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<(Lease, bool)>> {
    const OP: &str = "claim";
    let mut tx = store.write(OP).await?;
    let held = store.sql.query(statement!("claim_subscription.sql")).bind(subscription);
    held.fetch_optional(&mut tx, OP).await?.ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let now = store.now(&mut tx, OP).await?;
    let lanes = store.sql.query(statement!("claim_free.sql")).bind(subscription).bind(owner).bind(now);
    for lane in &lanes.fetch_all(&mut tx, OP).await? {
        let lane = lane.number("lane", OP)?;
        let door = store.sql.query(statement!("claim_door.sql")).bind(subscription).bind(lane);
        if door.fetch_optional(&mut tx, OP).await?.is_none() {
            continue;
        }
        let locked = store.sql.query(statement!("claim_lane.sql")).bind(subscription).bind(lane);
        locked.fetch_optional(&mut tx, OP).await?;
        let now = store.now(&mut tx, OP).await?;
        let claim = store.sql.query(statement!("claim.sql")).bind(subscription).bind(lane).bind(owner);
        if claim.bind(micros_of(lease)).bind(now).execute(&mut tx, OP).await? == 0 {
            continue;
        }
        let claimed = store.sql.query(statement!("claim_lane.sql")).bind(subscription).bind(lane);
        let claimed = claimed.fetch_one(&mut tx, OP).await?;
        let reader = found(store.sql, &mut tx, subscription, OP)
            .await?
            .ok_or_else(|| Subscription::unknown(subscription, OP))?;
        let lease = lease_of(subscription, owner, &claimed, &reader, OP)?;
        tx.commit().await.map_err(crate::error::failed(OP))?;
        return Ok(Some((lease, reader.maybe_number("wanted_until", OP)?.is_some())));
    }
    Ok(None)
}

/// Prolongs a lease.
pub(crate) async fn extend(
    store: &MySqlStore,
    lease: &mut Lease,
    by: Duration,
    reading: Option<&Position>,
) -> Result<LeaseStatus> {
    const OP: &str = "extend";
    let reading = reading.map_or(Ok(0), |reading| number_of(reading, OP))?;
    let extend = store.sql.query(statement!("extend.sql")).bind(&lease.subscription).bind(lease.lane);
    let extend =
        extend.bind(lease.epoch).bind(&lease.owner).bind(number_of(&lease.position, OP)?).bind(reading);
    let extend = extend.bind(micros_of(by)).bind(given(&store.clock)).bind(lease.away_to_keep());
    let mut conn = store.conn(OP).await?;
    let extended = call(extend, &mut conn, OP).await?;
    let status = lease_status(&extended, OP)?;
    if status != LeaseStatus::Lost {
        lease.until = extended.time("until", OP)?;
        lease.open = extended.flag("open", OP)?;
    }
    Ok(status)
}

/// How a holder stands with its lane, as a settle or an extension says it.
pub(crate) fn lease_status(row: &MySqlRow, op: &'static str) -> Result<LeaseStatus> {
    if !row.flag("held", op)? {
        return Ok(LeaseStatus::Lost);
    }
    Ok(if row.flag("recalled", op)? { LeaseStatus::Recalled } else { LeaseStatus::Held })
}

/// Gives a lane back.
pub(crate) async fn release(store: &MySqlStore, lease: &Lease) -> Result<()> {
    const OP: &str = "release";
    let release = store.sql.query(statement!("release.sql")).bind(&lease.subscription).bind(lease.lane);
    let mut conn = store.conn(OP).await?;
    release.bind(lease.epoch).bind(&lease.owner).bind(given(&store.clock)).execute(&mut conn, OP).await?;
    Ok(())
}
