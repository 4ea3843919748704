//! The outbox as what a relay is made on: the log, and the transactions that handlers are given.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use postrider_core::{
    Clock, Effect, EventBus, Lease, Limits, NewEvent, OutboxSource, Recordable, Recorded, Result, Store,
};
use postrider_sql::clock::given;
use postrider_sql::event::Names;
use postrider_sql::session::permit;
use postrider_sql::{Columns, json, statement};
use sqlx_sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use crate::error::failed;
use crate::outbox::Outbox;
use crate::row;
use crate::sql::Sql;
use crate::transaction::HandlerTransaction;

const BEGIN: &str = "begin";
const INBOX: &str = "inbox";

/// A handler's transaction has the database's one write lock: nobody can claim its lane meanwhile, and nothing in it waits for
/// anybody, so the timeout of a statement has no meaning here.
#[async_trait]
impl OutboxSource for Outbox {
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
        Limits::check_consumer(effect.consumer)?;
        let permit = permit(&self.handlers, BEGIN).await?;
        let mut tx = HandlerTransaction::begin(&self.pool, permit).await?;
        if let Some(lease) = effect.lease
            && !is_held(&mut tx, lease).await?
        {
            tx.rollback(BEGIN).await?;
            return Err(Lease::lost(BEGIN));
        }
        let mark = Sql::default().query(statement!("effect.sql")).bind(effect.consumer);
        let mark = mark.bind(json::ids(effect.events)).bind(given(&self.clock));
        let marked = mark.fetch_all(&mut tx, BEGIN).await?;
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

    async fn mark_in(&self, connection: &mut SqliteConnection, consumer: &str, id: Uuid) -> Result<bool> {
        self.inbox(consumer).first_time(connection, id).await
    }

    async fn record_in(&self, connection: &mut SqliteConnection, event: &NewEvent) -> Result<Uuid> {
        self.record(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_outside_transaction(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        const OP: &str = "read";
        let read = Sql::default().query(statement!("read.sql")).bind(after).bind(limit).bind(i64::MAX);
        let mut conn = self.pool.acquire().await.map_err(failed(OP))?;
        let mut names = Names::default();
        let event = |row| Ok(row::decoded(row, &mut names, OP)?.event);
        read.fetch_all(&mut conn, OP).await?.iter().map(event).collect()
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        let look = Sql::default().query(statement!("handled.sql")).bind(consumer).bind(json::ids(events));
        let mut conn = self.pool.acquire().await.map_err(failed(INBOX))?;
        let known = ids(&look.fetch_all(&mut conn, INBOX).await?, INBOX)?;
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
    let look = Sql::default().query(statement!("effect_lease.sql")).bind(&lease.subscription);
    let look = look.bind(lease.lane).bind(lease.epoch).bind(&lease.owner);
    Ok(look.fetch_optional(connection, BEGIN).await?.is_some())
}

fn ids(rows: &[SqliteRow], op: &'static str) -> Result<HashSet<Uuid>> {
    rows.iter().map(|row| row.id(0, op)).collect()
}
