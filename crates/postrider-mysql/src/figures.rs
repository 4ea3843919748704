//! How a subscription is doing, in numbers.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postrider_core::{Figures, Filter, OffsetDateTime, Result};
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_mysql::{MySqlConnection, MySqlRow};
use time::PrimitiveDateTime;

use crate::clock::{micros_of, time_of};
use crate::error::failed;
use crate::hash::lane_of;
use crate::row::{self, maybe_number, maybe_time, number, small, text};
use crate::run::{self, ADDRESS};
use crate::sql::statement;
use crate::store::MySqlStore;
use crate::subscribe::{found, patterns_from_json, unknown};

const OP: &str = "figures";
/// At most this many events that were not read yet are looked at unless fewer will do, a page at a time.
pub(crate) const MOST: i64 = 1_000_000;
const PAGE: i64 = 10_000;

/// What is counted of one stream, when its oldest undelivered event was recorded, and how many were before a time.
#[derive(Default)]
struct Counted {
    figures: Figures,
    oldest: Option<OffsetDateTime>,
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
    fn waits_since(&mut self, recorded_at: OffsetDateTime, limit: Option<i64>) {
        self.before += u64::from(limit.is_some_and(|limit| recorded_at < time_of(limit)));
        self.oldest = Some(self.oldest.map_or(recorded_at, |oldest| oldest.min(recorded_at)));
    }
}

/// How many events of a subscription are where, by stream.
pub(crate) async fn figures(store: &MySqlStore, subscription: &str, most: i64) -> Result<Vec<Figures>> {
    let Count { now, streams } = count(store, subscription, None, most).await?;
    let finished = streams.into_iter().map(|(stream, Counted { figures, oldest, next_at, .. })| Figures {
        subscription: subscription.to_owned(),
        stream,
        oldest_seconds: oldest.map_or(0.0, |oldest| (time_of(now) - oldest).as_seconds_f64().max(0.0)),
        retry_in: next_at.map(|next_at| (next_at - now) as f64 / 1_000_000.0),
        ..figures
    });
    Ok(finished.collect())
}

/// How many undelivered events of a subscription were recorded longer ago than that.
pub(crate) async fn undelivered_over(store: &MySqlStore, subscription: &str, age: Duration) -> Result<u64> {
    let Count { streams, .. } = count(store, subscription, Some(age), MOST).await?;
    Ok(streams.values().map(|counted| counted.before).sum())
}

/// Counts, all as one snapshot shows it.
async fn count(store: &MySqlStore, subscription: &str, age: Option<Duration>, most: i64) -> Result<Count> {
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    // For the next transaction only.
    let snapshot = query("set transaction isolation level repeatable read");
    snapshot.execute(&mut *conn).await.map_err(failed(OP))?;
    let mut tx = conn.begin_by("start transaction").await.map_err(failed(OP))?;
    let now = store.now(&mut tx, OP).await?;
    let reader =
        found(store.sql, &mut tx, subscription, OP).await?.ok_or_else(|| unknown(subscription, OP))?;
    let limit = age.map(|age| now.saturating_sub(micros_of(age)));
    let mut count = Count { now, streams: count_open(store, &mut tx, subscription, limit).await? };
    count_unread(store, &mut tx, subscription, &reader, (limit, most), &mut count).await?;
    tx.rollback().await.map_err(failed(OP))?;
    Ok(count)
}

async fn count_open(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    subscription: &str,
    limit: Option<i64>,
) -> Result<BTreeMap<String, Counted>> {
    let open = store.sql.query(statement!("figures_open.sql")).bind(subscription).bind(limit);
    let rows = open.fetch_all(conn, OP).await?;
    rows.iter()
        .map(|row| {
            let count = |column: &str| Ok(u64::try_from(number(row, column, OP)?).unwrap_or(0));
            let figures = Figures {
                processing: count("processing")?,
                retrying: count("retrying")?,
                dead: count("dead")?,
                attempts: count("attempts")?,
                waiting: count("waiting")?,
                ..Figures::default()
            };
            let oldest: Option<PrimitiveDateTime> = row.try_get_unchecked("oldest").map_err(failed(OP))?;
            let oldest = oldest.map(PrimitiveDateTime::assume_utc);
            let next_at = maybe_number(row, "next_at", OP)?;
            let counted = Counted { figures, oldest, before: count("earlier")?, next_at };
            Ok((text(row, 0, OP)?.into_owned(), counted))
        })
        .collect()
}

/// Lanes and filters are told apart here, as a read does it.
async fn count_unread(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    subscription: &str,
    reader: &MySqlRow,
    (limit, most): (Option<i64>, i64),
    count: &mut Count,
) -> Result<()> {
    let Count { now, streams } = count;
    let words = |column: &str| text(reader, column, OP);
    let filter = Filter {
        streams: patterns_from_json(&words("streams")?)?,
        types: patterns_from_json(&words("types")?)?,
    };
    let since = maybe_time(reader, "since", OP)?;
    let lanes = small(reader, "lanes", OP)?;

    let look = store.sql.query(statement!("figures_lanes.sql")).bind(subscription).bind(*now);
    let rows = look.fetch_all(&mut *conn, OP).await?;
    let mut standing: HashMap<u32, (i64, i64)> = HashMap::new();
    for row in &rows {
        let standing_at = (number(row, "position", OP)?, number(row, "reading", OP)?);
        standing.insert(small(row, "lane", OP)?, standing_at);
    }
    let Some(mut after) = standing.values().map(|(position, _)| *position).min() else { return Ok(()) };

    let mut left = most;
    while left > 0 {
        let rows = left.min(PAGE);
        left -= rows;
        let runs = run::after(store.sql, conn, after, i64::MAX, rows, OP).await?;
        let Some(last) = runs.last() else { break };
        after = last.last;
        for run::Numbered { number: id, row, .. } in
            &run::read(store.sql, conn, &runs, ADDRESS, None, OP).await?
        {
            let id = *id;
            let (stream, event_type) = (text(row, 1, OP)?, text(row, 2, OP)?);
            let recorded_at = row::date(row, 3, OP)?;
            let lane = lane_of(&text(row, 4, OP)?, lanes);
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
