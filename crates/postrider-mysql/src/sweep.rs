//! Retention: what leaves the log.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{Result, Sweep, Swept};
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::clock::micros_of;
use crate::error::failed;
use crate::row::{self, maybe_number, number, text};
use crate::sql::{Statement, statement};
use crate::store::MySqlStore;

const OP: &str = "sweep";

/// One round of retention.
pub(crate) async fn sweep(store: &MySqlStore, sweep: &Sweep) -> Result<Swept> {
    match *sweep {
        Sweep::Archive { older_than, limit } => events(store, older_than, limit, true).await,
        Sweep::Prune { older_than, limit } => events(store, older_than, limit, false).await,
        Sweep::Inbox { older_than, limit } => inbox(store, older_than, limit).await,
    }
}

async fn events(store: &MySqlStore, older_than: Duration, limit: u32, keep: bool) -> Result<Swept> {
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let cutoff = now.saturating_sub(micros_of(older_than));
    store.sql.query(statement!("sweep_lock.sql")).fetch_all(&mut tx, OP).await?;
    let horizon = store.sql.query(statement!("horizon.sql")).bind(cutoff).fetch_one(&mut tx, OP).await?;
    let horizon = maybe_number(&horizon, "horizon", OP)?;
    let Some(horizon) = horizon else { return Ok(Swept::default()) };

    let chosen = store.sql.query(statement!("sweep.sql")).bind(horizon).bind(cutoff).bind(limit);
    let chosen = chosen.fetch_all(&mut tx, OP).await?;
    if chosen.is_empty() {
        return Ok(Swept::default());
    }
    let (numbers, ids) = (list(&chosen, "seq")?, list(&chosen, "id")?);
    if keep {
        let archive = store.sql.query(statement!("sweep_archive.sql")).bind(&numbers).bind(now);
        archive.execute(&mut tx, OP).await?;
    }
    run(store, &mut tx, statement!("sweep_mark.sql"), &numbers).await?;
    store.sql.query(statement!("sweep_guard.sql")).execute(&mut tx, OP).await?;
    let deleted = run(store, &mut tx, statement!("sweep_events.sql"), &ids).await;
    store.sql.query(statement!("sweep_unguard.sql")).execute(&mut tx, OP).await?;
    deleted?;
    run(store, &mut tx, statement!("sweep_deliveries.sql"), &numbers).await?;
    run(store, &mut tx, statement!("sweep_numbers.sql"), &numbers).await?;
    let batches = store.sql.query(statement!("sweep_batches.sql")).bind(cutoff).bind(horizon);
    let batches = batches.fetch_all(&mut tx, OP).await?;
    run(store, &mut tx, statement!("sweep_batches_gone.sql"), &list(&batches, "id")?).await?;
    tx.commit().await.map_err(failed(OP))?;
    Ok(swept(chosen.len() as u64, limit))
}

async fn run(store: &MySqlStore, conn: &mut MySqlConnection, statement: Statement, ids: &str) -> Result<()> {
    store.sql.query(statement).bind(ids).execute(conn, OP).await?;
    Ok(())
}

/// The numbers of a column, as a JSON array.
fn list(rows: &[MySqlRow], column: &str) -> Result<String> {
    let numbers = rows.iter().map(|row| number(row, column, OP)).collect::<Result<Vec<_>>>()?;
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
        let at = number(row, "handled_at", OP)?;
        let (last, events) = forgotten.entry(text(row, 0, OP)?.into_owned()).or_default();
        *last = at.max(*last);
        events.push(row::id(row, 1, OP)?.simple().to_string());
    }
    for (consumer, (at, events)) in forgotten {
        let events = serde_json::Value::from(events).to_string();
        let gone = store.sql.query(statement!("sweep_inbox_gone.sql")).bind(&consumer).bind(events);
        gone.execute(&mut tx, OP).await?;
        let note = store.sql.query(statement!("sweep_forgotten.sql")).bind(consumer).bind(at);
        note.execute(&mut tx, OP).await?;
    }
    tx.commit().await.map_err(failed(OP))?;
    Ok(swept(rows.len() as u64, limit))
}

fn swept(taken: u64, limit: u32) -> Swept {
    Swept { taken, more: taken > 0 && taken >= u64::from(limit) }
}
