//! Subscriptions and the lanes that they begin with.

use postrider_core::{Error, ErrorKind, Pattern, Result, Start, Subscribed, Subscription};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::micros;
use crate::error::failed;
use crate::sql::{Sql, statement};
use crate::store::SqliteStore;

/// Creates a subscription, or gives it its new filter, policies and number of lanes.
pub(crate) async fn subscribe(store: &SqliteStore, wanted: &Subscription) -> Result<Subscribed> {
    const OP: &str = "subscribe";
    wanted.check()?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let (order, on_dead) = (wanted.order.as_str(), wanted.on_dead.as_str());
    let (streams, types) = (patterns_to_json(&wanted.filter.streams), patterns_to_json(&wanted.filter.types));
    let subscribed = match found(store.sql, &mut tx, &wanted.name, OP).await? {
        None => {
            let (start, since) = match wanted.start {
                Start::Beginning => ("beginning", None),
                Start::Now => ("now", None),
                Start::At(time) => ("at", Some(micros(time))),
            };
            let created =
                store.sql.query(statement!("subscribe.sql")).bind(&wanted.name).bind(streams).bind(types);
            let created =
                created.bind(order).bind(on_dead).bind(i64::from(wanted.lanes)).bind(start).bind(since);
            let created = created.bind(now).bind(wanted.replay);
            let row = created.fetch_one(&mut *tx).await.map_err(failed(OP))?;
            let frontier: i64 = row.try_get("start_frontier").map_err(failed(OP))?;
            let fresh = Generation { lanes: i64::from(wanted.lanes), position: frontier, epoch: 0 };
            make_lanes(store.sql, &mut tx, &wanted.name, fresh, now, OP).await?;
            Subscribed::New
        }
        Some(row) => {
            let was: (String, String) = (
                row.try_get("order_policy").map_err(failed(OP))?,
                row.try_get("on_dead").map_err(failed(OP))?,
            );
            let again = store
                .sql
                .query(statement!("subscribe_again.sql"))
                .bind(&wanted.name)
                .bind(streams)
                .bind(types);
            again
                .bind(order)
                .bind(on_dead)
                .bind(wanted.replay)
                .execute(&mut *tx)
                .await
                .map_err(failed(OP))?;
            if (was.0.as_str(), was.1.as_str()) != (order, on_dead) {
                let holds = store
                    .sql
                    .query(statement!("subscribe_holds.sql"))
                    .bind(&wanted.name)
                    .bind(order)
                    .bind(on_dead);
                holds.execute(&mut *tx).await.map_err(failed(OP))?;
            }
            let lanes = store
                .sql
                .query(statement!("relane_want.sql"))
                .bind(&wanted.name)
                .bind(i64::from(wanted.lanes));
            lanes.execute(&mut *tx).await.map_err(failed(OP))?;
            Subscribed::Known
        }
    };
    tx.commit().await.map_err(failed(OP))?;
    Ok(subscribed)
}

/// A set of lanes to be made.
#[derive(Clone, Copy)]
pub(crate) struct Generation {
    pub(crate) lanes: i64,
    pub(crate) position: i64,
    pub(crate) epoch: i64,
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
    lanes.bind(fresh.epoch).execute(&mut *conn).await.map_err(failed(op))?;
    let base =
        sql.query(statement!("lanes_base.sql")).bind(subscription).bind(fresh.lanes).bind(fresh.position);
    base.bind(now).execute(conn).await.map_err(failed(op))?;
    Ok(())
}

/// The row of a subscription, if there is one.
pub(crate) async fn found(
    sql: Sql,
    conn: &mut SqliteConnection,
    subscription: &str,
    op: &'static str,
) -> Result<Option<SqliteRow>> {
    sql.query(statement!("subscription.sql"))
        .bind(subscription)
        .fetch_optional(conn)
        .await
        .map_err(failed(op))
}

/// There is no such subscription.
pub(crate) fn unknown(subscription: &str, op: &'static str) -> Error {
    Error::new(ErrorKind::NotFound, op, format!("there is no subscription {subscription:?}"))
}

fn patterns_to_json(patterns: &[Pattern]) -> String {
    serde_json::Value::from_iter(patterns.iter().map(Pattern::as_str)).to_string()
}

/// The patterns of a filter, as the tables keep them.
pub(crate) fn patterns_from_json(json: &str) -> Result<Vec<Pattern>> {
    let patterns: Vec<String> = serde_json::from_str(json).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "claim", "the filter of the subscription is not a list of patterns")
            .caused_by(error)
    })?;
    Ok(patterns.into_iter().map(Pattern::new).collect())
}
