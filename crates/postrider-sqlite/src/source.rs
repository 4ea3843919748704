//! The outbox as what a relay is made on: the log, and the transactions that handlers are given.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use postrider_core::{
    Clock, Effect, Error, ErrorKind, EventBus, Lease, NewEvent, Recordable, Recorded, Result, Source, Store,
};
use sqlx_core::query::query;
use sqlx_core::row::Row;
use sqlx_sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use crate::clock::given;
use crate::error::failed;
use crate::inbox::check_consumer;
use crate::outbox::Outbox;
use crate::row::{self, Names};
use crate::transaction::HandlerTransaction;

const BEGIN: &str = "begin";
const INBOX: &str = "inbox";

/// A handler's transaction has the database's one write lock: nobody can claim its lane meanwhile, and nothing in it waits for
/// anybody, so the timeout of a statement has no meaning here.
#[async_trait]
impl Source for Outbox {
    type Connection = SqliteConnection;
    type Transaction = HandlerTransaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store()))
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)> {
        check_consumer(effect.consumer)?;
        let permit = Arc::clone(&self.handlers).acquire_owned().await.map_err(|_| {
            Error::new(ErrorKind::PoolExhausted, BEGIN, "no more transactions are given to handlers")
        })?;
        let mut tx = HandlerTransaction::begin(&self.pool, permit).await?;
        if let Some(lease) = effect.lease
            && !is_held(&mut tx, lease).await?
        {
            tx.rollback(BEGIN).await?;
            let message =
                "the lease of the lane was lost; nothing was marked, and another relay handles its events";
            return Err(Error::new(ErrorKind::LeaseLost, BEGIN, message));
        }
        let mark =
            query(include_str!("../sql/effect.sql")).bind(effect.consumer).bind(to_json(effect.events));
        let marked = mark.bind(given(&self.clock)).fetch_all(&mut *tx).await.map_err(failed(BEGIN))?;
        let first = ids(&marked, BEGIN)?;
        let first = effect.events.iter().map(|event| first.contains(event)).collect();
        tx.seal().await?;
        Ok((tx, first))
    }

    async fn commit(transaction: Self::Transaction) -> Result<()> {
        transaction.commit().await
    }

    async fn rollback(transaction: Self::Transaction) -> Result<()> {
        transaction.rollback("rollback").await
    }

    async fn record_in(&self, connection: &mut SqliteConnection, event: &NewEvent) -> Result<Uuid> {
        self.record(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_outside_transaction(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        let read = query(include_str!("../sql/read.sql")).bind(after).bind(i64::from(limit)).bind(i64::MAX);
        let rows = read.fetch_all(&self.pool).await.map_err(failed("read"))?;
        let mut names = Names::default();
        rows.iter().map(|row| Ok(row::recorded(row, &mut names, "read")?.0)).collect()
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        let look = query(include_str!("../sql/handled.sql")).bind(consumer).bind(to_json(events));
        let known = ids(&look.fetch_all(&self.pool).await.map_err(failed(INBOX))?, INBOX)?;
        Ok(events.iter().map(|event| known.contains(event)).collect())
    }
}

#[async_trait]
impl EventBus<SqliteConnection> for Outbox {
    async fn publish(&self, within: &mut SqliteConnection, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        self.record(within, event).await
    }
}

async fn is_held(connection: &mut SqliteConnection, lease: &Lease) -> Result<bool> {
    let look = query(include_str!("../sql/effect_lease.sql")).bind(&lease.subscription);
    let look = look.bind(i64::from(lease.lane)).bind(lease.epoch).bind(&lease.owner);
    Ok(look.fetch_optional(connection).await.map_err(failed(BEGIN))?.is_some())
}

fn to_json(events: &[Uuid]) -> String {
    serde_json::Value::from_iter(events.iter().map(|event| event.simple().to_string())).to_string()
}

fn ids(rows: &[SqliteRow], op: &'static str) -> Result<HashSet<Uuid>> {
    rows.iter().map(|row| row.try_get(0).map_err(failed(op))).collect()
}
