//! Reading again what was read: every lane goes back, and its holders lose it.
//!
//! Numbers are committed in their order, so nothing appears below one that was read: a lower position is all there is to it.

use std::collections::HashMap;

use postrider_core::{Filter, OffsetDateTime, Replay, ReplayFrom, ReplayRefusal, Replayed, Result};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::clock::micros;
use crate::error::failed;
use crate::hash::lane_of;
use crate::row::{self, flag, maybe_number, maybe_time, number, small, text};
use crate::run::{self, ADDRESS};
use crate::sql::statement;
use crate::store::MySqlStore;
use crate::subscribe::{lock, patterns_from_json, unknown};

const OP: &str = "replay";
const PAGE: i64 = 10_000;

/// Lets a subscription read again, or says what that would come to.
pub(crate) async fn replay(store: &MySqlStore, replay: &Replay) -> Result<Replayed> {
    let name = &replay.subscription;
    // What is committed by now and has no number yet may be what it is to begin with.
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    drop(conn);
    let mut tx = store.write(OP).await?;
    lock(store.sql, &mut tx, name, OP).await?;
    let look = store.sql.query(statement!("replay_look.sql")).bind(name).fetch_optional(&mut tx, OP).await?;
    let look = look.ok_or_else(|| unknown(name, OP))?;
    let frontier = match frontier(store, &mut tx, replay, &look).await? {
        Ok(frontier) => frontier,
        Err(refusal) => return Err(refusal.error(name)),
    };
    let replayed = count(store, &mut tx, replay, &look, frontier).await?;
    let forgotten = maybe_time(&look, "forgotten_at", OP)?.filter(|_| !replay.effects_may_repeat);
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
        statement!("replay_place.sql"),
    ] {
        store.sql.query(statement).bind(name).bind(frontier).execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    store.ring(OP).await?;
    Ok(replayed)
}

/// The id up to which everything stays read; the greatest there is, if nothing is to be read again.
async fn frontier(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    replay: &Replay,
    look: &MySqlRow,
) -> Result<Result<i64, ReplayRefusal>> {
    if !flag(look, "replay", OP)? {
        return Ok(Err(ReplayRefusal::Forbidden));
    }
    if flag(look, "changing", OP)? {
        return Ok(Err(ReplayRefusal::Changing));
    }
    let first = match replay.from {
        ReplayFrom::Time(time) => store.sql.query(statement!("replay_time.sql")).bind(micros(time)),
        ReplayFrom::Event(event) => store.sql.query(statement!("replay_event.sql")).bind(event),
    };
    let first = maybe_number(&first.fetch_one(conn, OP).await?, "id", OP)?;
    if let (ReplayFrom::Event(event), None) = (replay.from, first) {
        return Ok(Err(ReplayRefusal::NoEvent(event)));
    }
    let start = number(look, "start_frontier", OP)?;
    let wanted = first.map_or(i64::MAX, |first| first - 1);
    let frontier = wanted.max(start);
    let swept = maybe_number(look, "swept_id", OP)?;
    let Some((last, until)) = swept.zip(maybe_time(look, "swept_at", OP)?) else { return Ok(Ok(frontier)) };
    let asked_for = match replay.from {
        ReplayFrom::Time(time) => until >= time,
        ReplayFrom::Event(_) => last > wanted,
    };
    if last > start && (last > frontier || asked_for) {
        return Ok(Err(ReplayRefusal::Gone(until, maybe_time(look, "whole_from", OP)?)));
    }
    Ok(Ok(frontier))
}

/// How many events come again: lanes and filters are told apart here, as a read does it.
async fn count(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    replay: &Replay,
    look: &MySqlRow,
    frontier: i64,
) -> Result<Replayed> {
    let words = |column: &str| text(look, column, OP);
    let filter = Filter {
        streams: patterns_from_json(&words("streams")?)?,
        types: patterns_from_json(&words("types")?)?,
    };
    let since = maybe_time(look, "since", OP)?;
    let lanes = small(look, "lanes", OP)?;
    let standing = store.sql.query(statement!("figures_lanes.sql")).bind(&replay.subscription).bind(0_i64);
    let standing = standing.fetch_all(&mut *conn, OP).await?;
    let mut positions: HashMap<u32, i64> = HashMap::new();
    for row in &standing {
        positions.insert(small(row, "lane", OP)?, number(row, "position", OP)?);
    }
    let furthest = positions.values().copied().max().unwrap_or(0);
    let (mut replayed, mut first, mut after) = (Replayed::default(), None, frontier);
    for _ in 0..i64::from(Replayed::MOST) / PAGE {
        let runs = run::after(store.sql, conn, after, i64::MAX, PAGE, OP).await?;
        after = runs.last().map_or(after, |run| run.last);
        for run::Numbered { number: id, row, .. } in
            &run::read(store.sql, conn, &runs, ADDRESS, None, OP).await?
        {
            let recorded_at = row::date(row, 3, OP)?;
            let lane = lane_of(&text(row, 4, OP)?, lanes);
            let was_read = positions.get(&lane).is_some_and(|position| id <= position);
            if was_read
                && since.is_none_or(|since| recorded_at >= since)
                && filter.wants(&text(row, 1, OP)?, &text(row, 2, OP)?)
            {
                replayed.events += 1;
                first = Some(first.map_or(recorded_at, |first: OffsetDateTime| first.min(recorded_at)));
            }
        }
        if runs.iter().map(|run| run.length).sum::<i64>() < PAGE || after >= furthest {
            replayed.counted = true;
            break;
        }
    }
    replayed.first_recorded_at = first;
    Ok(replayed)
}
