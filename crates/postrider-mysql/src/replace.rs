//! A corrected event in place of a dead one, in one transaction.

use postrider_core::{ReplaceDead, Result};
use postrider_sql::{Columns, statement};

use crate::delivery::{Step, amend};
use crate::error::failed;
use crate::operate::audit;
use crate::record::insert;
use crate::store::MySqlStore;

/// Records the new event, discards the dead deliveries of the old one, and writes it down; the subscriptions that it was dead for.
pub(crate) async fn replace(store: &MySqlStore, replacement: &ReplaceDead) -> Result<Vec<String>> {
    const OP: &str = "replace";
    replacement.check()?;
    let mut tx = store.write(OP).await?;
    let dead_for = store.sql.query(statement!("dead_for.sql")).bind(replacement.event_id);
    let rows = dead_for.fetch_all(&mut tx, OP).await?;
    let now = store.now(&mut tx, OP).await?;
    let mut discarded = Vec::new();
    // By name: two who replace at once wait for each other in one order.
    for row in &rows {
        let (subscription, number) = (row.text("subscription", OP)?.into_owned(), row.number("id", OP)?);
        store.sql.query(statement!("lanes_lock.sql")).bind(&subscription).fetch_all(&mut tx, OP).await?;
        if amend(store, &mut tx, &subscription, &[number], Step::Discard, now, OP).await? > 0 {
            audit(store, &mut tx, &replacement.entry(Some(&subscription)), now).await?;
            discarded.push(subscription);
        }
    }
    if discarded.is_empty() {
        return Err(replacement.not_dead(OP));
    }
    insert(&mut tx, &replacement.by).await?;
    tx.commit().await.map_err(failed(OP))?;
    store.ring(OP).await?;
    Ok(discarded)
}
