//! Lanes and their leases: claim, extend, release.

use std::time::Duration;

use postrider_core::{Lease, LeaseStatus, Position, Result, Subscription};
use postrider_sql::clock::{given, micros_of};
use postrider_sql::position::number_of;
use postrider_sql::{Columns, statement, subscription};
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::relane;
use crate::sql::Sql;
use crate::store::SqliteStore;
use crate::subscribe::found;

/// Claims one free lane, after taking the next step of a change of lanes that may be under way. A relay that finds none
/// while another holds too many leaves a wish.
pub(crate) async fn claim(
    store: &SqliteStore,
    name: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<Lease>> {
    const OP: &str = "claim";
    let mut conn = store.conn(OP).await?;
    let look = store.sql.query(statement!("claimable.sql")).bind(name).bind(given(&store.clock));
    let look = look.bind(owner).fetch_optional(&mut conn, OP).await?;
    drop(conn);
    let look = look.ok_or_else(|| Subscription::unknown(name, OP))?;
    if look.flag("hungry", OP)? {
        let mut tx = store.write(OP).await?;
        let now = store.now(&mut tx, OP).await?;
        let want = store.sql.query(statement!("want.sql")).bind(name).bind(look.number("own", OP)?);
        want.bind(now).execute(&mut tx, OP).await?;
        tx.commit().await.map_err(failed(OP))?;
    }
    if !look.flag("free", OP)? && !look.flag("relaning", OP)? {
        return Ok(None);
    }
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    relane::step(store.sql, &mut tx, name, now, OP).await?;
    let claim = store.sql.query(statement!("claim.sql")).bind(name).bind(owner);
    let claimed = claim.bind(micros_of(lease)).bind(now).fetch_optional(&mut tx, OP).await?;
    let reader = found(store.sql, &mut tx, name, OP).await?;
    let reader = reader.ok_or_else(|| Subscription::unknown(name, OP))?;
    if claimed.is_some() && reader.maybe_number("wanted_until", OP)?.is_some() {
        store.sql.query(statement!("heard.sql")).bind(name).execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    claimed.map(|lane| subscription::lease(name, owner, &lane, &reader, OP)).transpose()
}

/// Prolongs a lease.
pub(crate) async fn extend(
    store: &SqliteStore,
    lease: &mut Lease,
    by: Duration,
    reading: Option<&Position>,
) -> Result<LeaseStatus> {
    const OP: &str = "extend";
    let reading = reading.map_or(Ok(0), |reading| number_of(reading, OP))?;
    let position = number_of(&lease.position, OP)?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let extend = store.sql.query(statement!("extend.sql")).bind(&lease.subscription).bind(lease.lane);
    let extend = extend.bind(lease.epoch).bind(&lease.owner).bind(micros_of(by)).bind(now);
    let extend = extend.bind(reading).bind(position).bind(lease.away_to_keep());
    let Some(row) = extend.fetch_optional(&mut tx, OP).await? else { return Ok(LeaseStatus::Lost) };
    let until = row.time("lease_until", OP)?;
    let (status, open) = lease_status(store.sql, &mut tx, lease, position, now, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    lease.until = until;
    lease.open = open;
    Ok(status)
}

/// How the holder of a lane stands that is at `position`, and whether the subscription has open deliveries.
pub(crate) async fn lease_status(
    sql: Sql,
    conn: &mut SqliteConnection,
    lease: &Lease,
    position: i64,
    now: i64,
    op: &'static str,
) -> Result<(LeaseStatus, bool)> {
    let look = sql.query(statement!("standing.sql")).bind(&lease.subscription).bind(position);
    let look = look.bind(&lease.owner).bind(lease.lane).bind(now);
    let Some(row) = look.fetch_optional(conn, op).await? else { return Ok((LeaseStatus::Recalled, false)) };
    let status = if row.flag("recalled", op)? { LeaseStatus::Recalled } else { LeaseStatus::Held };
    Ok((status, row.flag("open", op)?))
}

/// Gives a lane back.
pub(crate) async fn release(store: &SqliteStore, lease: &Lease) -> Result<()> {
    const OP: &str = "release";
    let release = store.sql.query(statement!("release.sql")).bind(&lease.subscription).bind(lease.lane);
    let mut tx = store.write(OP).await?;
    release.bind(lease.epoch).bind(&lease.owner).bind(given(&store.clock)).execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))
}
