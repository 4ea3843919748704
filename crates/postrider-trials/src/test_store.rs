//! A database for trials, with the tables of an application: what is changed, what was seen, what was applied.

use std::any::Any;
use std::time::Duration;

use async_trait::async_trait;
use postrider::Uuid;
use postrider::store::OutboxSource;

use crate::Moved;
use crate::relay_options::RelayOptions;

/// A call of the plain handler, as it left its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Its place among all calls.
    pub at: i64,
    /// The event.
    pub event: Uuid,
    /// The event's number in the log.
    pub number: i64,
    /// The event's account.
    pub account: String,
    /// The account's version.
    pub version: i64,
    /// Which try it was.
    pub attempt: i64,
    /// Whose call it was.
    pub relay_process: String,
}

/// What a transactional handler has left. Nothing in the database keeps an event from leaving two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The event.
    pub event: Uuid,
    /// The event's account.
    pub account: String,
    /// The account's version.
    pub version: i64,
}

/// Who holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The subscription.
    pub subscription: String,
    /// Its lane.
    pub lane: i64,
    /// The holder, if there is one.
    pub owner: Option<String>,
}

/// A transaction of a writer.
#[derive(Debug, Clone)]
pub struct Change {
    /// The account to change.
    pub account: String,
    /// How long the transaction stays open after it has recorded.
    pub hold: Duration,
    /// Whether it is rolled back in the end.
    pub give_up: bool,
    /// Whether its event is poison.
    pub poison: bool,
}

/// What removes a test store when it is dropped.
pub type Keep = Box<dyn Any + Send + Sync>;

/// A database of one kind.
#[async_trait]
pub trait StoreKind: Clone + Send + Sync + 'static {
    /// The outbox on it.
    type Outbox: OutboxSource;

    /// A new one, empty, that nobody else uses.
    async fn make() -> (Self, Keep);

    /// The one that a relay is sent to.
    async fn reach(options: &RelayOptions) -> postrider::Result<Self>;

    /// The options of a relay on this store.
    fn relay_options(&self, name: &str) -> RelayOptions;

    /// The outbox.
    fn outbox(&self) -> &Self::Outbox;

    /// Whether others can write: on SQLite a frozen process that is in a transaction keeps everybody from it.
    async fn can_be_written(&self) -> bool;

    /// The longest that a writer's transaction is held open, in milliseconds.
    fn longest_hold(&self) -> u64;
}

/// A database for trials, with the application's tables.
#[async_trait]
pub trait TestStore: StoreKind {
    /// Writes down a call of the plain handler, at once.
    async fn see(&self, sight: &Sight) -> sqlx::Result<()>;

    /// Writes down an effect, in the handler's transaction.
    async fn apply(
        &self,
        connection: &mut <Self::Outbox as OutboxSource>::Connection,
        event: Uuid,
        moved: &Moved,
    ) -> sqlx::Result<()>;

    /// One transaction of a writer: the event that it committed, if it did.
    async fn change(&self, change: &Change)
    -> Result<Option<Uuid>, Box<dyn std::error::Error + Send + Sync>>;

    /// All calls of the plain handler, in their order.
    async fn sights(&self) -> sqlx::Result<Vec<Sight>>;

    /// All effects, in their order.
    async fn applied(&self) -> sqlx::Result<Vec<Applied>>;

    /// Who holds which lane.
    async fn holders(&self) -> sqlx::Result<Vec<Holder>>;

    /// Whether all lanes have read to the end of the log.
    async fn is_read(&self) -> sqlx::Result<bool>;

    /// Lets the leases of a relay run out at once.
    async fn expire(&self, relay_process: &str) -> sqlx::Result<()>;

    /// Everything that settling leaves, but for who holds what: positions, settled batches, deliveries.
    async fn traces(&self) -> sqlx::Result<Vec<String>>;

    /// The lowest number of an event that this relay saw.
    async fn first_seen_by(&self, relay_process: &str) -> sqlx::Result<Option<i64>>;

    /// How many rows this relay has left so far, in both tables.
    async fn rows_of(&self, relay_process: &str) -> sqlx::Result<i64>;
}

/// What PostgreSQL and SQLite have in common: the same statements, in which `{app}` stands before the names of the application's
/// tables and `{log}` before those of the log.
macro_rules! test_store {
    ($land:ty) => {
        #[async_trait]
        impl TestStore for $land {
            async fn see(&self, sight: &Sight) -> sqlx::Result<()> {
                let sql = "insert into {app}seen (event_id, number, account, version, attempt, relay_process) values ($1, $2, $3, $4, $5, $6)";
                let insert = sqlx::query(self.sql(sql)).bind(sight.event).bind(sight.number).bind(sight.account.clone());
                let insert = insert.bind(sight.version).bind(sight.attempt).bind(sight.relay_process.clone());
                insert.execute(&self.outside).await?;
                Ok(())
            }

            async fn apply(
                &self,
                connection: &mut <<Self as crate::test_store::StoreKind>::Outbox as postrider::store::OutboxSource>::Connection,
                event: Uuid,
                moved: &crate::Moved,
            ) -> sqlx::Result<()> {
                let sql = "insert into {app}applied (event_id, account, version, relay_process) values ($1, $2, $3, $4)";
                let insert = sqlx::query(self.sql(sql)).bind(event).bind(moved.account.clone()).bind(moved.version);
                insert.bind(self.name.clone()).execute(connection).await?;
                Ok(())
            }

            async fn change(
                &self,
                change: &Change,
            ) -> Result<Option<Uuid>, Box<dyn std::error::Error + Send + Sync>> {
                let mut tx = self.begin().await?;
                let sql = "insert into {app}account as a (id, version) values ($1, 1) \
                           on conflict (id) do update set version = a.version + 1 returning version";
                let row = sqlx::query(self.sql(sql)).bind(change.account.clone()).fetch_one(&mut *tx).await?;
                let (account, version) = (change.account.clone(), row.try_get(0)?);
                let event = crate::Moved { account, version, poison: change.poison };
                let id = self.outbox.record(&mut tx, &event).await?;
                tokio::time::sleep(change.hold).await;
                if change.give_up {
                    tx.rollback().await?;
                    return Ok(None);
                }
                tx.commit().await?;
                Ok(Some(id))
            }

            async fn sights(&self) -> sqlx::Result<Vec<Sight>> {
                let sql = "select at, event_id, account, version, attempt, relay_process, number from {app}seen order by at";
                let rows = sqlx::query(self.sql(sql)).fetch_all(&self.pool).await?;
                let sight = |row: &_| {
                    let (at, event) = (Row::try_get(row, 0)?, Row::try_get(row, 1)?);
                    let (account, version) = (Row::try_get(row, 2)?, Row::try_get(row, 3)?);
                    let (attempt, relay_process) = (Row::try_get(row, 4)?, Row::try_get(row, 5)?);
                    Ok(Sight { at, event, number: Row::try_get(row, 6)?, account, version, attempt, relay_process })
                };
                rows.iter().map(sight).collect()
            }

            async fn applied(&self) -> sqlx::Result<Vec<Applied>> {
                let sql = "select event_id, account, version from {app}applied order by at";
                let rows = sqlx::query(self.sql(sql)).fetch_all(&self.pool).await?;
                let applied = |row: &_| {
                    let (event, account) = (Row::try_get(row, 0)?, Row::try_get(row, 1)?);
                    Ok(Applied { event, account, version: Row::try_get(row, 2)? })
                };
                rows.iter().map(applied).collect()
            }

            async fn holders(&self) -> sqlx::Result<Vec<Holder>> {
                let sql = "select subscription, cast(lane as bigint), lease_owner from {log}lane order by 1, 2";
                let rows = sqlx::query(self.sql(sql)).fetch_all(&self.pool).await?;
                let holder = |row: &_| {
                    let (subscription, lane) = (Row::try_get(row, 0)?, Row::try_get(row, 1)?);
                    Ok(Holder { subscription, lane, owner: Row::try_get(row, 2)? })
                };
                rows.iter().map(holder).collect()
            }

            async fn is_read(&self) -> sqlx::Result<bool> {
                let sql = "select (select min({frontier}) from {log}lane) >= (select max(id) from {log}event)";
                sqlx::query(self.sql(sql)).fetch_one(&self.pool).await?.try_get(0)
            }

            async fn expire(&self, relay_process: &str) -> sqlx::Result<()> {
                let sql = "update {log}lane set lease_until = {long_ago} where lease_owner = $1";
                sqlx::query(self.sql(sql)).bind(relay_process.to_owned()).execute(&self.pool).await?;
                Ok(())
            }

            async fn traces(&self) -> sqlx::Result<Vec<String>> {
                let sql = "select 'lane ' || subscription || ' ' || lane || ' ' || position as trace from {log}lane \
                           union all select 'batch ' || subscription || ' ' || lane || ' ' || first_id || ' ' || last_id || ' ' \
                               || count || ' ' || settled_by from {log}settled_batch \
                           union all select 'delivery ' || subscription || ' ' || id || ' ' || state || ' ' || attempts || ' ' \
                               || coalesce(error_code, '') from {log}delivery \
                           order by 1";
                let rows = sqlx::query(self.sql(sql)).fetch_all(&self.pool).await?;
                rows.iter().map(|row| row.try_get(0)).collect()
            }

            async fn first_seen_by(&self, relay_process: &str) -> sqlx::Result<Option<i64>> {
                let look = sqlx::query(self.sql("select min(number) from {app}seen where relay_process = $1"));
                look.bind(relay_process.to_owned()).fetch_one(&self.pool).await?.try_get(0)
            }

            async fn rows_of(&self, relay_process: &str) -> sqlx::Result<i64> {
                let sql = "select (select count(*) from {app}seen where relay_process = $1) \
                                + (select count(*) from {app}applied where relay_process = $1)";
                let row = sqlx::query(self.sql(sql)).bind(relay_process.to_owned()).fetch_one(&self.pool).await?;
                row.try_get(0)
            }
        }
    };
}

pub(crate) use test_store;
