//! Changing the number of lanes: fence, drain to one common position, share out anew.

use postrider_core::{Relane, Result, Subscription};
use postrider_sql::statement;
use postrider_sql::subscription::{Generation, LaneChange};
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::sql::Sql;
use crate::store::SqliteStore;
use crate::subscribe::make_lanes;

/// Begins a change of lanes, or takes its next step.
pub(crate) async fn relane(store: &SqliteStore, subscription: &str, lanes: u32) -> Result<Relane> {
    const OP: &str = "relane";
    Subscription::check_lanes(lanes, OP)?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let want = store.sql.query(statement!("relane_want.sql")).bind(subscription).bind(lanes);
    want.execute(&mut tx, OP).await?;
    let progress = step(store.sql, &mut tx, subscription, now, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(progress)
}

/// Takes as many steps as can be taken now, in the caller's transaction.
pub(crate) async fn step(
    sql: Sql,
    conn: &mut SqliteConnection,
    subscription: &str,
    now: i64,
    op: &'static str,
) -> Result<Relane> {
    let mut change = look(sql, conn, subscription, now, op).await?;
    let Some(lanes) = change.lanes_next else { return Ok(Relane::Done) };
    if change.target.is_none() {
        if change.leased > 0 {
            return Ok(Relane::Recalling);
        }
        sql.run(conn, statement!("relane_fence.sql"), subscription, op).await?;
        sql.run(conn, statement!("relane_target.sql"), subscription, op).await?;
        change = look(sql, conn, subscription, now, op).await?;
    }
    let Some(target) = change.arrived() else { return Ok(Relane::Draining) };
    sql.run(conn, statement!("relane_clear.sql"), subscription, op).await?;
    // A lease of the old lanes must not fit one of the new: the epochs go on above all of theirs.
    let fresh = Generation { lanes, position: target, epoch: change.epoch + 1 };
    make_lanes(sql, conn, subscription, fresh, now, op).await?;
    let place = sql.query(statement!("relane_place.sql")).bind(subscription).bind(lanes);
    place.execute(conn, op).await?;
    sql.run(conn, statement!("relane_done.sql"), subscription, op).await?;
    tracing::info!(subscription, lanes, position = target, "lanes changed");
    Ok(Relane::Done)
}

async fn look(
    sql: Sql,
    conn: &mut SqliteConnection,
    subscription: &str,
    now: i64,
    op: &'static str,
) -> Result<LaneChange> {
    let look = sql.query(statement!("relane_look.sql")).bind(subscription).bind(now);
    let row = look.fetch_optional(conn, op).await?;
    LaneChange::of(&row.ok_or_else(|| Subscription::unknown(subscription, op))?, op)
}
