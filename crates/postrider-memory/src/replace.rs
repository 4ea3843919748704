//! A corrected event in place of a dead one, in one transaction.

use std::sync::Arc;

use postrider_core::{DeliveryState, ReplaceDead, Result};

use crate::log::Log;
use crate::operate::audit;
use crate::record::recorded_now;
use crate::transaction::Transaction;

/// Records the new event, discards the dead deliveries of the old one, and writes it down; the subscriptions that it was dead for.
pub(crate) async fn replace(log: &Arc<Log>, replacement: &ReplaceDead) -> Result<Vec<String>> {
    replacement.check()?;
    let mut transaction = Transaction::begin(log, None);
    recorded_now(&mut transaction, replacement.by.clone()).await?;
    transaction.commit_with(|data| {
        let now = log.now();
        let mut discarded = Vec::new();
        for (name, reader) in &mut data.readers {
            let mut deliveries = reader.deliveries.values_mut();
            let dead = deliveries.find(|delivery| {
                delivery.event_id == replacement.event_id && delivery.state == DeliveryState::Dead
            });
            if let Some(delivery) = dead {
                delivery.state = DeliveryState::Discarded;
                (delivery.next_at, delivery.holds) = (None, false);
                discarded.push(name.clone());
            }
        }
        if discarded.is_empty() {
            return Err(replacement.not_dead("replace"));
        }
        discarded.sort_unstable();
        for name in &discarded {
            audit(data, replacement.entry(Some(name)), now);
        }
        Ok(discarded)
    })
}
