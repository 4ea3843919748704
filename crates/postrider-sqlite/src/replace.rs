//! A corrected event in place of a dead one, in one transaction.

use postrider_core::{ReplaceDead, Result};
use postrider_sql::{Columns, statement};

use crate::error::failed;
use crate::operate::audit;
use crate::record::insert;
use crate::store::SqliteStore;

/// Records the new event, discards the dead deliveries of the old one, and writes it down; the subscriptions that it was dead for.
pub(crate) async fn replace(store: &SqliteStore, replacement: &ReplaceDead) -> Result<Vec<String>> {
    const OP: &str = "replace";
    replacement.check()?;
    let mut tx = store.write(OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let dead_for = store.sql.query(statement!("dead_for.sql")).bind(replacement.event_id);
    let rows = dead_for.fetch_all(&mut tx, OP).await?;
    let mut discarded = Vec::new();
    for row in &rows {
        let subscription = row.text("subscription", OP)?.into_owned();
        let discard = store.sql.query(statement!("amend_discard.sql")).bind(&subscription);
        discard.bind(Some(replacement.event_id)).bind(now).execute(&mut tx, OP).await?;
        audit(store, &mut tx, &replacement.entry(Some(&subscription)), now).await?;
        discarded.push(subscription);
    }
    if discarded.is_empty() {
        return Err(replacement.not_dead(OP));
    }
    insert(&mut tx, &replacement.by).await?;
    // A commit is what sleeping relays look for.
    tx.commit().await.map_err(failed(OP))?;
    Ok(discarded)
}
