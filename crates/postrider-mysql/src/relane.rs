//! Changing the number of lanes: fence, drain to one common position, share out anew.

use postrider_core::{Error, ErrorKind, Relane, Result, Subscription};
use sqlx_mysql::MySqlConnection;

use crate::error::failed;
use crate::row::{maybe_number, number};
use crate::sql::{Sql, Statement, statement};
use crate::store::MySqlStore;
use crate::subscribe::{Generation, lock, make_lanes, unknown};

/// Begins a change of lanes, or takes its next step.
pub(crate) async fn relane(store: &MySqlStore, subscription: &str, lanes: u32) -> Result<Relane> {
    const OP: &str = "relane";
    if lanes == 0 || lanes > Subscription::MOST_LANES {
        let message = format!("{lanes} lanes were asked for; 1 to {} are possible", Subscription::MOST_LANES);
        return Err(Error::new(ErrorKind::Invalid, OP, message));
    }
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
        return Err(unknown(subscription, op));
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
    let rows = sql.query(statement!("relane_lanes.sql")).bind(subscription).fetch_all(&mut *conn, op).await?;
    let now = store.now(&mut *conn, op).await?;
    let mut look = Look::at(sql, conn, subscription, now, op).await?;
    let Some(lanes) = look.lanes_next else { return Ok(Relane::Done) };
    if look.target.is_none() {
        if look.leased > 0 {
            return Ok(Relane::Recalling);
        }
        run(sql, conn, statement!("relane_fence.sql"), subscription, op).await?;
        run(sql, conn, statement!("relane_target.sql"), subscription, op).await?;
        look = Look::at(sql, conn, subscription, now, op).await?;
    }
    let Some(target) = look.target.filter(|_| look.leased == 0 && look.behind == 0) else {
        return Ok(Relane::Draining);
    };
    // A handler of a holder that is gone may still have its transaction open.
    let doors =
        sql.query(statement!("relane_doors.sql")).bind(subscription).fetch_all(&mut *conn, op).await?;
    if doors.len() < rows.len() {
        return Ok(Relane::Draining);
    }
    run(sql, conn, statement!("relane_clear.sql"), subscription, op).await?;
    run(sql, conn, statement!("relane_clear_doors.sql"), subscription, op).await?;
    // A lease of the old lanes must not fit one of the new: the epochs go on above all of theirs.
    let fresh = Generation { lanes, position: target, epoch: look.epoch + 1 };
    make_lanes(sql, conn, subscription, fresh, now, op).await?;
    let place = sql.query(statement!("relane_place.sql")).bind(subscription).bind(lanes);
    place.execute(&mut *conn, op).await?;
    run(sql, conn, statement!("relane_done.sql"), subscription, op).await?;
    tracing::info!(subscription, lanes, position = target, "lanes changed");
    Ok(Relane::Done)
}

async fn run(
    sql: Sql,
    conn: &mut MySqlConnection,
    statement: Statement,
    subscription: &str,
    op: &'static str,
) -> Result<()> {
    sql.query(statement).bind(subscription).execute(conn, op).await?;
    Ok(())
}

/// How far a change is.
struct Look {
    lanes_next: Option<i64>,
    target: Option<i64>,
    leased: i64,
    behind: i64,
    epoch: i64,
}

impl Look {
    async fn at(
        sql: Sql,
        conn: &mut MySqlConnection,
        subscription: &str,
        now: i64,
        op: &'static str,
    ) -> Result<Self> {
        let look = sql.query(statement!("relane_look.sql")).bind(subscription).bind(now);
        let row = look.fetch_optional(conn, op).await?.ok_or_else(|| unknown(subscription, op))?;
        Ok(Self {
            lanes_next: maybe_number(&row, "lanes_next", op)?,
            target: maybe_number(&row, "target", op)?,
            leased: number(&row, "leased", op)?,
            behind: number(&row, "behind", op)?,
            epoch: number(&row, "epoch", op)?,
        })
    }
}
