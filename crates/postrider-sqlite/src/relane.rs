//! Changing the number of lanes: fence, drain to one common position, share out anew.

use std::ops::ControlFlow;

use postrider_core::{Relane, Result, Subscription};
use postrider_sql::operate::ChangeStatements;
use postrider_sql::statement;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::sql::Sql;
use crate::store::SqliteStore;
use crate::subscribe::make_lanes;

const CHANGE: ChangeStatements = ChangeStatements {
    look: statement!("relane_look.sql"),
    fence: statement!("relane_fence.sql"),
    target: statement!("relane_target.sql"),
};

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
    let fresh = match sql.advance_change(CHANGE, conn, subscription, now, op).await? {
        ControlFlow::Continue(fresh) => fresh,
        ControlFlow::Break(progress) => return Ok(progress),
    };
    sql.run(conn, statement!("relane_clear.sql"), subscription, op).await?;
    make_lanes(sql, conn, subscription, fresh, now, op).await?;
    let place = sql.query(statement!("relane_place.sql")).bind(subscription).bind(fresh.lanes);
    place.execute(conn, op).await?;
    sql.run(conn, statement!("relane_done.sql"), subscription, op).await?;
    tracing::info!(subscription, lanes = fresh.lanes, position = fresh.position, "lanes changed");
    Ok(Relane::Done)
}
