//! Changing the number of lanes: fence, drain to one common position, share out anew.

use std::ops::ControlFlow;

use postrider_core::{Relane, Result, Subscription};
use postrider_sql::operate::ChangeStatements;
use postrider_sql::statement;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::store::MySqlStore;
use crate::subscribe::{lock, make_lanes};

const CHANGE: ChangeStatements = ChangeStatements {
    look: statement!("relane_look.sql"),
    fence: statement!("relane_fence.sql"),
    target: statement!("relane_target.sql"),
};

/// Begins a change of lanes, or takes its next step.
pub(crate) async fn relane(store: &MySqlStore, subscription: &str, lanes: u32) -> Result<Relane> {
    const OP: &str = "relane";
    Subscription::check_lanes(lanes, OP)?;
    let mut conn = store.conn(OP).await?;
    let want = store.sql.query(statement!("relane_want.sql")).bind(subscription).bind(lanes);
    let wanted = want.execute(&mut conn, OP).await? > 0;
    drop(conn);
    let progress = take_steps(store, subscription, OP).await?;
    if wanted {
        store.ring(OP).await?;
    }
    Ok(progress)
}

/// Takes as many steps as can be taken now.
pub(crate) async fn take_steps(store: &MySqlStore, subscription: &str, op: &'static str) -> Result<Relane> {
    // The common position is the last number, so all that is committed gets its own first.
    let mut conn = store.conn(op).await?;
    store.catch_up(&mut conn, op).await?;
    drop(conn);
    let mut tx = store.write(op).await?;
    if !lock(store.sql, &mut tx, subscription, op).await? {
        return Err(Subscription::unknown(subscription, op));
    }
    let progress = step(store, &mut tx, subscription, op).await?;
    tx.commit().await.map_err(failed(op))?;
    Ok(progress)
}

/// The subscription is locked, so no claim is under way; its lanes are, too, so no settle is.
async fn step(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    subscription: &str,
    op: &'static str,
) -> Result<Relane> {
    let sql = store.sql;
    let rows = sql.query(statement!("relane_lanes.sql")).bind(subscription).fetch_all(conn, op).await?;
    let now = store.now(conn, op).await?;
    let fresh = match sql.advance_change(CHANGE, conn, subscription, now, op).await? {
        ControlFlow::Continue(fresh) => fresh,
        ControlFlow::Break(progress) => return Ok(progress),
    };
    // A handler of a holder that is gone may still have its transaction open.
    let doors = sql.query(statement!("relane_doors.sql")).bind(subscription).fetch_all(conn, op).await?;
    if doors.len() < rows.len() {
        return Ok(Relane::Draining);
    }
    sql.run(conn, statement!("relane_clear.sql"), subscription, op).await?;
    sql.run(conn, statement!("relane_clear_doors.sql"), subscription, op).await?;
    make_lanes(sql, conn, subscription, fresh, now, op).await?;
    let place = sql.query(statement!("relane_place.sql")).bind(subscription).bind(fresh.lanes);
    place.execute(conn, op).await?;
    sql.run(conn, statement!("relane_done.sql"), subscription, op).await?;
    tracing::info!(subscription, lanes = fresh.lanes, position = fresh.position, "lanes changed");
    Ok(Relane::Done)
}
