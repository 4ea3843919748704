//! Leader leases: what one process does for all the others.

use std::time::Duration;

use postrider_core::{LeaderLease, Result};
use postrider_sql::clock::{micros_of, time_of};
use postrider_sql::{Columns, statement};

use crate::error::failed;
use crate::store::MySqlStore;

const OP: &str = "lead";

/// Acquires a leader lease, or extends it.
pub(crate) async fn take(
    store: &MySqlStore,
    task: &str,
    owner: &str,
    lease: Duration,
) -> Result<Option<LeaderLease>> {
    LeaderLease::check(task, owner, "")?;
    // In a transaction of its own: an insert that finds the row keeps it shared, and those who do wait for each other.
    let mut conn = store.conn(OP).await?;
    if store.sql.query(statement!("duty.sql")).bind(task).fetch_optional(&mut conn, OP).await?.is_none() {
        store.sql.query(statement!("make_duty.sql")).bind(task).execute(&mut conn, OP).await?;
    }
    drop(conn);
    let mut tx = store.write(OP).await?;
    let held = store.sql.query(statement!("duty.sql")).bind(task).fetch_one(&mut tx, OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let take = store.sql.query(statement!("take_duty.sql")).bind(task).bind(owner);
    let taken = take.bind(micros_of(lease)).bind(now).execute(&mut tx, OP).await? > 0;
    tx.commit().await.map_err(failed(OP))?;
    let until = time_of(now.saturating_add(micros_of(lease)));
    let note = held.maybe_text("note", OP)?;
    Ok(taken.then_some(LeaderLease { at: time_of(now), until, note }))
}

/// Writes a note, if the lease is still held.
pub(crate) async fn note(store: &MySqlStore, task: &str, owner: &str, note: &str) -> Result<bool> {
    LeaderLease::check(task, owner, note)?;
    let mut conn = store.conn(OP).await?;
    let now = store.now(&mut conn, OP).await?;
    let write = store.sql.query(statement!("note_duty.sql")).bind(task).bind(owner).bind(note).bind(now);
    Ok(write.execute(&mut conn, OP).await? > 0)
}

/// Releases a leader lease.
pub(crate) async fn leave(store: &MySqlStore, task: &str, owner: &str) -> Result<()> {
    let mut conn = store.conn(OP).await?;
    store.sql.query(statement!("leave_duty.sql")).bind(task).bind(owner).execute(&mut conn, OP).await?;
    Ok(())
}
