//! Leader leases: what one process does for all the others.

use std::time::Duration;

use postrider_core::{LeaderLease, Result};
use postrider_sql::clock::{micros_of, time_of};
use postrider_sql::{Columns, statement};

use crate::error::failed;
use crate::store::SqliteStore;

const OP: &str = "lead";

/// Acquires a leader lease, or extends it.
pub(crate) async fn take(
    store: &SqliteStore,
    task: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<LeaderLease>> {
    LeaderLease::check(task, owner, "")?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let take = store.sql.query(statement!("take_duty.sql")).bind(task).bind(owner);
    let row = take.bind(micros_of(lease)).bind(now).fetch_optional(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))?;
    let Some(row) = row else { return Ok(None) };
    let (until, note) = (row.time("lease_until", OP)?, row.maybe_text("note", OP)?);
    Ok(Some(LeaderLease { at: time_of(now), until, note }))
}

/// Writes a note, if the lease is still held.
pub(crate) async fn note(store: &SqliteStore, task: &str, owner: &str, note: &str) -> Result<bool> {
    LeaderLease::check(task, owner, note)?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let write = store.sql.query(statement!("note_duty.sql")).bind(task).bind(owner).bind(note).bind(now);
    let noted = write.execute(&mut tx, OP).await? > 0;
    tx.commit().await.map_err(failed(OP))?;
    Ok(noted)
}

/// Releases a leader lease.
pub(crate) async fn leave(store: &SqliteStore, task: &str, owner: &str) -> Result<()> {
    let mut tx = store.write(OP).await?;
    store.sql.query(statement!("leave_duty.sql")).bind(task).bind(owner).execute(&mut tx, OP).await?;
    tx.commit().await.map_err(failed(OP))
}
