//! How a subscription is doing, in numbers.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postrider_core::{Figures, Filter, Result};
use sqlx_core::acquire::Acquire;
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::hash::lane_of;
use crate::row;
use crate::sql::statement;
use crate::store::SqliteStore;
use crate::subscribe::{found, patterns_from_json, unknown};

const OP: &str = "figures";
/// At most this many events that were not read yet are looked at unless fewer will do, a page at a time.
pub(crate) const MOST: i64 = 1_000_000;
const PAGE: i64 = 10_000;

/// What is counted of one stream, when its oldest undelivered event was recorded, and how many were before a time.
#[derive(Default)]
struct Counted {
    figures: Figures,
    oldest: Option<i64>,
    before: u64,
    /// When the next of those that failed is tried again.
    next_at: Option<i64>,
}

/// What was counted, and when.
struct Count {
    now: i64,
    streams: BTreeMap<String, Counted>,
}

impl Counted {
    fn waits_since(&mut self, recorded_at: i64, limit: Option<i64>) {
        self.before += u64::from(limit.is_some_and(|limit| recorded_at < limit));
        self.oldest = Some(self.oldest.map_or(recorded_at, |oldest| oldest.min(recorded_at)));
    }
}

/// How many events of a subscription are where, by stream.
pub(crate) async fn figures(store: &SqliteStore, subscription: &str, most: i64) -> Result<Vec<Figures>> {
    let Count { now, streams } = count(store, subscription, None, most).await?;
    let finished = streams.into_iter().map(|(stream, Counted { figures, oldest, next_at, .. })| Figures {
        subscription: subscription.to_owned(),
        stream,
        oldest_seconds: oldest.map_or(0.0, |oldest| (now - oldest).max(0) as f64 / 1_000_000.0),
        retry_in: next_at.map(|next_at| (next_at - now) as f64 / 1_000_000.0),
        ..figures
    });
    Ok(finished.collect())
}

/// How many undelivered events of a subscription were recorded longer ago than that.
pub(crate) async fn undelivered_over(store: &SqliteStore, subscription: &str, age: Duration) -> Result<u64> {
    let Count { streams, .. } = count(store, subscription, Some(age), MOST).await?;
    Ok(streams.values().map(|counted| counted.before).sum())
}

/// Counts, all as one snapshot shows it.
async fn count(store: &SqliteStore, subscription: &str, age: Option<Duration>, most: i64) -> Result<Count> {
    let mut conn = store.conn(OP).await?;
    let mut tx = conn.begin().await.map_err(failed(OP))?;
    let now = store.now(&mut tx, OP).await?;
    let reader =
        found(store.sql, &mut tx, subscription, OP).await?.ok_or_else(|| unknown(subscription, OP))?;
    let limit = age.map(|age| now.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)));
    let mut count = Count { now, streams: count_open(store, &mut tx, subscription, limit).await? };
    count_unread(store, &mut tx, subscription, &reader, (limit, most), &mut count).await?;
    tx.rollback().await.map_err(failed(OP))?;
    Ok(count)
}

async fn count_open(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    subscription: &str,
    limit: Option<i64>,
) -> Result<BTreeMap<String, Counted>> {
    let open = store.sql.query(statement!("figures_open.sql")).bind(subscription).bind(limit);
    let rows = open.fetch_all(conn).await.map_err(failed(OP))?;
    rows.iter()
        .map(|row| {
            let number = |column: &str| -> Result<u64> {
                let number: i64 = row.try_get(column).map_err(failed(OP))?;
                Ok(u64::try_from(number).unwrap_or(0))
            };
            let figures = Figures {
                processing: number("processing")?,
                retrying: number("retrying")?,
                dead: number("dead")?,
                attempts: number("attempts")?,
                waiting: number("waiting")?,
                ..Figures::default()
            };
            let oldest = row.try_get("oldest").map_err(failed(OP))?;
            let before = number("earlier")?;
            let next_at = row.try_get("next_at").map_err(failed(OP))?;
            Ok((row::text(row, 0, OP)?.into_owned(), Counted { figures, oldest, before, next_at }))
        })
        .collect()
}

/// Lanes and filters are told apart here, as a read does it.
async fn count_unread(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    subscription: &str,
    reader: &SqliteRow,
    (limit, most): (Option<i64>, i64),
    count: &mut Count,
) -> Result<()> {
    let Count { now, streams } = count;
    let words = |column: &str| reader.try_get::<String, _>(column).map_err(failed(OP));
    let filter = Filter {
        streams: patterns_from_json(&words("streams")?)?,
        types: patterns_from_json(&words("types")?)?,
    };
    let since: Option<i64> = reader.try_get("since").map_err(failed(OP))?;
    let lanes: i64 = reader.try_get("lanes").map_err(failed(OP))?;
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);

    let look = store.sql.query(statement!("figures_lanes.sql")).bind(subscription).bind(*now);
    let rows = look.fetch_all(&mut *conn).await.map_err(failed(OP))?;
    let mut standing: HashMap<u32, (i64, i64)> = HashMap::new();
    for row in &rows {
        let column = |column: &str| row.try_get::<i64, _>(column).map_err(failed(OP));
        let lane = u32::try_from(column("lane")?).unwrap_or(u32::MAX);
        standing.insert(lane, (column("position")?, column("reading")?));
    }
    let Some(mut after) = standing.values().map(|(position, _)| *position).min() else { return Ok(()) };

    let mut left = most;
    while left > 0 {
        let rows = left.min(PAGE);
        left -= rows;
        let page = store.sql.query(statement!("figures_unread.sql")).bind(after).bind(rows);
        let rows = page.fetch_all(&mut *conn).await.map_err(failed(OP))?;
        let Some(last) = rows.last() else { break };
        after = last.try_get(0).map_err(failed(OP))?;
        for row in &rows {
            let id: i64 = row.try_get(0).map_err(failed(OP))?;
            let (stream, event_type) = (row::text(row, 1, OP)?, row::text(row, 2, OP)?);
            let recorded_at: i64 = row.try_get(3).map_err(failed(OP))?;
            let lane = lane_of(&row::text(row, 4, OP)?, lanes);
            let Some((_, reading)) = standing.get(&lane).filter(|(position, _)| id > *position) else {
                continue;
            };
            if since.is_some_and(|since| recorded_at < since) || !filter.wants(&stream, &event_type) {
                continue;
            }
            if !streams.contains_key(&*stream) {
                streams.insert(stream.clone().into_owned(), Counted::default());
            }
            if let Some(counted) = streams.get_mut(&*stream) {
                let place = if id <= *reading {
                    &mut counted.figures.processing
                } else {
                    &mut counted.figures.pending
                };
                *place += 1;
                counted.waits_since(recorded_at, limit);
            }
        }
    }
    Ok(())
}
