//! Subscriptions and the lanes that they begin with.

use postrider_core::{ErrorKind, Pattern, Result, Subscribed, Subscription};
use postrider_sql::subscription::{Generation, patterns_to_json, start};
use postrider_sql::{Columns, statement};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::sql::Sql;
use crate::store::MySqlStore;

const OP: &str = "subscribe";

/// Creates a subscription, or gives it its new filter, policies and number of lanes.
pub(crate) async fn subscribe(store: &MySqlStore, wanted: &Subscription) -> Result<Subscribed> {
    wanted.check()?;
    if change(store, wanted).await? {
        return Ok(Subscribed::Known);
    }
    match create(store, wanted).await {
        // Somebody else created it at the same time: it only has to be as wanted.
        Err(error) if error.kind() == ErrorKind::Conflict && !crate::error::is_deadlock(&error) => {
            change(store, wanted).await.map(|_| Subscribed::Known)
        }
        created => created.map(|()| Subscribed::New),
    }
}

async fn create(store: &MySqlStore, wanted: &Subscription) -> Result<()> {
    let (start, since) = start(wanted.start);
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    drop(conn);
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let frontier = store.sql.query(statement!("subscribe_start.sql")).bind(start).bind(since);
    let frontier = frontier.fetch_one(&mut tx, OP).await?.number("start_frontier", OP)?;
    let created = store.sql.query(statement!("subscribe.sql")).bind(&wanted.name);
    let created =
        created.bind(patterns_to_json(&wanted.filter.streams)).bind(patterns_to_json(&wanted.filter.types));
    let created = created.bind(to_regexp(&wanted.filter.streams)).bind(to_regexp(&wanted.filter.types));
    let created = created.bind(wanted.order.as_str()).bind(wanted.on_dead.as_str()).bind(wanted.lanes);
    let created = created.bind(since).bind(frontier).bind(now).bind(wanted.replay);
    created.execute(&mut tx, OP).await?;
    let fresh = Generation { lanes: i64::from(wanted.lanes), position: frontier, epoch: 0 };
    make_lanes(store.sql, &mut tx, &wanted.name, fresh, now, OP).await?;
    tx.commit().await.map_err(failed(OP))
}

/// Gives a subscription its new filter and policies; whether there is one.
async fn change(store: &MySqlStore, wanted: &Subscription) -> Result<bool> {
    let (order, on_dead) = (wanted.order.as_str(), wanted.on_dead.as_str());
    let mut tx = store.write(OP).await?;
    lock(store.sql, &mut tx, &wanted.name, OP).await?;
    let Some(row) = found(store.sql, &mut tx, &wanted.name, OP).await? else { return Ok(false) };
    let again = store.sql.query(statement!("subscribe_again.sql")).bind(&wanted.name);
    let again =
        again.bind(patterns_to_json(&wanted.filter.streams)).bind(patterns_to_json(&wanted.filter.types));
    let again = again.bind(to_regexp(&wanted.filter.streams)).bind(to_regexp(&wanted.filter.types));
    again.bind(order).bind(on_dead).bind(wanted.replay).execute(&mut tx, OP).await?;
    if (&*row.text("order_policy", OP)?, &*row.text("on_dead", OP)?) != (order, on_dead) {
        store.sql.query(statement!("lanes_lock.sql")).bind(&wanted.name).fetch_all(&mut tx, OP).await?;
        let holds = store.sql.query(statement!("subscribe_holds.sql")).bind(&wanted.name);
        holds.bind(order).bind(on_dead).execute(&mut tx, OP).await?;
    }
    let lanes = store.sql.query(statement!("relane_want.sql")).bind(&wanted.name).bind(wanted.lanes);
    lanes.execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(true)
}

/// Makes the lanes of a subscription with their doors, and the settled batches that they begin with.
pub(crate) async fn make_lanes(
    sql: Sql,
    conn: &mut MySqlConnection,
    subscription: &str,
    fresh: Generation,
    now: i64,
    op: &'static str,
) -> Result<()> {
    let lanes = sql.query(statement!("lanes.sql")).bind(subscription).bind(fresh.lanes).bind(fresh.position);
    lanes.bind(fresh.epoch).execute(conn, op).await?;
    let doors = sql.query(statement!("lanes_doors.sql")).bind(subscription).bind(fresh.lanes);
    doors.execute(conn, op).await?;
    let base = sql.query(statement!("lanes_base.sql")).bind(subscription).bind(fresh.lanes);
    base.bind(fresh.position).bind(now).execute(conn, op).await?;
    Ok(())
}

/// Locks a subscription for this transaction; whether there is one.
pub(crate) async fn lock(
    sql: Sql,
    conn: &mut MySqlConnection,
    subscription: &str,
    op: &'static str,
) -> Result<bool> {
    let lock = sql.query(statement!("subscription_lock.sql")).bind(subscription);
    Ok(lock.fetch_optional(conn, op).await?.is_some())
}

/// The row of a subscription, if there is one.
pub(crate) async fn found(
    sql: Sql,
    conn: &mut MySqlConnection,
    subscription: &str,
    op: &'static str,
) -> Result<Option<MySqlRow>> {
    sql.query(statement!("subscription.sql")).bind(subscription).fetch_optional(conn, op).await
}

/// The patterns as one regular expression, for the views; nothing if everything fits.
fn to_regexp(patterns: &[Pattern]) -> Option<String> {
    if patterns.is_empty() {
        return None;
    }
    let one = |pattern: &Pattern| {
        pattern.as_str().chars().fold(String::new(), |mut regexp, character| {
            match character {
                '*' => regexp.push_str(".*"),
                plain if plain.is_alphanumeric() => regexp.push(plain),
                other => regexp.extend(['\\', other]),
            }
            regexp
        })
    };
    Some(format!("(?s)^({})\\z", patterns.iter().map(one).collect::<Vec<_>>().join("|")))
}
