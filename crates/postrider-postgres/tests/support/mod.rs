//! The suite's harness on PostgreSQL: each log is a schema of its own.

#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider_conformance::{Harness, TestLog, Writer};
use postrider_core::{Clock, NewEvent, Result, Store, Uuid};
use postrider_postgres::{Outbox, Patch, PgStore, StoreOptions};
pub use postrider_testkit::address::{pgbouncer_options as pooler, postgres_options as server};
pub use postrider_testkit::postgres::Database;
use postrider_testkit::postgres::Schema;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row, Transaction};

/// A new schema's name.
pub fn new_schema() -> String {
    postrider_testkit::unique("t")
}

/// A database of its own with an encoding, dropped with its test.
pub async fn new_database(encoding: &str) -> Database {
    let options = format!("encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'");
    Database::with(&options).await
}

/// Makes logs, each in a schema of its own, maybe with a bug planted.
#[derive(Default, Clone, Copy)]
pub struct Pg {
    /// Changes the statements of the store.
    pub patch: Option<Patch>,
    /// Changes what the migration made.
    pub after_migration: Option<fn(schema: &str) -> String>,
    /// Whether the bell is off.
    pub silent: bool,
    /// Whether everything goes through the pooler; the bell listens at the server itself.
    pub pooled: bool,
}

#[async_trait]
impl Harness for Pg {
    async fn log(&self, clock: Clock) -> Arc<dyn TestLog> {
        Arc::new(self.pg_log(clock).await)
    }
}

impl Pg {
    pub async fn pg_log(&self, clock: Clock) -> PgLog {
        self.log_on(if self.pooled { pooler() } else { server() }, clock).await
    }

    pub async fn log_on(&self, address: PgConnectOptions, clock: Clock) -> PgLog {
        let pool =
            PgPoolOptions::new().max_connections(40).connect_with(address).await.expect("PostgreSQL answers");
        let direct =
            if self.pooled { PgPoolOptions::new().connect_lazy_with(server()) } else { pool.clone() };
        let made = Schema::on((*direct.connect_options()).clone());
        let schema = made.name().to_owned();
        let mut builder = Outbox::builder().schema(&schema).clock(clock);
        if let Some(patch) = self.patch {
            builder = builder.patch(patch);
        }
        let outbox = builder.migrated(&pool).await.expect("migrate");
        let mut setup = format!(
            "create table {schema}.app (id text primary key, version bigint not null);
             create table {schema}.touched (n bigint);"
        );
        if let Some(change) = self.after_migration {
            setup.push_str(&change(&schema));
        }
        sqlx::raw_sql(AssertSqlSafe(setup)).execute(&pool).await.expect("set up");
        let listen = self.pooled.then(server);
        let options = StoreOptions { bell: !self.silent, listen, ..StoreOptions::default() };
        let store = outbox.store_with(&options).await.expect("store");
        let rings = count_rings(&direct, &schema).await;
        PgLog { schema, pool, direct, outbox, store, options, rings, _made: made }
    }
}

async fn count_rings(pool: &PgPool, schema: &str) -> Arc<AtomicU64> {
    let rings = Arc::new(AtomicU64::new(0));
    let mut listener = PgListener::connect_with(pool).await.expect("listen");
    listener.listen(&format!("{schema}_bell")).await.expect("listen");
    let count = Arc::downgrade(&rings);
    tokio::spawn(async move {
        while let (Ok(notification), Some(count)) = (listener.recv().await, count.upgrade()) {
            if notification.payload().is_empty() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    rings
}

pub struct PgLog {
    pub schema: String,
    pub pool: PgPool,
    /// Connections to the server itself, for what a test asks.
    pub direct: PgPool,
    pub outbox: Outbox,
    pub store: PgStore,
    options: StoreOptions,
    rings: Arc<AtomicU64>,
    /// The schema goes with its log, also after a failure.
    _made: Schema,
}

impl PgLog {
    /// SQL with `{schema}` filled in.
    pub fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("{schema}", &self.schema))
    }

    pub async fn run(&self, text: &str) {
        sqlx::raw_sql(self.sql(text)).execute(&self.pool).await.expect(text);
    }
}

#[async_trait]
impl TestLog for PgLog {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn second_store(&self) -> Arc<dyn Store> {
        Arc::new(self.outbox.store_with(&self.options).await.expect("store"))
    }

    async fn begin(&self) -> Box<dyn Writer> {
        let tx = self.pool.begin().await.expect("begin");
        Box::new(PgWriter { schema: self.schema.clone(), outbox: self.outbox.clone(), tx })
    }

    async fn event_ids(&self) -> Vec<Uuid> {
        let rows = sqlx::query(self.sql("select event_id from {schema}.event order by id"));
        rows.fetch_all(&self.direct).await.expect("events").iter().map(|row| row.get(0)).collect()
    }

    async fn archived_ids(&self) -> Vec<Uuid> {
        let rows = sqlx::query(self.sql("select event_id from {schema}.archive order by id"));
        rows.fetch_all(&self.direct).await.expect("archive").iter().map(|row| row.get(0)).collect()
    }

    async fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<(), String> {
        let query = sqlx::query(self.sql("update {schema}.delivery set state = $2 where event_id = $1"));
        let changed = query
            .bind(event_id)
            .bind(state)
            .execute(&self.direct)
            .await
            .map_err(|error| error.to_string())?;
        assert_eq!(changed.rows_affected(), 1);
        Ok(())
    }

    async fn rings(&self) -> Option<u64> {
        Some(self.rings.load(Ordering::Relaxed))
    }
}

pub struct PgWriter {
    schema: String,
    outbox: Outbox,
    tx: Transaction<'static, Postgres>,
}

impl PgWriter {
    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("{schema}", &self.schema))
    }

    async fn execute(&mut self, text: &str) -> Result<(), String> {
        let sql = self.sql(text);
        sqlx::raw_sql(sql).execute(&mut *self.tx).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Writer for PgWriter {
    async fn change(&mut self, aggregate: &str) -> Result<i64> {
        let sql = self.sql(
            "insert into {schema}.app as a values ($1, 1) on conflict (id) do update set version = a.version + 1 returning version",
        );
        Ok(sqlx::query(sql)
            .persistent(false)
            .bind(aggregate)
            .fetch_one(&mut *self.tx)
            .await
            .expect("change")
            .get(0))
    }

    async fn touch(&mut self) -> Result<()> {
        self.execute("insert into {schema}.touched values (1)").await.expect("touch");
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
            Some(id) => ("id, tx_id, recorded_at, ", format!("{id}, '3', 'epoch', ")),
            None => ("", String::new()),
        };
        self.execute(&format!(
            "insert into {{schema}}.event ({columns}event_type, aggregate_type, aggregate_id, payload) \
             values ({values}'Inserted', 'A', '{aggregate}', '1')"
        ))
        .await
    }

    async fn record_slowly(&mut self, aggregate: &str, pause: Duration) -> Result<(), String> {
        self.execute(&format!(
            "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) \
             select 'Slow', 'A', '{aggregate}', '1' from (select pg_sleep({})) as slow",
            pause.as_secs_f64()
        ))
        .await
    }

    async fn update_event(&mut self, event_id: Uuid) -> Result<(), String> {
        self.execute(&format!("update {{schema}}.event set payload = '2' where event_id = '{event_id}'"))
            .await
    }

    async fn delete_event(&mut self, event_id: Uuid) -> Result<(), String> {
        self.execute(&format!("delete from {{schema}}.event where event_id = '{event_id}'")).await
    }

    async fn first_time(&mut self, consumer: &str, event_id: Uuid) -> Result<bool> {
        self.outbox.inbox(consumer).first_time(&mut self.tx, event_id).await
    }

    async fn first_time_by_key(&mut self, consumer: &str, key: &str) -> Result<bool> {
        self.outbox.inbox(consumer).first_time_by_key(&mut self.tx, key).await
    }

    async fn savepoint(&mut self) {
        self.execute("savepoint here").await.expect("savepoint");
    }

    async fn rollback_to_savepoint(&mut self) {
        self.execute("rollback to savepoint here").await.expect("rollback to savepoint");
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.tx.commit().await.expect("commit");
        Ok(())
    }

    async fn rollback(self: Box<Self>) {
        self.tx.rollback().await.expect("rollback");
    }
}
