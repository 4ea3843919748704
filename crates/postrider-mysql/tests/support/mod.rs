//! The suite's harness on MariaDB or MySQL: each log is a database of its own.

#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_conformance::{Harness, TestLog, Writer};
use postrider_core::{Clock, Error, ErrorKind, NewEvent, Result, Store, Uuid};
use postrider_mysql::{MySqlStore, Outbox};
pub use postrider_testkit::address::mysql_options as server;
use postrider_testkit::mysql::Database;
pub use postrider_testkit::until_within;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Executor, MySql, MySqlConnection, MySqlPool, Row, Transaction};

pub mod copied;
pub mod switch;

pub type Patch = fn(&'static str, &str) -> Option<String>;

/// Makes logs, each in a database of its own, maybe with a bug planted.
#[derive(Clone, Copy)]
pub struct My {
    /// Changes the statements of the store.
    pub patch: Option<Patch>,
    /// Changes what the migration made, statement by statement.
    pub after_migration: Option<fn() -> Vec<String>>,
    /// The isolation level of the application.
    pub isolation: &'static str,
}

impl Default for My {
    fn default() -> Self {
        Self { patch: None, after_migration: None, isolation: "repeatable read" }
    }
}

#[async_trait]
impl Harness for My {
    async fn log(&self, clock: Clock) -> Arc<dyn TestLog> {
        Arc::new(self.my_log(clock).await)
    }
}

impl My {
    pub async fn my_log(&self, clock: Clock) -> MyLog {
        self.log_on(server(), clock).await
    }

    pub async fn log_on(&self, server: MySqlConnectOptions, clock: Clock) -> MyLog {
        let database = Database::on(server).await;
        let isolation = self.isolation;
        let pool = MySqlPoolOptions::new()
            .max_connections(40)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let level = format!("set session transaction isolation level {isolation}");
                    connection.execute(AssertSqlSafe(level)).await?;
                    Ok(())
                })
            })
            .connect_lazy_with(database.options());
        let outbox = Outbox::builder().clock(clock.clone()).migrated(&pool).await.expect("migrate");
        let mut connection = pool.acquire().await.expect("a connection");
        run(&mut connection, "create table app (id varchar(100) primary key, version bigint not null)").await;
        run(&mut connection, "create table touched (n bigint)").await;
        for change in self.after_migration.map(|changes| changes()).unwrap_or_default() {
            run(&mut connection, &change).await;
        }
        drop(connection);
        MyLog { pool, outbox, clock, patch: self.patch, database }
    }
}

pub async fn run(connection: &mut MySqlConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.expect(sql);
}

pub struct MyLog {
    pub pool: MySqlPool,
    pub outbox: Outbox,
    clock: Clock,
    patch: Option<Patch>,
    /// It goes with its log, also after a failure.
    database: Database,
}

impl MyLog {
    pub fn patched(&self) -> MySqlStore {
        self.planted(self.outbox.store())
    }

    pub fn database(&self) -> &str {
        self.database.name()
    }

    fn planted(&self, store: MySqlStore) -> MySqlStore {
        match self.patch {
            Some(patch) => store.with_sql(patch),
            None => store,
        }
    }

    pub async fn second(&self) -> MySqlStore {
        let pool = MySqlPoolOptions::new().max_connections(10);
        let pool = pool.connect_lazy_with(self.pool.connect_options().as_ref().clone());
        let builder = Outbox::builder().clock(self.clock.clone()).planted();
        let outbox = builder.connect(&pool).await.expect("connect");
        self.planted(outbox.store())
    }

    async fn ids(&self, sql: &'static str) -> Vec<Uuid> {
        sqlx::query_scalar(sql).fetch_all(&self.pool).await.expect("ids")
    }

    pub async fn run(&self, sql: &str) {
        run(&mut self.pool.acquire().await.expect("a connection"), sql).await;
    }

    pub async fn count(&self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("select count(*) from {table}"));
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.expect("a count")
    }
}

#[async_trait]
impl TestLog for MyLog {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.patched())
    }

    async fn second_store(&self) -> Arc<dyn Store> {
        Arc::new(self.second().await)
    }

    async fn begin(&self) -> Box<dyn Writer> {
        Box::new(MyWriter { outbox: self.outbox.clone(), tx: self.pool.begin().await.expect("begin") })
    }

    async fn event_ids(&self) -> Vec<Uuid> {
        // In the order of the log: what committed late is behind what was numbered before it.
        let sql = "select e.event_id from postrider_event e left join postrider_run r on r.id = postrider_run_of(e.id) \
                   order by r.seq is null, r.seq, e.id";
        self.ids(sql).await
    }

    async fn archived_ids(&self) -> Vec<Uuid> {
        self.ids("select event_id from postrider_archive order by id").await
    }

    async fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<(), String> {
        let query = sqlx::query("update postrider_delivery set state = ? where event_id = ?");
        let changed =
            query.bind(state).bind(event_id).execute(&self.pool).await.map_err(|error| error.to_string())?;
        assert_eq!(changed.rows_affected(), 1);
        Ok(())
    }

    async fn rings(&self) -> Option<u64> {
        // Publishers ring nobody here: relays ask.
        Some(0)
    }
}

pub struct MyWriter {
    outbox: Outbox,
    tx: Transaction<'static, MySql>,
}

impl MyWriter {
    async fn execute(&mut self, sql: String) -> Result<(), String> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        sql.execute(&mut *self.tx).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Writer for MyWriter {
    async fn change(&mut self, aggregate: &str) -> Result<i64> {
        // Made on its own: two inserts of the same new row, and a gap that both have locked, are a deadlock.
        let there =
            sqlx::query("select 1 from app where id = ?").bind(aggregate).fetch_optional(self.outbox.pool());
        if there.await.expect("a look").is_none() {
            let made = sqlx::query("insert ignore into app values (?, 0)").bind(aggregate);
            made.execute(self.outbox.pool()).await.expect("a row");
        }
        let sql = "update app set version = version + 1 where id = ?";
        match sqlx::query(sql).bind(aggregate).execute(&mut *self.tx).await {
            Ok(_) => {}
            // MariaDB 11.6 and later, REPEATABLE READ: somebody changed the row after this transaction's snapshot was taken.
            Err(error) if error.to_string().contains("Record has changed since last read") => {
                return Err(Error::new(ErrorKind::Conflict, "change", error.to_string()));
            }
            Err(error) => panic!("change: {error}"),
        }
        let sql = "select version from app where id = ?";
        Ok(sqlx::query(sql).bind(aggregate).fetch_one(&mut *self.tx).await.expect("change").get(0))
    }

    async fn touch(&mut self) -> Result<()> {
        self.execute("insert into touched values (1)".into()).await.expect("touch");
        Ok(())
    }

    async fn record(&mut self, event: &NewEvent) -> Result<Uuid> {
        self.outbox.record(&mut self.tx, event).await
    }

    async fn record_once(&mut self, event: &NewEvent) -> Result<bool> {
        self.outbox.record_once(&mut self.tx, event).await
    }

    async fn record_all(&mut self, events: &[NewEvent]) -> Result<Vec<Uuid>> {
        self.outbox.record_all(&mut self.tx, events).await
    }

    async fn plain_insert(&mut self, aggregate: &str, id: Option<i64>) -> Result<(), String> {
        let (columns, values) = match id {
            // Whatever is written into what the trigger sets.
            Some(id) => ("id, recorded_at, ", format!("{id}, '1970-01-01', ")),
            None => ("", String::new()),
        };
        self.execute(format!(
            "insert into postrider_event ({columns}event_type, aggregate_type, aggregate_id, payload)
             values ({values}'Inserted', 'A', '{aggregate}', '1')"
        ))
        .await
    }

    async fn record_slowly(&mut self, aggregate: &str, pause: Duration) -> Result<(), String> {
        self.execute(format!(
            "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload)
             select 'Slow', 'A', '{aggregate}', '1' from (select sleep({})) as slow",
            pause.as_secs_f64()
        ))
        .await
    }

    async fn update_event(&mut self, event_id: Uuid) -> Result<(), String> {
        let id = event_id.simple();
        self.execute(format!("update postrider_event set payload = '2' where event_id = x'{id}'")).await
    }

    async fn delete_event(&mut self, event_id: Uuid) -> Result<(), String> {
        self.execute(format!("delete from postrider_event where event_id = x'{}'", event_id.simple())).await
    }

    async fn first_time(&mut self, consumer: &str, event_id: Uuid) -> Result<bool> {
        self.outbox.inbox(consumer).first_time(&mut self.tx, event_id).await
    }

    async fn first_time_by_key(&mut self, consumer: &str, key: &str) -> Result<bool> {
        self.outbox.inbox(consumer).first_time_by_key(&mut self.tx, key).await
    }

    async fn savepoint(&mut self) {
        self.execute("savepoint here".into()).await.expect("savepoint");
    }

    async fn rollback_to_savepoint(&mut self) {
        self.execute("rollback to savepoint here".into()).await.expect("rollback to savepoint");
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.tx.commit().await.expect("commit");
        Ok(())
    }

    async fn rollback(self: Box<Self>) {
        self.tx.rollback().await.expect("rollback");
    }
}
