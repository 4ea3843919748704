//! The outbox as what a relay is made on: the log, and the transactions that handlers are given.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Clock, Effect, Error, ErrorKind, EventBus, Lease, Limits, NewEvent, OutboxSource, Recordable, Recorded,
    Result, Store,
};
use postrider_sql::clock::given;
use postrider_sql::event::Names;
use postrider_sql::session::{LOOK, MARGIN, permit, within};
use postrider_sql::{Columns, json, statement};
use sqlx_core::error::{DatabaseError, Error as SqlxError};
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::TransactionManager;
use sqlx_mysql::{MySqlConnection, MySqlDatabaseError, MySqlRow, MySqlTransactionManager};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::error::{acquire, failed};
use crate::outbox::Outbox;
use crate::pools::{Session, seconds};
use crate::row;
use crate::run::{self, EVENT};
use crate::sql::Sql;

const BEGIN: &str = "begin";
const INBOX: &str = "inbox";

/// Ends a handler's transaction and gives its session back what it had before. The server is asked for both at once: a process
/// that stands still in between would keep the door of its lane for as long as the application lets sessions sleep.
///
/// The savepoint of its begin goes first: without it the transaction is not the one that began, and nothing more is done. After a
/// deadlock, say, the server has rolled everything back, the marks included, and takes what follows for another transaction.
const COMMIT: &str = "release savepoint postrider_whole; commit; set session autocommit = @postrider_autocommit, \
     wait_timeout = @postrider_wait, innodb_lock_wait_timeout = @postrider_lock_wait";
const ROLLBACK: &str = "rollback; set session autocommit = @postrider_autocommit, wait_timeout = @postrider_wait, \
     innodb_lock_wait_timeout = @postrider_lock_wait";

/// The server's time, as the tables keep it.
const NOW: &str = "timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6))";

/// There is no such savepoint.
const NO_SAVEPOINT: u16 = 1305;

const NOT_WHOLE: &str = "the handler's transaction ended before the handler did; nothing of it counts as done. A handler must \
    return the errors of its statements (after a deadlock the server has rolled everything back), must leave commit and rollback \
    to the relay, and must not change tables or do anything else that commits by itself";

/// The transaction of a handler.
///
/// Dropped before its end, as when a handler's time is over, it closes its connection: the server rolls back, and no session goes
/// back to the application with settings that are not its own.
#[derive(Debug)]
pub struct HandlerTransaction {
    connection: Session,
    consumer: String,
    events: Vec<Uuid>,
    /// How long its begin and its end may take each.
    limit: Duration,
    /// Whether the session has its own settings again.
    restored: bool,
    /// Handlers leave some of the pool's connections to the application.
    _permit: OwnedSemaphorePermit,
}

impl HandlerTransaction {
    /// Begins one on a session that a process standing still can't keep for long. The driver is told of it, so that what handlers
    /// begin within is a savepoint.
    ///
    /// Without autocommit, because the server ends a transaction after some errors, and what a handler does after that must not
    /// be committed statement by statement.
    async fn begin(
        mut connection: Session,
        permit: OwnedSemaphorePermit,
        effect: &Effect<'_>,
        now: Option<i64>,
    ) -> Result<Self> {
        connection.begin(None).await.map_err(failed(BEGIN))?;
        let (consumer, events) = (effect.consumer.to_owned(), effect.events.to_vec());
        let limit = effect.timeout + MARGIN;
        let mut transaction = Self { connection, consumer, events, limit, restored: false, _permit: permit };
        let limit = format!(
            "set @postrider_wait = @@session.wait_timeout, @postrider_lock_wait = @@session.innodb_lock_wait_timeout, \
             @postrider_autocommit = @@session.autocommit, \
             @postrider_marked_at = {}, \
             @@session.autocommit = 0, @@session.wait_timeout = {}, @@session.innodb_lock_wait_timeout = {}; \
             savepoint postrider_whole",
            now.map_or_else(|| NOW.to_owned(), |now| now.to_string()),
            seconds(effect.timeout + MARGIN),
            seconds(effect.timeout)
        );
        raw_sql(AssertSqlSafe(limit)).execute(&mut *transaction).await.map_err(failed(BEGIN))?;
        Ok(transaction)
    }

    /// Commits, if it is still the transaction that began.
    async fn commit(mut self) -> Result<()> {
        let alone = MySqlTransactionManager::get_transaction_depth(&self) == 1;
        let committed =
            if alone { raw_sql(COMMIT).execute(&mut *self).await.map(|_| true) } else { Ok(false) };
        match committed {
            Ok(true) => {
                // It is committed: this only tells the driver, and a session that it fails on is closed.
                self.restored = MySqlTransactionManager::commit(&mut self).await.is_ok();
                return Ok(());
            }
            Err(SqlxError::Database(error)) if number_of(&*error) != NO_SAVEPOINT => {
                return Err(failed("commit")(SqlxError::Database(error)));
            }
            Ok(false) | Err(SqlxError::Database(_)) => {}
            Err(error) => return Err(failed("commit")(error)),
        }
        self.take_back().await?;
        self.rollback("commit").await?;
        Err(Error::new(ErrorKind::Invalid, "commit", NOT_WHOLE))
    }

    /// Takes back the marks that the handler has committed by itself. By their time as well: where the transaction was rolled
    /// back, a mark of these events is somebody else's.
    async fn take_back(&mut self) -> Result<()> {
        raw_sql("rollback").execute(&mut **self).await.map_err(failed("commit"))?;
        let unmark = Sql::default().query(statement!("effect_unmark.sql"));
        let unmark = unmark.bind(&self.consumer).bind(json::ids(&self.events));
        unmark.execute(&mut self.connection, "commit").await?;
        raw_sql("commit").execute(&mut **self).await.map_err(failed("commit"))?;
        Ok(())
    }

    async fn rollback(mut self, op: &'static str) -> Result<()> {
        raw_sql(ROLLBACK).execute(&mut *self).await.map_err(failed(op))?;
        self.restored = MySqlTransactionManager::rollback(&mut self).await.is_ok();
        Ok(())
    }
}

fn number_of(error: &dyn DatabaseError) -> u16 {
    error.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number)
}

impl Drop for HandlerTransaction {
    fn drop(&mut self) {
        if !self.restored {
            self.connection.give_up();
        }
    }
}

impl Deref for HandlerTransaction {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        &self.connection
    }
}

impl DerefMut for HandlerTransaction {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        &mut self.connection
    }
}

/// While a handler's transaction is open it keeps the door of its lane, which a claim has to have alone.
#[async_trait]
impl OutboxSource for Outbox {
    type Connection = MySqlConnection;
    type Transaction = HandlerTransaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store()))
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(Self::Transaction, Vec<bool>)> {
        Limits::check_consumer(effect.consumer)?;
        let permit = permit(&self.handlers, BEGIN).await?;
        within(effect.timeout + MARGIN, BEGIN, self.begin_marked(effect, permit)).await
    }

    async fn commit(transaction: Self::Transaction) -> Result<()> {
        within(transaction.limit, "commit", transaction.commit()).await
    }

    async fn rollback(transaction: Self::Transaction) -> Result<()> {
        within(transaction.limit, "rollback", transaction.rollback("rollback")).await
    }

    async fn mark_in(&self, connection: &mut MySqlConnection, consumer: &str, id: Uuid) -> Result<bool> {
        self.inbox(consumer).first_time(connection, id).await
    }

    async fn record_in(&self, connection: &mut MySqlConnection, event: &NewEvent) -> Result<Uuid> {
        self.record(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.record_outside_transaction(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        const OP: &str = "read";
        let mut conn = self.pools.conn(OP).await?;
        self.rounds.catch_up(Sql::default(), &mut conn, OP).await?;
        let mut names = Names::default();
        let mut events = Vec::new();
        let mut after = after;
        while events.len() < limit as usize {
            let left = i64::from(limit) - events.len() as i64;
            let runs = run::after(Sql::default(), &mut conn, after, i64::MAX, left, OP).await?;
            let Some(last) = runs.last() else { break };
            after = last.last;
            for read in run::read(Sql::default(), &mut conn, &runs, EVENT, None, OP).await? {
                events.push(Recorded { id: read.number, ..row::decoded(&read.row, &mut names, OP)?.event });
            }
        }
        Ok(events)
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        let look = async {
            let mut conn = acquire(&self.pool, INBOX).await?;
            handled(&mut conn, consumer, events).await
        };
        let known = within(LOOK, INBOX, look).await?;
        Ok(events.iter().map(|event| known.contains(event)).collect())
    }
}

impl Outbox {
    /// Begins the transaction of a handler and marks its events.
    async fn begin_marked(
        &self,
        effect: Effect<'_>,
        permit: OwnedSemaphorePermit,
    ) -> Result<(HandlerTransaction, Vec<bool>)> {
        let connection = acquire(&self.pool, BEGIN).await?;
        let mut tx = HandlerTransaction::begin(connection, permit, &effect, given(&self.clock)).await?;
        if let Some(lease) = effect.lease
            && !is_held(&mut tx, lease).await?
        {
            tx.rollback(BEGIN).await?;
            return Err(Lease::lost(BEGIN));
        }
        let first = self.mark(&mut tx, &effect).await?;
        let mut marked = first.iter();
        tx.events.retain(|_| marked.next().is_some_and(|first| *first));
        Ok((tx, first))
    }

    /// Marks the events of an effect, and says of each whether that is the first time. A statement says only how many were
    /// new; where that is not all, they are marked one by one.
    async fn mark(&self, conn: &mut MySqlConnection, effect: &Effect<'_>) -> Result<Vec<bool>> {
        let mark = |events: &[Uuid]| {
            let mark = Sql::default().query(statement!("effect.sql")).bind(effect.consumer);
            mark.bind(json::ids(events)).bind(effect.lease.is_some())
        };
        if effect.events.len() > 1 {
            raw_sql("savepoint postrider_effect").execute(&mut *conn).await.map_err(failed(BEGIN))?;
            if mark(effect.events).execute(conn, BEGIN).await? == effect.events.len() as u64 {
                return Ok(vec![true; effect.events.len()]);
            }
            raw_sql("rollback to postrider_effect").execute(&mut *conn).await.map_err(failed(BEGIN))?;
        }
        let mut first = Vec::with_capacity(effect.events.len());
        for event in effect.events {
            first.push(mark(std::slice::from_ref(event)).execute(conn, BEGIN).await? > 0);
        }
        Ok(first)
    }
}

#[async_trait]
impl EventBus<MySqlConnection> for Outbox {
    async fn publish(&self, within: &mut MySqlConnection, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        self.record(within, event).await
    }
}

async fn is_held(conn: &mut MySqlConnection, lease: &Lease) -> Result<bool> {
    let door = Sql::default().query(statement!("effect_door.sql")).bind(&lease.subscription).bind(lease.lane);
    if door.fetch_optional(conn, BEGIN).await?.is_none() {
        return Ok(false);
    }
    let look =
        Sql::default().query(statement!("effect_lease.sql")).bind(&lease.subscription).bind(lease.lane);
    let look = look.bind(lease.epoch).bind(&lease.owner);
    Ok(look.fetch_optional(conn, BEGIN).await?.is_some())
}

async fn handled(conn: &mut MySqlConnection, consumer: &str, events: &[Uuid]) -> Result<HashSet<Uuid>> {
    let look = Sql::default().query(statement!("handled.sql")).bind(consumer).bind(json::ids(events));
    look.fetch_all(conn, INBOX).await?.iter().map(|row: &MySqlRow| row.id(0, INBOX)).collect()
}
