//! The store on MariaDB or MySQL: a database of its own.

use std::str::FromStr;

use async_trait::async_trait;
use postrider::mysql::Outbox;
use postrider::store::OutboxSource;
use postrider::{Error, ErrorKind, Uuid};
use postrider_testkit::mysql::Database;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlRow};
use sqlx::{MySqlPool, Row};

use crate::Moved;
use crate::relay_options::RelayOptions;
use crate::test_store::{Applied, Change, Holder, Keep, Sight, StoreKind, TestStore};

const TABLES: [&str; 3] = [
    "create table account (id varchar(100) primary key, version bigint not null)",
    "create table seen (at bigint not null auto_increment primary key, event_id binary(16) not null, number bigint not null,
                        account varchar(100) not null, version bigint not null, attempt bigint not null,
                        relay_process varchar(100) not null, key (relay_process))",
    "create table applied (at bigint not null auto_increment primary key, event_id binary(16) not null,
                           account varchar(100) not null, version bigint not null, relay_process varchar(100) not null, key (relay_process))",
];

/// A database on a MariaDB or MySQL server.
#[derive(Clone)]
pub struct MyTestStore {
    /// Connections to the server.
    pub pool: MySqlPool,
    /// Connections to what stands for the outside world.
    outside: MySqlPool,
    url: String,
    name: String,
    outbox: Outbox,
}

async fn connect(url: &str, most: u32) -> sqlx::Result<MySqlPool> {
    MySqlPoolOptions::new().max_connections(most).connect_with(MySqlConnectOptions::from_str(url)?).await
}

#[async_trait]
impl StoreKind for MyTestStore {
    type Outbox = Outbox;

    async fn make() -> (Self, Keep) {
        let database = Database::new().await;
        let url = database.url();
        let pool = connect(&url, 24).await.expect("the server answers");
        let outbox = Outbox::migrated(&pool).await.expect("migrated");
        for table in TABLES {
            sqlx::raw_sql(table).execute(&pool).await.expect("the application's tables");
        }
        (Self { outside: pool.clone(), pool, url, name: "trial".to_owned(), outbox }, Box::new(database))
    }

    async fn reach(options: &RelayOptions) -> postrider::Result<Self> {
        let failed = |error: sqlx::Error| Error::new(ErrorKind::Unreachable, "reach", error.to_string());
        let pool = connect(&options.store, 8).await.map_err(failed)?;
        let outside = connect(&options.store, 4).await.map_err(failed)?;
        let outbox = Outbox::connect(&pool).await?;
        Ok(Self { pool, outside, url: options.store.clone(), name: options.name.clone(), outbox })
    }

    fn relay_options(&self, name: &str) -> RelayOptions {
        RelayOptions::new(name, &self.url, "")
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    async fn can_be_written(&self) -> bool {
        true
    }

    fn longest_hold(&self) -> u64 {
        30
    }
}

#[async_trait]
impl TestStore for MyTestStore {
    async fn see(&self, sight: &Sight) -> sqlx::Result<()> {
        let sql = "insert into seen (event_id, number, account, version, attempt, relay_process) values (?, ?, ?, ?, ?, ?)";
        let insert = sqlx::query(sql).bind(sight.event).bind(sight.number).bind(&sight.account);
        let insert = insert.bind(sight.version).bind(sight.attempt).bind(&sight.relay_process);
        insert.execute(&self.outside).await?;
        Ok(())
    }

    async fn apply(
        &self,
        connection: &mut <Outbox as OutboxSource>::Connection,
        event: Uuid,
        moved: &Moved,
    ) -> sqlx::Result<()> {
        let insert = sqlx::query(
            "insert into applied (event_id, account, version, relay_process) values (?, ?, ?, ?)",
        );
        let insert = insert.bind(event).bind(&moved.account).bind(moved.version).bind(&self.name);
        insert.execute(connection).await?;
        Ok(())
    }

    async fn change(
        &self,
        change: &Change,
    ) -> Result<Option<Uuid>, Box<dyn std::error::Error + Send + Sync>> {
        // Made on its own: two inserts of the same new row, and a gap that both have locked, are a deadlock.
        let there = sqlx::query("select 1 from account where id = ?").bind(&change.account);
        if there.fetch_optional(&self.pool).await?.is_none() {
            let made = sqlx::query("insert ignore into account values (?, 0)").bind(&change.account);
            made.execute(&self.pool).await?;
        }
        let mut tx = self.pool.begin().await?;
        let next = sqlx::query("update account set version = version + 1 where id = ?").bind(&change.account);
        next.execute(&mut *tx).await?;
        let version = sqlx::query_scalar("select version from account where id = ?").bind(&change.account);
        let version = version.fetch_one(&mut *tx).await?;
        let event = Moved { account: change.account.clone(), version, poison: change.poison };
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
        let sql =
            "select at, event_id, account, version, attempt, relay_process, number from seen order by at";
        let sight = |row: &MySqlRow| {
            let (at, event, account) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let (version, attempt, relay_process) = (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
            Ok(Sight { at, event, number: row.try_get(6)?, account, version, attempt, relay_process })
        };
        sqlx::query(sql).fetch_all(&self.pool).await?.iter().map(sight).collect()
    }

    async fn applied(&self) -> sqlx::Result<Vec<Applied>> {
        let applied = |row: &MySqlRow| {
            Ok(Applied { event: row.try_get(0)?, account: row.try_get(1)?, version: row.try_get(2)? })
        };
        let rows = sqlx::query("select event_id, account, version from applied order by at");
        rows.fetch_all(&self.pool).await?.iter().map(applied).collect()
    }

    async fn holders(&self) -> sqlx::Result<Vec<Holder>> {
        let holder = |row: &MySqlRow| {
            Ok(Holder { subscription: row.try_get(0)?, lane: row.try_get(1)?, owner: row.try_get(2)? })
        };
        let rows = sqlx::query(
            "select convert(subscription using utf8mb4), cast(lane as signed), convert(lease_owner using utf8mb4) \
             from postrider_lane order by 1, 2",
        );
        rows.fetch_all(&self.pool).await?.iter().map(holder).collect()
    }

    async fn is_read(&self) -> sqlx::Result<bool> {
        let sql = "select not exists (select 1 from postrider_arrival) \
                   and (select min(position) from postrider_lane) >= (select seq from postrider_numbering)";
        sqlx::query(sql).fetch_one(&self.pool).await?.try_get(0)
    }

    async fn expire(&self, relay_process: &str) -> sqlx::Result<()> {
        let sql = "update postrider_lane set lease_until = 0 where lease_owner = ?";
        sqlx::query(sql).bind(relay_process).execute(&self.pool).await?;
        Ok(())
    }

    async fn traces(&self) -> sqlx::Result<Vec<String>> {
        let sql = "select convert(trace using utf8mb4) from ( \
                   select concat_ws(' ', 'lane', subscription, lane, position) as trace from postrider_lane \
                   union all select concat_ws(' ', 'batch', subscription, lane, first_id, last_id, count, settled_by) \
                       from postrider_settled_batch \
                   union all select concat_ws(' ', 'delivery', subscription, id, state, attempts, error_code) \
                       from postrider_delivery) as traces \
                   order by 1";
        sqlx::query_scalar(sql).fetch_all(&self.pool).await
    }

    async fn first_seen_by(&self, relay_process: &str) -> sqlx::Result<Option<i64>> {
        sqlx::query_scalar("select min(number) from seen where relay_process = ?")
            .bind(relay_process)
            .fetch_one(&self.pool)
            .await
    }

    async fn rows_of(&self, relay_process: &str) -> sqlx::Result<i64> {
        let sql = "select (select count(*) from seen where relay_process = ?) + (select count(*) from applied where relay_process = ?)";
        sqlx::query_scalar(sql).bind(relay_process).bind(relay_process).fetch_one(&self.pool).await
    }
}
