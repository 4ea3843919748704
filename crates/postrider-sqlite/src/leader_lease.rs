//! Duties: what one process does for all the others.

use std::time::Duration;

use postrider_core::{LeaderLease, Result};
use sqlx_core::row::Row;

use crate::clock::{micros_of, time_of};
use crate::error::failed;
use crate::sql::statement;
use crate::store::SqliteStore;

const OP: &str = "duty";

/// Takes a duty, or prolongs it.
pub(crate) async fn take(
    store: &SqliteStore,
    duty: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<LeaderLease>> {
    LeaderLease::check(duty, owner, "")?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let take = store.sql.query(statement!("take_duty.sql")).bind(duty).bind(owner);
    let row = take.bind(micros_of(lease)).bind(now).fetch_optional(&mut *tx).await.map_err(failed(OP))?;
    tx.commit().await.map_err(failed(OP))?;
    let Some(row) = row else { return Ok(None) };
    let until: i64 = row.try_get("lease_until").map_err(failed(OP))?;
    let note: Option<String> = row.try_get("note").map_err(failed(OP))?;
    Ok(Some(LeaderLease { at: time_of(now), until: time_of(until), note }))
}

/// Writes a note, if the duty is still held.
pub(crate) async fn note(store: &SqliteStore, duty: &str, owner: &str, note: &str) -> Result<bool> {
    LeaderLease::check(duty, owner, note)?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let write = store.sql.query(statement!("note_duty.sql")).bind(duty).bind(owner).bind(note).bind(now);
    let noted = write.execute(&mut *tx).await.map_err(failed(OP))?.rows_affected() > 0;
    tx.commit().await.map_err(failed(OP))?;
    Ok(noted)
}

/// Gives a duty back.
pub(crate) async fn leave(store: &SqliteStore, duty: &str, owner: &str) -> Result<()> {
    let mut tx = store.write(OP).await?;
    let leave = store.sql.query(statement!("leave_duty.sql")).bind(duty).bind(owner);
    leave.execute(&mut *tx).await.map_err(failed(OP))?;
    tx.commit().await.map_err(failed(OP))
}
