//! The suite's harness on SQLite: each log is a file of its own.

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_conformance::{Harness, TestLog, Writer};
use postrider_core::{Clock, NewEvent, Result, Store, Uuid};
use postrider_sqlite::{Outbox, SqliteStore};
use postrider_testkit::Folder;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Row, Sqlite, SqlitePool, Transaction};

pub type Patch = fn(&'static str, &str) -> Option<String>;

/// Makes logs, each in a file of its own, maybe with a bug planted.
#[derive(Default, Clone, Copy)]
pub struct Lite {
    /// Changes the statements of the store.
    pub patch: Option<Patch>,
    /// Changes what the migration made.
    pub after_migration: Option<&'static str>,
}

#[async_trait]
impl Harness for Lite {
    async fn log(&self, clock: Clock) -> Arc<dyn TestLog> {
        Arc::new(self.lite_log(clock).await)
    }
}

impl Lite {
    pub async fn lite_log(&self, clock: Clock) -> LiteLog {
        let folder = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let pool = pool(folder.path()).await;
        let outbox = Outbox::builder().clock(clock.clone()).migrated(&pool).await.expect("migrate");
        let tables = "create table app (id text primary key, version integer not null); create table touched (n integer);";
        sqlx::raw_sql(tables).execute(&pool).await.expect("set up");
        if let Some(change) = self.after_migration {
            sqlx::raw_sql(change).execute(&pool).await.expect("a planted bug");
        }
        LiteLog { folder, pool, outbox, clock, patch: self.patch }
    }
}

/// The busy timeout is long, because the suite's sixteen writers hold the one write lock in turn and sleep in it.
async fn pool(folder: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(folder.join("outbox.db")).create_if_missing(true);
    let options = options.busy_timeout(Duration::from_secs(60));
    SqlitePoolOptions::new().max_connections(40).connect_with(options).await.expect("SQLite opens")
}

pub struct LiteLog {
    folder: Folder,
    pool: SqlitePool,
    pub outbox: Outbox,
    clock: Clock,
    patch: Option<Patch>,
}

impl LiteLog {
    fn patched(&self, store: SqliteStore) -> SqliteStore {
        match self.patch {
            Some(patch) => store.with_sql(patch),
            None => store,
        }
    }

    async fn second(&self) -> SqliteStore {
        let outbox = Outbox::builder().clock(self.clock.clone());
        self.patched(outbox.connect(&pool(self.folder.path()).await).await.expect("connect").store())
    }

    async fn ids(&self, sql: &'static str) -> Vec<Uuid> {
        sqlx::query_scalar(sql).fetch_all(&self.pool).await.expect("ids")
    }
}

#[async_trait]
impl TestLog for LiteLog {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.patched(self.outbox.store()))
    }

    async fn second_store(&self) -> Arc<dyn Store> {
        Arc::new(self.second().await)
    }

    async fn begin(&self) -> Box<dyn Writer> {
        Box::new(LiteWriter { outbox: self.outbox.clone(), tx: self.outbox.begin().await.expect("begin") })
    }

    async fn event_ids(&self) -> Vec<Uuid> {
        self.ids("select event_id from postrider_event order by id").await
    }

    async fn archived_ids(&self) -> Vec<Uuid> {
        self.ids("select event_id from postrider_archive order by id").await
    }

    async fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<(), String> {
        let query = sqlx::query("update postrider_delivery set state = ?2 where event_id = ?1");
        let changed =
            query.bind(event_id).bind(state).execute(&self.pool).await.map_err(|error| error.to_string())?;
        assert_eq!(changed.rows_affected(), 1);
        Ok(())
    }
}

pub struct LiteWriter {
    outbox: Outbox,
    tx: Transaction<'static, Sqlite>,
}

impl LiteWriter {
    async fn execute(&mut self, sql: String) -> Result<(), String> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        sql.execute(&mut *self.tx).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Writer for LiteWriter {
    async fn change(&mut self, aggregate: &str) -> Result<i64> {
        let sql = "insert into app values (?1, 1) on conflict (id) do update set version = version + 1 returning version";
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
        let (column, value) =
            id.map_or((String::new(), String::new()), |id| ("id, ".to_owned(), format!("{id}, ")));
        self.execute(format!(
            "insert into postrider_event ({column}event_type, aggregate_type, aggregate_id, payload)
             values ({value}'Inserted', 'A', '{aggregate}', '1')"
        ))
        .await
    }

    async fn record_slowly(&mut self, aggregate: &str, pause: Duration) -> Result<(), String> {
        // SQLite has no sleep: the transaction stays open for that long instead.
        self.plain_insert(aggregate, None).await?;
        tokio::time::sleep(pause).await;
        Ok(())
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
