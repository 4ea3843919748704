//! What a relay is made on: the log, and the transactions that handlers are given.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use async_trait::async_trait;
use postrider_core::{Clock, Effect, NewEvent, OutboxSource, Recorded, Result, Store};
use uuid::Uuid;

use crate::lane;
use crate::outbox::Outbox;
use crate::transaction::{Connection, Transaction};

#[async_trait]
impl OutboxSource for Outbox {
    type Connection = Connection;
    type Transaction = Transaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store()))
    }

    fn clock(&self) -> Clock {
        self.log.clock.clone()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(Transaction, Vec<bool>)> {
        let mut transaction = Transaction::begin(&self.log, Some(effect.timeout));
        if let Some(lease) = effect.lease {
            transaction.pin(lane::pin(&self.log, lease)?);
        }
        let inbox = self.inbox(effect.consumer);
        let mut firsts = Vec::with_capacity(effect.events.len());
        for event in effect.events {
            firsts.push(inbox.first_time(&mut transaction, *event).await?);
        }
        Ok((transaction, firsts))
    }

    async fn commit(transaction: Transaction) -> Result<()> {
        transaction.commit().await
    }

    async fn rollback(transaction: Transaction) -> Result<()> {
        transaction.rollback().await
    }

    async fn mark_in(&self, connection: &mut Connection, consumer: &str, id: Uuid) -> Result<bool> {
        self.inbox(consumer).first_time(connection, id).await
    }

    async fn record_in(&self, connection: &mut Connection, event: &NewEvent) -> Result<Uuid> {
        self.record(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_outside_transaction(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        let data = self.log.data();
        let following = data.places.range((Excluded(after), Unbounded)).take(limit as usize);
        Ok(following.filter_map(|(_, place)| data.events.get(place)).cloned().collect())
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        let (consumer, data): (Arc<str>, _) = (consumer.into(), self.log.data());
        Ok(events.iter().map(|event| data.inbox.contains_key(&(Arc::clone(&consumer), *event))).collect())
    }
}
