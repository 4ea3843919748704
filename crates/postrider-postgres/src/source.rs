//! The outbox as what a relay is made on: the log, and the transactions that handlers are given.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Clock, Effect, Error, ErrorKind, EventBus, Lease, Limits, NewEvent, OutboxSource, Recordable, Recorded,
    Result, Store, Uuid,
};
use postrider_sql::session::{LOOK, MARGIN, permit, within};
use sqlx_core::error::Error as SqlxError;
use sqlx_core::row::Row;
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use sqlx_postgres::{PgConnection, PgTransactionManager};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{acquire, during, is_unsendable};
use crate::outbox::Outbox;
use crate::row::{self, Names};
use crate::session::{SessionTransaction, Sessions};
use crate::sql::Sql;

const NOT_WHOLE: &str = "the handler's transaction ended before the handler did, or a statement in it failed; nothing was committed. A \
    handler must return the errors of its statements, or roll back to a savepoint, and must not commit or roll back \
    the transaction itself";

/// The transaction of a handler.
#[derive(Debug)]
pub struct HandlerTransaction {
    transaction: SessionTransaction,
    marks: Marks,
    /// How long its begin and its end may take each.
    limit: Duration,
    /// Handlers leave some of the pool's connections to the application.
    _permit: OwnedSemaphorePermit,
}

/// What a transaction has marked, and how it is known again.
#[derive(Debug)]
struct Marks {
    pool: Sessions,
    sql: Arc<Sql>,
    /// The transaction's id.
    id: String,
    consumer: String,
    events: Vec<Uuid>,
}

impl HandlerTransaction {
    /// Commits, if it is still the transaction that began, and whole: of one that a statement has aborted, PostgreSQL would
    /// turn the commit into a rollback without a word.
    async fn commit(self) -> Result<()> {
        let Self { mut transaction, marks, limit: _, _permit } = self;
        let alone = PgTransactionManager::get_transaction_depth(&transaction) == 1;
        let proof = marks.sql.text("effect_whole", include_str!("../sql/effect_whole.sql")).query();
        let proof = proof.bind(marks.id.clone()).fetch_one(&mut *transaction).await;
        match proof.and_then(|row| row.try_get::<bool, _>(0)) {
            Ok(true) if alone => return transaction.commit().await.map_err(during("commit")),
            Ok(_) | Err(SqlxError::Database(_)) => {}
            Err(error) => return Err(during("commit")(error)),
        }
        // A session on which this fails is given up, and the server rolls back.
        while PgTransactionManager::get_transaction_depth(&transaction) > 1
            && PgTransactionManager::rollback(&mut transaction).await.is_ok()
        {}
        let _ = transaction.rollback().await;
        marks.take_back().await?;
        Err(Error::new(ErrorKind::Invalid, "commit", NOT_WHOLE))
    }
}

impl Marks {
    /// Takes back the marks that a handler has committed by itself. Only what this transaction wrote: somebody else may have
    /// handled the events since.
    async fn take_back(self) -> Result<()> {
        let unmark = self.sql.text("effect_unmark", include_str!("../sql/effect_unmark.sql")).query();
        let unmark = unmark.bind(self.consumer).bind(self.events).bind(self.id);
        unmark.execute(&self.pool).await.map_err(during("commit"))?;
        Ok(())
    }
}

impl Deref for HandlerTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for HandlerTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}

#[async_trait]
impl OutboxSource for Outbox {
    type Connection = PgConnection;
    type Transaction = HandlerTransaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store().await?))
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)> {
        Limits::check_consumer(effect.consumer)?;
        let permit = permit(&self.handlers, "begin").await?;
        let limit = effect.timeout + MARGIN;
        within(limit, "begin", self.begin_marked(effect, permit, limit)).await
    }

    async fn commit(transaction: Self::Transaction) -> Result<()> {
        within(transaction.limit, "commit", transaction.commit()).await
    }

    async fn rollback(transaction: Self::Transaction) -> Result<()> {
        let rollback = async { transaction.transaction.rollback().await.map_err(during("rollback")) };
        within(transaction.limit, "rollback", rollback).await
    }

    async fn mark_in(&self, connection: &mut PgConnection, consumer: &str, id: Uuid) -> Result<bool> {
        self.inbox(consumer).first_time(connection, id).await
    }

    async fn record_in(&self, connection: &mut PgConnection, event: &NewEvent) -> Result<Uuid> {
        self.record(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_outside_transaction(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        let outcome = self.list(&self.sql, after, limit).await;
        match outcome {
            Err(error) if is_unsendable(&error) => self.list(&self.sql.careful(), after, limit).await,
            other => other,
        }
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        let query = self.sql.handled.query().bind(consumer.to_owned()).bind(events.to_vec());
        let look = async {
            let mut connection = self.sessions().hold("inbox").await?;
            let rows = query.fetch_all(&mut *connection).await.map_err(during("inbox"))?;
            connection.finish("inbox").await?;
            Ok(rows)
        };
        let rows = within(LOOK, "inbox", look).await?;
        let known = rows.iter().map(|row| row.try_get(0)).collect::<Result<HashSet<Uuid>, _>>();
        let known = known.map_err(during("inbox"))?;
        Ok(events.iter().map(|event| known.contains(event)).collect())
    }
}

impl Outbox {
    /// Begins the transaction of a handler and marks its events.
    async fn begin_marked(
        &self,
        effect: Effect<'_>,
        permit: OwnedSemaphorePermit,
        limit: Duration,
    ) -> Result<(HandlerTransaction, Vec<bool>)> {
        let begin = AssertSqlSafe(begin_within(effect.timeout)).into_sql_str();
        let session = acquire(&self.pool, "begin").await?;
        let mut tx = SessionTransaction::begin(session, Some(begin)).await.map_err(during("begin"))?;
        let row = self
            .sql
            .effect
            .query()
            .bind(effect.lease.map(|lease| lease.subscription.clone()))
            .bind(effect.lease.map(|lease| lease.lane.cast_signed()))
            .bind(effect.lease.map(|lease| lease.epoch))
            .bind(effect.lease.map(|lease| lease.owner.clone()))
            .bind(effect.consumer.to_owned())
            .bind(effect.events.to_vec())
            .bind(self.clock.now())
            .fetch_one(&mut *tx)
            .await
            .map_err(during("begin"))?;
        if !row.try_get::<bool, _>(0).map_err(during("begin"))? {
            tx.rollback().await.map_err(during("begin"))?;
            return Err(Lease::lost("begin"));
        }
        let marked: Option<Vec<Uuid>> = row.try_get(1).map_err(during("begin"))?;
        let marks = Marks {
            pool: self.sessions(),
            sql: Arc::clone(&self.sql),
            id: row.try_get(2).map_err(during("begin"))?,
            consumer: effect.consumer.to_owned(),
            events: marked.unwrap_or_default(),
        };
        let first: HashSet<Uuid> = marks.events.iter().copied().collect();
        let first = effect.events.iter().map(|event| first.contains(event)).collect();
        Ok((HandlerTransaction { transaction: tx, marks, limit, _permit: permit }, first))
    }

    async fn list(&self, sql: &Sql, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        let query = sql.text("recorded", include_str!("../sql/recorded.sql")).query();
        let mut connection = self.sessions().hold("read").await?;
        let query = query.bind(after).bind(i64::from(limit));
        let rows = query.fetch_all(&mut *connection).await.map_err(during("read"))?;
        connection.finish("read").await?;
        let mut names = Names::of(sql);
        rows.iter().map(|row| row::recorded(row, &mut names)).collect()
    }
}

#[async_trait]
impl EventBus<PgConnection> for Outbox {
    async fn publish(&self, within: &mut PgConnection, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        self.record(within, event).await
    }
}

/// Begins a transaction whose statements take so long at most, from the first one on: a query that is dropped in the
/// middle would otherwise make the rollback wait for it. For PostgreSQL, 0 would mean for ever.
fn begin_within(timeout: Duration) -> String {
    let millis = |time: Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1);
    format!(
        "begin read write; set local statement_timeout = {}; set local idle_in_transaction_session_timeout = {}",
        millis(timeout),
        millis(timeout + MARGIN)
    )
}
