//! Retention: what leaves the log.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{ArchiveOptions, Result, Sweep, Sweepable, Swept};
use postrider_sql::clock::{micros_of, month};
use postrider_sql::{Columns, statement};
use sqlx_sqlite::SqliteConnection;

use crate::archive;
use crate::error::failed;
use crate::store::SqliteStore;

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
            let Some(horizon) = horizon(store, &mut conn, cutoff).await? else { return Ok(Sweepable::of(0)) };
            let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff);
            let chosen = chosen.bind(Sweepable::MOST).fetch_all(&mut conn, OP).await?;
            return Ok(Sweepable::of(chosen.len() as u64));
        }
        Sweep::Inbox { .. } => (statement!("sweepable_inbox.sql"), cutoff),
        Sweep::Archived { .. } => (statement!("sweepable_archived.sql"), month(cutoff)),
    };
    let count = store.sql.query(statement).bind(upto).bind(Sweepable::MOST).fetch_one(&mut conn, OP).await?;
    Ok(Sweepable::of(count.number(0, OP)?.unsigned_abs()))
}

/// Up to which id every subscription had settled everything by a time; nothing while there is no subscription.
async fn horizon(store: &SqliteStore, conn: &mut SqliteConnection, cutoff: i64) -> Result<Option<i64>> {
    let horizon = store.sql.query(statement!("horizon.sql")).bind(cutoff).fetch_one(conn, OP).await?;
    horizon.maybe_number("horizon", OP)
}

async fn archived(store: &SqliteStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let cutoff = store.now(&mut tx, OP).await?.saturating_sub(micros_of(older_than));
    let delete = store.sql.query(statement!("sweep_archived.sql")).bind(month(cutoff)).bind(limit);
    let taken = delete.execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(Swept::of(taken, limit))
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
    let Some(horizon) = horizon(store, &mut tx, cutoff).await? else { return Ok(Swept::default()) };

    let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff).bind(limit);
    let chosen = chosen.fetch_all(&mut tx, OP).await?;
    if chosen.is_empty() {
        return Ok(Swept::default());
    }
    let mut ids = chosen.iter().map(|row| row.number(0, OP)).collect::<Result<Vec<_>>>()?;
    if keep.is_some_and(|archiving| !archiving.is_plain()) {
        ids.truncate(archive::fitting(store, &mut tx, &ids).await?);
    }
    let taken = ids.len();
    let ids = serde_json::Value::from(ids).to_string();
    match keep {
        Some(archiving) if archiving.is_plain() => {
            let archive = store.sql.query(statement!("sweep_archive.sql")).bind(&ids).bind(now);
            archive.execute(&mut tx, OP).await?;
        }
        Some(archiving) => archive::file(store, &mut tx, archiving, &ids, now).await?,
        None => {}
    }
    store.sql.run(&mut tx, statement!("sweep_mark.sql"), &ids, OP).await?;
    store.sql.query(statement!("sweep_guard.sql")).execute(&mut tx, OP).await?;
    store.sql.run(&mut tx, statement!("sweep_events.sql"), &ids, OP).await?;
    store.sql.query(statement!("sweep_unguard.sql")).execute(&mut tx, OP).await?;
    store.sql.run(&mut tx, statement!("sweep_deliveries.sql"), &ids, OP).await?;
    let batches = store.sql.query(statement!("sweep_batches.sql")).bind(cutoff).bind(horizon);
    batches.execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    let swept = Swept::of(taken as u64, limit);
    Ok(Swept { more: swept.more || taken < chosen.len(), ..swept })
}

async fn inbox(store: &SqliteStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let cutoff = store.now(&mut tx, OP).await?.saturating_sub(micros_of(older_than));
    let forget = store.sql.query(statement!("sweep_inbox.sql")).bind(cutoff).bind(limit);
    let rows = forget.fetch_all(&mut tx, OP).await?;
    let mut forgotten: BTreeMap<String, i64> = BTreeMap::new();
    for row in &rows {
        let at = row.number("handled_at", OP)?;
        let last = forgotten.entry(row.text(0, OP)?.into_owned()).or_insert(at);
        *last = at.max(*last);
    }
    for (consumer, at) in forgotten {
        store
            .sql
            .query(statement!("sweep_forgotten.sql"))
            .bind(consumer)
            .bind(at)
            .execute(&mut tx, OP)
            .await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(Swept::of(rows.len() as u64, limit))
}
