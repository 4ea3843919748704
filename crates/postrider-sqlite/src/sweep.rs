//! Retention: what leaves the log.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{ArchiveOptions, Result, Sweep, Sweepable, Swept, month_of};
use sqlx_core::row::Row;
use sqlx_sqlite::SqliteConnection;

use crate::clock::{micros, micros_of, time_of};
use crate::error::failed;
use crate::sql::{Statement, statement};
use crate::store::SqliteStore;
use crate::{archive, row};

const OP: &str = "sweep";

/// One round of retention.
pub(crate) async fn sweep(store: &SqliteStore, sweep: &Sweep) -> Result<Swept> {
    match sweep {
        Sweep::Archive { older_than, limit, archiving } => {
            events(store, *older_than, *limit, Some(archiving)).await
        }
        Sweep::Prune { older_than, limit } => events(store, *older_than, *limit, None).await,
        Sweep::Inbox { older_than, limit } => inbox(store, *older_than, *limit).await,
        Sweep::Archived { older_than, limit } => archived(store, *older_than, *limit).await,
    }
}

/// How much a sweep would take.
pub(crate) async fn sweepable(store: &SqliteStore, sweep: &Sweep) -> Result<Sweepable> {
    let mut conn = store.conn(OP).await?;
    let cutoff = store.now(&mut conn, OP).await?.saturating_sub(micros_of(sweep.older_than()));
    let (statement, upto) = match sweep {
        Sweep::Archive { .. } | Sweep::Prune { .. } => {
            let horizon = store.sql.query(statement!("horizon.sql")).bind(cutoff).fetch_one(&mut *conn).await;
            let horizon: Option<i64> = horizon.and_then(|row| row.try_get("horizon")).map_err(failed(OP))?;
            let Some(horizon) = horizon else { return Ok(Sweepable::of(0)) };
            let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff);
            let chosen = chosen.bind(i64::from(Sweepable::MOST)).fetch_all(&mut *conn).await;
            return Ok(Sweepable::of(chosen.map_err(failed(OP))?.len() as u64));
        }
        Sweep::Inbox { .. } => (statement!("sweepable_inbox.sql"), cutoff),
        Sweep::Archived { .. } => (statement!("sweepable_archived.sql"), month(cutoff)),
    };
    let count = store.sql.query(statement).bind(upto).bind(i64::from(Sweepable::MOST));
    let row = count.fetch_one(&mut *conn).await.map_err(failed(OP))?;
    Ok(Sweepable::of(row.try_get::<i64, _>(0).map_err(failed(OP))?.unsigned_abs()))
}

/// When the month of a time began.
fn month(time: i64) -> i64 {
    micros(month_of(time_of(time)))
}

async fn archived(store: &SqliteStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let cutoff = store.now(&mut tx, OP).await?.saturating_sub(micros_of(older_than));
    let delete = store.sql.query(statement!("sweep_archived.sql")).bind(month(cutoff)).bind(i64::from(limit));
    let taken = delete.execute(&mut *tx).await.map_err(failed(OP))?.rows_affected();
    tx.commit().await.map_err(failed(OP))?;
    Ok(swept(taken, limit))
}

/// Deletes events, or files them first.
async fn events(
    store: &SqliteStore,
    older_than: Duration,
    limit: u32,
    keep: Option<&ArchiveOptions>,
) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let cutoff = now.saturating_sub(micros_of(older_than));
    let horizon = store.sql.query(statement!("horizon.sql")).bind(cutoff).fetch_one(&mut *tx).await;
    let horizon: Option<i64> = horizon.and_then(|row| row.try_get("horizon")).map_err(failed(OP))?;
    let Some(horizon) = horizon else { return Ok(Swept::default()) };

    let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff).bind(i64::from(limit));
    let chosen = chosen.fetch_all(&mut *tx).await.map_err(failed(OP))?;
    if chosen.is_empty() {
        return Ok(Swept::default());
    }
    let mut ids = chosen
        .iter()
        .map(|row| row.try_get::<i64, _>(0))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed(OP))?;
    if keep.is_some_and(|archiving| !archiving.is_plain()) {
        ids.truncate(archive::fitting(store, &mut tx, &ids).await?);
    }
    let taken = ids.len();
    let ids = serde_json::Value::from(ids).to_string();
    match keep {
        Some(archiving) if archiving.is_plain() => {
            let archive = store.sql.query(statement!("sweep_archive.sql")).bind(&ids).bind(now);
            archive.execute(&mut *tx).await.map_err(failed(OP))?;
        }
        Some(archiving) => archive::file(store, &mut tx, archiving, &ids, now).await?,
        None => {}
    }
    run(store, &mut tx, statement!("sweep_mark.sql"), &ids).await?;
    store.sql.query(statement!("sweep_guard.sql")).execute(&mut *tx).await.map_err(failed(OP))?;
    run(store, &mut tx, statement!("sweep_events.sql"), &ids).await?;
    store.sql.query(statement!("sweep_unguard.sql")).execute(&mut *tx).await.map_err(failed(OP))?;
    run(store, &mut tx, statement!("sweep_deliveries.sql"), &ids).await?;
    let batches = store.sql.query(statement!("sweep_batches.sql")).bind(cutoff).bind(horizon);
    batches.execute(&mut *tx).await.map_err(failed(OP))?;
    tx.commit().await.map_err(failed(OP))?;
    let swept = swept(taken as u64, limit);
    Ok(Swept { more: swept.more || taken < chosen.len(), ..swept })
}

async fn run(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    statement: Statement,
    ids: &str,
) -> Result<()> {
    store.sql.query(statement).bind(ids).execute(conn).await.map_err(failed(OP))?;
    Ok(())
}

async fn inbox(store: &SqliteStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let forget =
        store.sql.query(statement!("sweep_inbox.sql")).bind(now.saturating_sub(micros_of(older_than)));
    let rows = forget.bind(i64::from(limit)).fetch_all(&mut *tx).await.map_err(failed(OP))?;
    let mut forgotten: BTreeMap<String, i64> = BTreeMap::new();
    for row in &rows {
        let at: i64 = row.try_get("handled_at").map_err(failed(OP))?;
        let last = forgotten.entry(row::text(row, 0, OP)?.into_owned()).or_insert(at);
        *last = at.max(*last);
    }
    for (consumer, at) in forgotten {
        let note = store.sql.query(statement!("sweep_forgotten.sql")).bind(consumer).bind(at);
        note.execute(&mut *tx).await.map_err(failed(OP))?;
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(swept(rows.len() as u64, limit))
}

fn swept(taken: u64, limit: u32) -> Swept {
    Swept { taken, more: taken > 0 && taken >= u64::from(limit) }
}
