//! Reading again what was read: every lane goes back, and its holders lose it.
//!
//! There is one writer at a time, so nothing appears below an id that was read: a lower position is all there is to it.

use std::collections::HashMap;

use postrider_core::{Filter, OffsetDateTime, Replay, ReplayFrom, ReplayRefusal, Replayed, Result};
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::clock::{micros, time_of};
use crate::error::failed;
use crate::hash::lane_of;
use crate::row;
use crate::sql::statement;
use crate::store::SqliteStore;
use crate::subscribe::{patterns_from_json, unknown};

const OP: &str = "replay";
const PAGE: i64 = 10_000;

/// Lets a subscription read again, or says what that would come to.
pub(crate) async fn replay(store: &SqliteStore, replay: &Replay) -> Result<Replayed> {
    let name = &replay.subscription;
    let mut tx = store.write(OP).await?;
    let look = store.sql.query(statement!("replay_look.sql")).bind(name).fetch_optional(&mut *tx).await;
    let look = look.map_err(failed(OP))?.ok_or_else(|| unknown(name, OP))?;
    let frontier = match frontier(store, &mut tx, replay, &look).await? {
        Ok(frontier) => frontier,
        Err(refusal) => return Err(refusal.error(name)),
    };
    let replayed = count(store, &mut tx, replay, &look, frontier).await?;
    let forgotten = maybe_time(&look, "forgotten_at")?.filter(|_| !replay.effects_may_repeat);
    if let Some(until) = forgotten.filter(|until| replayed.first_recorded_at.is_some_and(|at| at <= *until)) {
        return Err(ReplayRefusal::Forgotten(until).error(name));
    }
    if replay.dry_run || frontier == i64::MAX {
        return Ok(replayed);
    }
    for statement in [
        statement!("replay_lanes.sql"),
        statement!("replay_batches.sql"),
        statement!("replay_deliveries.sql"),
    ] {
        let step = store.sql.query(statement).bind(name).bind(frontier);
        step.execute(&mut *tx).await.map_err(failed(OP))?;
    }
    // A commit is what sleeping relays look for.
    tx.commit().await.map_err(failed(OP))?;
    Ok(replayed)
}

fn maybe_time(row: &SqliteRow, column: &str) -> Result<Option<OffsetDateTime>> {
    let micros: Option<i64> = row.try_get(column).map_err(failed(OP))?;
    Ok(micros.map(time_of))
}

/// The id up to which everything stays read; the greatest there is, if nothing is to be read again.
async fn frontier(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    replay: &Replay,
    look: &SqliteRow,
) -> Result<Result<i64, ReplayRefusal>> {
    let flag = |column: &str| look.try_get::<bool, _>(column).map_err(failed(OP));
    if !flag("replay")? {
        return Ok(Err(ReplayRefusal::Forbidden));
    }
    if flag("changing")? {
        return Ok(Err(ReplayRefusal::Changing));
    }
    let first = match replay.from {
        ReplayFrom::Time(time) => store.sql.query(statement!("replay_time.sql")).bind(micros(time)),
        ReplayFrom::Event(event) => store.sql.query(statement!("replay_event.sql")).bind(event),
    };
    let first = first.fetch_one(conn).await.and_then(|row| row.try_get("id"));
    let first: Option<i64> = first.map_err(failed(OP))?;
    if let (ReplayFrom::Event(event), None) = (replay.from, first) {
        return Ok(Err(ReplayRefusal::NoEvent(event)));
    }
    let start: i64 = look.try_get("start_frontier").map_err(failed(OP))?;
    let wanted = first.map_or(i64::MAX, |first| first - 1);
    let frontier = wanted.max(start);
    let swept: Option<i64> = look.try_get("swept_id").map_err(failed(OP))?;
    let Some((last, until)) = swept.zip(maybe_time(look, "swept_at")?) else { return Ok(Ok(frontier)) };
    let asked_for = match replay.from {
        ReplayFrom::Time(time) => until >= time,
        ReplayFrom::Event(_) => last > wanted,
    };
    if last > start && (last > frontier || asked_for) {
        return Ok(Err(ReplayRefusal::Gone(until, maybe_time(look, "whole_from")?)));
    }
    Ok(Ok(frontier))
}

/// How many events come again: lanes and filters are told apart here, as a read does it.
async fn count(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    replay: &Replay,
    look: &SqliteRow,
    frontier: i64,
) -> Result<Replayed> {
    let words = |column: &str| look.try_get::<String, _>(column).map_err(failed(OP));
    let filter = Filter {
        streams: patterns_from_json(&words("streams")?)?,
        types: patterns_from_json(&words("types")?)?,
    };
    let since: Option<i64> = look.try_get("since").map_err(failed(OP))?;
    let lanes: i64 = look.try_get("lanes").map_err(failed(OP))?;
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
    let standing = store.sql.query(statement!("figures_lanes.sql")).bind(&replay.subscription).bind(0_i64);
    let standing = standing.fetch_all(&mut *conn).await.map_err(failed(OP))?;
    let mut positions: HashMap<u32, i64> = HashMap::new();
    for row in &standing {
        let lane: i64 = row.try_get("lane").map_err(failed(OP))?;
        let position: i64 = row.try_get("position").map_err(failed(OP))?;
        positions.insert(u32::try_from(lane).unwrap_or(u32::MAX), position);
    }
    let furthest = positions.values().copied().max().unwrap_or(0);
    let (mut replayed, mut first, mut after) = (Replayed::default(), None::<i64>, frontier);
    for _ in 0..i64::from(Replayed::MOST) / PAGE {
        let page = store.sql.query(statement!("figures_unread.sql")).bind(after).bind(PAGE);
        let rows = page.fetch_all(&mut *conn).await.map_err(failed(OP))?;
        for row in &rows {
            let id: i64 = row.try_get(0).map_err(failed(OP))?;
            let recorded_at: i64 = row.try_get(3).map_err(failed(OP))?;
            after = id;
            let lane = lane_of(&row::text(row, 4, OP)?, lanes);
            let was_read = positions.get(&lane).is_some_and(|position| id <= *position);
            if was_read
                && since.is_none_or(|since| recorded_at >= since)
                && filter.wants(&row::text(row, 1, OP)?, &row::text(row, 2, OP)?)
            {
                replayed.events += 1;
                first = Some(first.map_or(recorded_at, |first| first.min(recorded_at)));
            }
        }
        if (rows.len() as i64) < PAGE || after >= furthest {
            replayed.counted = true;
            break;
        }
    }
    replayed.first_recorded_at = first.map(time_of);
    Ok(replayed)
}
