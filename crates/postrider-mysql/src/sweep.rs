//! Retention: what leaves the log.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{ArchiveOptions, Result, Sweep, Sweepable, Swept};
use postrider_sql::clock::{micros_of, month};
use postrider_sql::sweep::SweepableStatements;
use postrider_sql::{Columns, statement};
use sqlx_mysql::MySqlRow;

use crate::archive;
use crate::error::failed;
use crate::months;
use crate::store::MySqlStore;

const OP: &str = "sweep";
const SWEEPABLE: SweepableStatements = SweepableStatements {
    horizon: statement!("horizon.sql"),
    events: statement!("sweep.sql"),
    inbox: statement!("sweepable_inbox.sql"),
    archived: statement!("sweepable_archived.sql"),
};

/// One round of retention.
pub(crate) async fn sweep(store: &MySqlStore, sweep: &Sweep) -> Result<Swept> {
    match sweep {
        Sweep::Archive { older_than, limit, archiving } => {
            if archiving.by_month && archiving.target.is_none() {
                months::make(store).await?;
            }
            events(store, *older_than, *limit, Some(archiving)).await
        }
        Sweep::Prune { older_than, limit } => events(store, *older_than, *limit, None).await,
        Sweep::Inbox { older_than, limit } => inbox(store, *older_than, *limit).await,
        Sweep::Archived { older_than, limit } => archived(store, *older_than, *limit).await,
    }
}

/// How much a sweep would take.
pub(crate) async fn sweepable(store: &MySqlStore, sweep: &Sweep) -> Result<Sweepable> {
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    store.sql.sweepable(SWEEPABLE, &mut conn, sweep, now, OP).await
}

/// Drops the first month of the archive that is old enough. What does not lie in a partition of its own is deleted.
async fn archived(store: &MySqlStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut conn = store.conn(OP).await?;
    let cutoff = store.now(&mut conn, OP).await?.saturating_sub(micros_of(older_than));
    if let Some(taken) = months::drop_first(store, &mut conn, month(cutoff)).await? {
        return Ok(Swept { taken, more: true });
    }
    let delete = store.sql.query(statement!("sweep_archived.sql")).bind(month(cutoff)).bind(limit);
    Ok(Swept::of(delete.execute(&mut conn, OP).await?, limit))
}

/// Deletes events, or files them first.
async fn events(
    store: &MySqlStore,
    older_than: Duration,
    limit: u32,
    keep: Option<&ArchiveOptions>,
) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let cutoff = now.saturating_sub(micros_of(older_than));
    store.sql.query(statement!("sweep_lock.sql")).fetch_all(&mut tx, OP).await?;
    let horizon = store.sql.horizon(statement!("horizon.sql"), &mut tx, cutoff, OP).await?;
    let Some(horizon) = horizon else { return Ok(Swept::default()) };

    let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff).bind(limit);
    let chosen = chosen.fetch_all(&mut tx, OP).await?;
    if chosen.is_empty() {
        return Ok(Swept::default());
    }
    let mut places = places(&chosen)?;
    if keep.is_some_and(|archiving| !archiving.is_plain()) {
        places.truncate(archive::fitting(store, &mut tx, &places).await?);
    }
    let last = places.iter().map(|[number, _]| *number).max().unwrap_or(0);
    let (taken, places) = (places.len(), serde_json::json!(places).to_string());
    match keep {
        Some(archiving) if archiving.is_plain() => {
            let archive = store.sql.query(statement!("sweep_archive.sql")).bind(&places).bind(now);
            archive.execute(&mut tx, OP).await?;
        }
        Some(archiving) => archive::file(store, &mut tx, archiving, &places, now).await?,
        None => {}
    }
    store.sql.run(&mut tx, statement!("sweep_mark.sql"), &places, OP).await?;
    store.sql.query(statement!("sweep_guard.sql")).execute(&mut tx, OP).await?;
    let deleted = store.sql.run(&mut tx, statement!("sweep_events.sql"), &places, OP).await;
    store.sql.query(statement!("sweep_unguard.sql")).execute(&mut tx, OP).await?;
    deleted?;
    store.sql.run(&mut tx, statement!("sweep_deliveries.sql"), &places, OP).await?;
    let runs = store.sql.query(statement!("sweep_runs.sql")).bind(last).fetch_all(&mut tx, OP).await?;
    store.sql.run(&mut tx, statement!("sweep_runs_gone.sql"), list(&runs, "seq")?, OP).await?;
    let batches = store.sql.query(statement!("sweep_batches.sql")).bind(cutoff).bind(horizon);
    let batches = batches.fetch_all(&mut tx, OP).await?;
    store.sql.run(&mut tx, statement!("sweep_batches_gone.sql"), list(&batches, "id")?, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    let swept = Swept::of(taken as u64, limit);
    Ok(Swept { more: swept.more || taken < chosen.len(), ..swept })
}

/// The numbers and ids of the events that were chosen.
fn places(rows: &[MySqlRow]) -> Result<Vec<[i64; 2]>> {
    rows.iter().map(|row| Ok([row.number("seq", OP)?, row.number("id", OP)?])).collect()
}

/// The numbers of a column, as a JSON array.
fn list(rows: &[MySqlRow], column: &str) -> Result<String> {
    let numbers = rows.iter().map(|row| row.number(column, OP)).collect::<Result<Vec<_>>>()?;
    Ok(serde_json::Value::from(numbers).to_string())
}

async fn inbox(store: &MySqlStore, older_than: Duration, limit: u32) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let forget =
        store.sql.query(statement!("sweep_inbox.sql")).bind(now.saturating_sub(micros_of(older_than)));
    let rows = forget.bind(limit).fetch_all(&mut tx, OP).await?;
    let mut forgotten: BTreeMap<String, (i64, Vec<String>)> = BTreeMap::new();
    for row in &rows {
        let at = row.number("handled_at", OP)?;
        let (last, events) = forgotten.entry(row.text(0, OP)?.into_owned()).or_default();
        *last = at.max(*last);
        events.push(row.id(1, OP)?.simple().to_string());
    }
    for (consumer, (at, events)) in forgotten {
        let events = serde_json::Value::from(events).to_string();
        let gone = store.sql.query(statement!("sweep_inbox_gone.sql")).bind(&consumer).bind(events);
        gone.execute(&mut tx, OP).await?;
        let note = store.sql.query(statement!("sweep_forgotten.sql")).bind(consumer).bind(at);
        note.execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(Swept::of(rows.len() as u64, limit))
}
