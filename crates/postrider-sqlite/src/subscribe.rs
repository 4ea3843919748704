//! Subscriptions and the lanes that they begin with.

use postrider_core::{Result, Subscribed, Subscription};
use postrider_sql::subscription::{Generation, patterns_to_json, start};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::sql::Sql;
use crate::store::SqliteStore;

const OP: &str = "subscribe";

/// Creates a subscription, or gives it its new filter, policies and number of lanes.
pub(crate) async fn subscribe(store: &SqliteStore, wanted: &Subscription) -> Result<Subscribed> {
    wanted.check()?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let subscribed = match found(store.sql, &mut tx, &wanted.name, OP).await? {
        None => {
            create(store.sql, &mut tx, wanted, now).await?;
            Subscribed::New
        }
        Some(row) => {
            change(store.sql, &mut tx, wanted, &row).await?;
            Subscribed::Known
        }
    };
    tx.commit().await.map_err(failed(OP))?;
    Ok(subscribed)
}

async fn create(sql: Sql, conn: &mut SqliteConnection, wanted: &Subscription, now: i64) -> Result<()> {
    let (start, since) = start(wanted.start);
    let created = sql.query(statement!("subscribe.sql")).bind(&wanted.name);
    let created = created.bind(patterns_to_json(&wanted.filter.streams));
    let created = created.bind(patterns_to_json(&wanted.filter.types));
    let created = created.bind(wanted.order.as_str()).bind(wanted.on_dead.as_str()).bind(wanted.lanes);
    let created = created.bind(start).bind(since).bind(now).bind(wanted.replay);
    let position = created.fetch_one(conn, OP).await?.number("start_frontier", OP)?;
    let fresh = Generation { lanes: i64::from(wanted.lanes), position, epoch: 0 };
    make_lanes(sql, conn, &wanted.name, fresh, now, OP).await
}

/// Gives a subscription its new filter and policies.
async fn change(sql: Sql, conn: &mut SqliteConnection, wanted: &Subscription, row: &SqliteRow) -> Result<()> {
    let (order, on_dead) = (wanted.order.as_str(), wanted.on_dead.as_str());
    let again = sql.query(statement!("subscribe_again.sql")).bind(&wanted.name);
    let again = again.bind(patterns_to_json(&wanted.filter.streams));
    let again = again.bind(patterns_to_json(&wanted.filter.types));
    again.bind(order).bind(on_dead).bind(wanted.replay).execute(conn, OP).await?;
    if (&*row.text("order_policy", OP)?, &*row.text("on_dead", OP)?) != (order, on_dead) {
        let holds = sql.query(statement!("subscribe_holds.sql")).bind(&wanted.name);
        holds.bind(order).bind(on_dead).execute(conn, OP).await?;
    }
    let lanes = sql.query(statement!("relane_want.sql")).bind(&wanted.name).bind(wanted.lanes);
    lanes.execute(conn, OP).await?;
    Ok(())
}

/// Makes the lanes of a subscription, and the settled batches that they begin with.
pub(crate) async fn make_lanes(
    sql: Sql,
    conn: &mut SqliteConnection,
    subscription: &str,
    fresh: Generation,
    now: i64,
    op: &'static str,
) -> Result<()> {
    let lanes = sql.query(statement!("lanes.sql")).bind(subscription).bind(fresh.lanes).bind(fresh.position);
    lanes.bind(fresh.epoch).execute(conn, op).await?;
    let base = sql.query(statement!("lanes_base.sql")).bind(subscription).bind(fresh.lanes);
    base.bind(fresh.position).bind(now).execute(conn, op).await?;
    Ok(())
}

/// The row of a subscription, if there is one.
pub(crate) async fn found(
    sql: Sql,
    conn: &mut SqliteConnection,
    subscription: &str,
    op: &'static str,
) -> Result<Option<SqliteRow>> {
    sql.query(statement!("subscription.sql")).bind(subscription).fetch_optional(conn, op).await
}
