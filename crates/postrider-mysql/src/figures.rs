//! How a subscription is doing, in numbers.

use std::time::Duration;

use postrider_core::{OffsetDateTime, Result, Subscription};
use postrider_sql::clock::micros;
use postrider_sql::figures::Count;
use postrider_sql::unread::{Address, PAGE, ReadProgress};
use postrider_sql::{Columns, statement};
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_mysql::{MySqlConnection, MySqlRow};
use time::PrimitiveDateTime;

use crate::error::failed;
use crate::hash::lane_of;
use crate::row;
use crate::run::{self, ADDRESS};
use crate::store::MySqlStore;
use crate::subscribe::found;

const OP: &str = "figures";

/// Counts the events of a subscription by where they are, all as one snapshot shows it: at most so many that were not read yet, and apart
/// those that were recorded longer ago than `age`.
pub(crate) async fn count(
    store: &MySqlStore,
    subscription: &str,
    age: Option<Duration>,
    most: i64,
) -> Result<Count> {
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    // For the next transaction only.
    let snapshot = query("set transaction isolation level repeatable read");
    snapshot.execute(&mut *conn).await.map_err(failed(OP))?;
    let mut tx = conn.begin_by("start transaction").await.map_err(failed(OP))?;
    let mut count = Count::new(store.now(&mut tx, OP).await?, age);
    let row = found(store.sql, &mut tx, subscription, OP).await?;
    let row = row.ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let open = store.sql.query(statement!("figures_open.sql")).bind(subscription).bind(count.limit());
    count.open(&open.fetch_all(&mut tx, OP).await?, oldest, OP)?;
    let lanes = store.sql.query(statement!("figures_lanes.sql")).bind(subscription).bind(count.now());
    let progress = ReadProgress::of(&row, &lanes.fetch_all(&mut tx, OP).await?, lane_of, OP)?;
    count_unread(store, &mut tx, &progress, most, &mut count).await?;
    tx.rollback().await.map_err(failed(OP))?;
    Ok(count)
}

/// When the first event was recorded that some lane of the subscription has not passed.
pub(crate) async fn unread_since(store: &MySqlStore, subscription: &str) -> Result<Option<OffsetDateTime>> {
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    let lowest = store.sql.query(statement!("lanes_lowest.sql")).bind(subscription);
    let lowest = lowest.fetch_optional(&mut conn, OP).await?;
    let lowest = lowest.map(|row| row.maybe_number(0, OP)).transpose()?.flatten();
    let Some(mut after) = lowest else { return Ok(None) };
    loop {
        let runs = run::after(store.sql, &mut conn, after, i64::MAX, PAGE, OP).await?;
        let Some(last) = runs.last() else { return Ok(None) };
        after = last.last;
        // Retention may have taken the first events of a run.
        for (first, last) in runs.iter().map(run::Run::ids) {
            let look = store.sql.query(statement!("unread_since.sql")).bind(first).bind(last);
            if let Some(row) = look.fetch_optional(&mut conn, OP).await? {
                return row::date(&row, 0, OP).map(Some);
            }
        }
    }
}

fn oldest(row: &MySqlRow, op: &'static str) -> Result<Option<i64>> {
    let oldest: Option<PrimitiveDateTime> = row.try_get_unchecked("oldest").map_err(failed(op))?;
    Ok(oldest.map(|oldest| micros(oldest.assume_utc())))
}

/// Lanes and filters are told apart here, as a read does it.
async fn count_unread(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    progress: &ReadProgress,
    most: i64,
    count: &mut Count,
) -> Result<()> {
    let Some(mut after) = progress.behind() else { return Ok(()) };
    let mut left = most;
    while left > 0 {
        let rows = left.min(PAGE);
        left -= rows;
        let runs = run::after(store.sql, conn, after, i64::MAX, rows, OP).await?;
        let Some(last) = runs.last() else { break };
        after = last.last;
        for run::Numbered { number, row, .. } in &run::read(store.sql, conn, &runs, ADDRESS, None, OP).await?
        {
            count.unread(progress, &Address::of(row, *number, micros(row::date(row, 3, OP)?), OP)?);
        }
    }
    Ok(())
}
