//! Hands the events of a transaction to the outbox.

use crate::application::port::OutboxEventPort;
use crate::application::problem::Answer;
use crate::domain::event::events_of;
use crate::domain::transaction::Transaction;

/// Records one event per leg, in the unit of work that changes the balances.
#[derive(Debug)]
pub struct OutboxEventRecorder;

impl OutboxEventRecorder {
    /// Records the events of a transaction, after its balances were written: an account's events have the order of its changes.
    pub async fn record<P: OutboxEventPort + Send>(port: &mut P, transaction: &Transaction) -> Answer<()> {
        for event in events_of(transaction) {
            port.save_event(&*event).await?;
        }
        Ok(())
    }
}
