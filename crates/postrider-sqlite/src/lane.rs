//! Lanes and their leases: claim, extend, release.

use std::time::Duration;

use postrider_core::{Filter, Lease, LeaseStatus, Order, Position, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::{given, micros_of, time_of};
use crate::error::failed;
use crate::position::{id_of, position};
use crate::relane;
use crate::sql::{Sql, statement};
use crate::store::SqliteStore;
use crate::subscribe::{found, patterns_from_json, unknown};

/// Claims one free lane, after taking the next step of a change of lanes that may be under way. Who finds none while another
/// holds too many says so.
pub(crate) async fn claim(
    store: &SqliteStore,
    subscription: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<Lease>> {
    const OP: &str = "claim";
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("claimable.sql")).bind(subscription).bind(given(&store.clock));
    let look = look.bind(owner).fetch_optional(&mut *conn).await.map_err(failed(OP))?;
    drop(conn);
    let look = look.ok_or_else(|| unknown(subscription, OP))?;
    let relaning: bool = look.try_get("relaning").map_err(failed(OP))?;
    let free: bool = look.try_get("free").map_err(failed(OP))?;
    let hungry: bool = look.try_get("hungry").map_err(failed(OP))?;
    if hungry {
        let own: i64 = look.try_get("own").map_err(failed(OP))?;
        let mut tx = store.write(OP).await?;
        let now = store.now(&mut tx, OP).await?;
        let want = store.sql.query(statement!("want.sql")).bind(subscription).bind(own).bind(now);
        want.execute(&mut *tx).await.map_err(failed(OP))?;
        tx.commit().await.map_err(failed(OP))?;
    }
    if !free && !relaning {
        return Ok(None);
    }
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    relane::step(store.sql, &mut tx, subscription, now, OP).await?;
    let claim = store
        .sql
        .query(statement!("claim.sql"))
        .bind(subscription)
        .bind(owner)
        .bind(micros_of(lease))
        .bind(now);
    let claimed = claim.fetch_optional(&mut *tx).await.map_err(failed(OP))?;
    let reader =
        found(store.sql, &mut tx, subscription, OP).await?.ok_or_else(|| unknown(subscription, OP))?;
    let wanted: Option<i64> = reader.try_get("wanted_until").map_err(failed(OP))?;
    if claimed.is_some() && wanted.is_some() {
        let heard = store.sql.query(statement!("heard.sql")).bind(subscription);
        heard.execute(&mut *tx).await.map_err(failed(OP))?;
    }
    tx.commit().await.map_err(failed(OP))?;
    claimed.map(|lane| lease_of(subscription, owner, &lane, &reader)).transpose()
}

fn lease_of(subscription: &str, owner: &str, lane: &SqliteRow, reader: &SqliteRow) -> Result<Lease> {
    const OP: &str = "claim";
    let number = |row: &SqliteRow, column: &str| row.try_get::<i64, _>(column).map_err(failed(OP));
    let small = |row: &SqliteRow, column: &str| {
        number(row, column).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
    };
    let words = |column: &str| reader.try_get::<String, _>(column).map_err(failed(OP));
    let since: Option<i64> = reader.try_get("since").map_err(failed(OP))?;
    let target: Option<i64> = reader.try_get("target").map_err(failed(OP))?;
    Ok(Lease {
        subscription: subscription.to_owned(),
        lane: small(lane, "lane")?,
        lanes: small(reader, "lanes")?,
        owner: owner.to_owned(),
        epoch: number(lane, "lease_epoch")?,
        until: time_of(number(lane, "lease_until")?),
        position: position(number(lane, "position")?),
        claims: small(lane, "claims_since_settle")?,
        open: reader.try_get("open").map_err(failed(OP))?,
        filter: Filter {
            streams: patterns_from_json(&words("streams")?)?,
            types: patterns_from_json(&words("types")?)?,
        },
        since: since.map(time_of),
        order: words("order_policy")?.parse::<Order>()?,
        target: target.map(position),
        bytes: postrider_core::BATCH_BYTES,
        row_location: String::new(),
        away: None,
    })
}

/// Prolongs a lease.
pub(crate) async fn extend(
    store: &SqliteStore,
    lease: &mut Lease,
    by: Duration,
    reading: Option<&Position>,
) -> Result<LeaseStatus> {
    const OP: &str = "extend";
    let reading = reading.map_or(Ok(0), |reading| id_of(reading, OP))?;
    let position = id_of(&lease.position, OP)?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let extend =
        store.sql.query(statement!("extend.sql")).bind(&lease.subscription).bind(i64::from(lease.lane));
    let extend = extend
        .bind(lease.epoch)
        .bind(&lease.owner)
        .bind(micros_of(by))
        .bind(now)
        .bind(reading)
        .bind(position)
        .bind(lease.away_to_keep());
    let Some(row) = extend.fetch_optional(&mut *tx).await.map_err(failed(OP))? else {
        return Ok(LeaseStatus::Lost);
    };
    let until: i64 = row.try_get("lease_until").map_err(failed(OP))?;
    let (standing, open) = standing(store.sql, &mut tx, lease, position, now, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    lease.until = time_of(until);
    lease.open = open;
    Ok(standing)
}

/// How the holder of a lane stands that is at `position`, and whether the subscription has open deliveries.
pub(crate) async fn standing(
    sql: Sql,
    conn: &mut SqliteConnection,
    lease: &Lease,
    position: i64,
    now: i64,
    op: &'static str,
) -> Result<(LeaseStatus, bool)> {
    let look = sql.query(statement!("standing.sql")).bind(&lease.subscription).bind(position);
    let look = look.bind(&lease.owner).bind(i64::from(lease.lane)).bind(now);
    let Some(row) = look.fetch_optional(conn).await.map_err(failed(op))? else {
        return Ok((LeaseStatus::Recalled, false));
    };
    let recalled: bool = row.try_get("recalled").map_err(failed(op))?;
    let open: bool = row.try_get("open").map_err(failed(op))?;
    Ok((if recalled { LeaseStatus::Recalled } else { LeaseStatus::Held }, open))
}

/// Gives a lane back.
pub(crate) async fn release(store: &SqliteStore, lease: Lease) -> Result<()> {
    const OP: &str = "release";
    let release =
        store.sql.query(statement!("release.sql")).bind(&lease.subscription).bind(i64::from(lease.lane));
    let mut tx = store.write(OP).await?;
    release
        .bind(lease.epoch)
        .bind(&lease.owner)
        .bind(given(&store.clock))
        .execute(&mut *tx)
        .await
        .map_err(failed(OP))?;
    tx.commit().await.map_err(failed(OP))
}
