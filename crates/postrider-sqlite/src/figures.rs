//! How a subscription is doing, in numbers.

use std::time::Duration;

use postrider_core::{OffsetDateTime, Result, Subscription};
use postrider_sql::figures::Count;
use postrider_sql::unread::{Address, PAGE, ReadProgress};
use postrider_sql::{Columns, statement};
use sqlx_core::acquire::Acquire;
use sqlx_sqlite::SqliteConnection;

use crate::error::failed;
use crate::hash::lane_of;
use crate::store::SqliteStore;
use crate::subscribe::found;

const OP: &str = "figures";

/// Counts the events of a subscription by where they are, all as one snapshot shows it: at most so many that were not read yet, and apart
/// those that were recorded longer ago than `age`.
pub(crate) async fn count(
    store: &SqliteStore,
    subscription: &str,
    age: Option<Duration>,
    most: i64,
) -> Result<Count> {
    let mut conn = store.conn(OP).await?;
    let mut tx = conn.begin().await.map_err(failed(OP))?;
    let mut count = Count::new(store.now(&mut tx, OP).await?, age);
    let row = found(store.sql, &mut tx, subscription, OP).await?;
    let row = row.ok_or_else(|| Subscription::unknown(subscription, OP))?;
    let open = store.sql.query(statement!("figures_open.sql")).bind(subscription).bind(count.limit());
    count.open(&open.fetch_all(&mut tx, OP).await?, |row, op| row.maybe_number("oldest", op), OP)?;
    let lanes = store.sql.query(statement!("figures_lanes.sql")).bind(subscription).bind(count.now());
    let progress = ReadProgress::of(&row, &lanes.fetch_all(&mut tx, OP).await?, lane_of, OP)?;
    count_unread(store, &mut tx, &progress, most, &mut count).await?;
    tx.rollback().await.map_err(failed(OP))?;
    Ok(count)
}

/// When the first event was recorded that some lane of the subscription has not passed.
pub(crate) async fn unread_since(store: &SqliteStore, subscription: &str) -> Result<Option<OffsetDateTime>> {
    let mut conn = store.conn(OP).await?;
    let first = store.sql.query(statement!("unread_since.sql")).bind(subscription);
    first.fetch_optional(&mut conn, OP).await?.map(|row| row.time(0, OP)).transpose()
}

/// Lanes and filters are told apart here, as a read does it.
async fn count_unread(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    progress: &ReadProgress,
    most: i64,
    count: &mut Count,
) -> Result<()> {
    let Some(mut after) = progress.behind() else { return Ok(()) };
    let mut left = most;
    while left > 0 {
        let rows = left.min(PAGE);
        left -= rows;
        let page = store.sql.query(statement!("figures_unread.sql")).bind(after).bind(rows);
        let rows = page.fetch_all(conn, OP).await?;
        let Some(last) = rows.last() else { break };
        after = last.number(0, OP)?;
        for row in &rows {
            count.unread(progress, &Address::of(row, row.number(0, OP)?, row.number(3, OP)?, OP)?);
        }
    }
    Ok(())
}
