//! Retention: what leaves the log.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{ArchiveOptions, Result, Sweep, Sweepable, Swept};
use postrider_sql::clock::{micros_of, month};
use postrider_sql::sweep::SweepableStatements;
use postrider_sql::{Columns, statement};

use crate::archive;
use crate::error::failed;
use crate::store::SqliteStore;

const OP: &str = "sweep";
const SWEEPABLE: SweepableStatements = SweepableStatements {
    horizon: statement!("horizon.sql"),
    events: statement!("sweep.sql"),
    inbox: statement!("sweepable_inbox.sql"),
    archived: statement!("sweepable_archived.sql"),
};

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
    let now = store.now(&mut conn, OP).await?;
    store.sql.sweepable(SWEEPABLE, &mut conn, sweep, now, OP).await
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
    let horizon = store.sql.horizon(statement!("horizon.sql"), &mut tx, cutoff, OP).await?;
    let Some(horizon) = horizon else { return Ok(Swept::default()) };

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
