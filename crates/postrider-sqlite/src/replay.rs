//! Reading again what was read: every lane goes back, and its holders lose it.

use postrider_core::{Replay, Replayed, Result};
use postrider_sql::replay::{PAGES, ReplayStatements, Tally, check_remembered};
use postrider_sql::unread::{Address, PAGE, ReadProgress};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::{SqliteConnection, SqliteRow};

use crate::error::failed;
use crate::hash::lane_of;
use crate::store::SqliteStore;

const OP: &str = "replay";
const REPLAY: ReplayStatements = ReplayStatements {
    look: statement!("replay_look.sql"),
    time: statement!("replay_time.sql"),
    event: statement!("replay_event.sql"),
};

/// Lets a subscription read again, or says what that would come to.
pub(crate) async fn replay(store: &SqliteStore, replay: &Replay) -> Result<Replayed> {
    let name = &replay.subscription;
    let mut tx = store.write(OP).await?;
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
    ] {
        store.sql.query(statement).bind(name).bind(frontier).execute(&mut tx, OP).await?;
    }
    // A commit is what sleeping relays look for.
    tx.commit().await.map_err(failed(OP))?;
    Ok(replayed)
}

/// How many events come again.
async fn count(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    replay: &Replay,
    look: &SqliteRow,
    frontier: i64,
) -> Result<Replayed> {
    let lanes = store.sql.query(statement!("figures_lanes.sql")).bind(&replay.subscription).bind(0_i64);
    let progress = ReadProgress::of(look, &lanes.fetch_all(conn, OP).await?, lane_of, OP)?;
    let (mut tally, mut after) = (Tally::default(), frontier);
    for _ in 0..PAGES {
        let page = store.sql.query(statement!("figures_unread.sql")).bind(after).bind(PAGE);
        let rows = page.fetch_all(conn, OP).await?;
        for row in &rows {
            after = row.number(0, OP)?;
            tally.take(&progress, &Address::of(row, after, row.number(3, OP)?, OP)?);
        }
        if (rows.len() as i64) < PAGE || after >= progress.furthest() {
            return Ok(tally.replayed(true));
        }
    }
    Ok(tally.replayed(false))
}
