//! Reading again what was read: every lane goes back, and its holders lose it.

use postrider_core::{Replay, Replayed, Result};
use postrider_sql::clock::micros;
use postrider_sql::replay::{PAGES, ReplayStatements, Tally, check_remembered};
use postrider_sql::statement;
use postrider_sql::unread::{Address, PAGE, ReadProgress};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::hash::lane_of;
use crate::row;
use crate::run::{self, ADDRESS};
use crate::store::MySqlStore;
use crate::subscribe::lock;

const OP: &str = "replay";
const REPLAY: ReplayStatements = ReplayStatements {
    look: statement!("replay_look.sql"),
    time: statement!("replay_time.sql"),
    event: statement!("replay_event.sql"),
};

/// Lets a subscription read again, or says what that would come to.
pub(crate) async fn replay(store: &MySqlStore, replay: &Replay) -> Result<Replayed> {
    let name = &replay.subscription;
    // What is committed by now and has no number yet may be what it is to begin with.
    let mut conn = store.conn(OP).await?;
    store.catch_up(&mut conn, OP).await?;
    drop(conn);
    let mut tx = store.write(OP).await?;
    lock(store.sql, &mut tx, name, OP).await?;
    let (look, frontier) = store.sql.replay_from(REPLAY, &mut tx, replay, OP).await?;
    let replayed = count(store, &mut tx, replay, &look, frontier).await?;
    check_remembered(&look, replay, &replayed, OP)?;
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

/// How many events come again.
async fn count(
    store: &MySqlStore,
    conn: &mut MySqlConnection,
    replay: &Replay,
    look: &MySqlRow,
    frontier: i64,
) -> Result<Replayed> {
    let lanes = store.sql.query(statement!("figures_lanes.sql")).bind(&replay.subscription).bind(0_i64);
    let progress = ReadProgress::of(look, &lanes.fetch_all(conn, OP).await?, lane_of, OP)?;
    let (mut tally, mut after) = (Tally::default(), frontier);
    for _ in 0..PAGES {
        let runs = run::after(store.sql, conn, after, i64::MAX, PAGE, OP).await?;
        after = runs.last().map_or(after, |run| run.last);
        for run::Numbered { number, row, .. } in &run::read(store.sql, conn, &runs, ADDRESS, None, OP).await?
        {
            tally.take(&progress, &Address::of(row, *number, micros(row::date(row, 3, OP)?), OP)?);
        }
        if runs.iter().map(|run| run.length).sum::<i64>() < PAGE || after >= progress.furthest() {
            return Ok(tally.replayed(true));
        }
    }
    Ok(tally.replayed(false))
}
