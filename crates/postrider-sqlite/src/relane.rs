//! Changing the number of lanes: fence, drain to one common position, share out anew.

use postrider_core::{Error, ErrorKind, Relane, Result, Subscription};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::sql::{Sql, Statement, statement};
use crate::store::SqliteStore;
use crate::subscribe::{Generation, make_lanes, unknown};

/// Begins a change of lanes, or takes its next step.
pub(crate) async fn relane(store: &SqliteStore, subscription: &str, lanes: u32) -> Result<Relane> {
    const OP: &str = "relane";
    if lanes == 0 || lanes > Subscription::MOST_LANES {
        let message = format!("lanes must be between 1 and {}, not {lanes}", Subscription::MOST_LANES);
        return Err(Error::new(ErrorKind::Invalid, OP, message));
    }
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let want = store.sql.query(statement!("relane_want.sql")).bind(subscription).bind(i64::from(lanes));
    want.execute(&mut *tx).await.map_err(failed(OP))?;
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
    run(sql, conn, statement!("relane_clear.sql"), subscription, op).await?;
    // A lease of the old lanes must not fit one of the new: the epochs go on above all of theirs.
    let fresh = Generation { lanes, position: target, epoch: look.epoch + 1 };
    make_lanes(sql, conn, subscription, fresh, now, op).await?;
    let place = sql.query(statement!("relane_place.sql")).bind(subscription).bind(lanes);
    place.execute(&mut *conn).await.map_err(failed(op))?;
    run(sql, conn, statement!("relane_done.sql"), subscription, op).await?;
    tracing::info!(subscription, lanes, position = target, "lanes changed");
    Ok(Relane::Done)
}

async fn run(
    sql: Sql,
    conn: &mut SqliteConnection,
    statement: Statement,
    subscription: &str,
    op: &'static str,
) -> Result<()> {
    sql.query(statement).bind(subscription).execute(conn).await.map_err(failed(op))?;
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
        conn: &mut SqliteConnection,
        subscription: &str,
        now: i64,
        op: &'static str,
    ) -> Result<Self> {
        let look = sql.query(statement!("relane_look.sql")).bind(subscription).bind(now);
        let row =
            look.fetch_optional(conn).await.map_err(failed(op))?.ok_or_else(|| unknown(subscription, op))?;
        Ok(Self {
            lanes_next: row.try_get("lanes_next").map_err(failed(op))?,
            target: row.try_get("target").map_err(failed(op))?,
            leased: row.try_get("leased").map_err(failed(op))?,
            behind: row.try_get("behind").map_err(failed(op))?,
            epoch: row.try_get("epoch").map_err(failed(op))?,
        })
    }
}
