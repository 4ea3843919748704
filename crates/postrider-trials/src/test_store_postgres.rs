//! The store on PostgreSQL: a schema of its own.

use std::str::FromStr;

use async_trait::async_trait;
use postrider::postgres::Outbox;
use postrider::{Error, ErrorKind, Uuid};
use postrider_testkit::address;
use postrider_testkit::postgres::Schema;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row, Transaction};

use crate::relay_options::RelayOptions;
use crate::test_store::{Applied, Change, Holder, Keep, Sight, StoreKind, TestStore, test_store};

const TABLES: &str = "
    create table {app}account (id text primary key, version bigint not null);
    create table {app}seen (at bigserial primary key, event_id uuid not null, number bigint not null,
                            account text not null, version bigint not null, attempt bigint not null, relay_process text not null);
    create table {app}applied (at bigserial primary key, event_id uuid not null, account text not null,
                               version bigint not null, relay_process text not null);
    create index on {app}seen (relay_process);
    create index on {app}applied (relay_process);";

/// A schema on a PostgreSQL server.
#[derive(Clone)]
pub struct PgTestStore {
    /// Connections to the server.
    pub pool: PgPool,
    /// Connections to what stands for the outside world: trials that cut off the application leave these alone.
    outside: PgPool,
    url: String,
    schema: String,
    name: String,
    outbox: Outbox,
}

impl PgTestStore {
    /// A new schema on this server.
    pub async fn make_on(url: &str) -> (Self, Keep) {
        let made = Schema::on(PgConnectOptions::from_str(url).expect("an address of a PostgreSQL server"));
        let schema = made.name().to_owned();
        let pool = connect(url, "trial", 24).await.expect("the PostgreSQL server answers");
        let outbox = Outbox::builder().schema(&schema).migrated(&pool).await.expect("a migrated schema");
        let (url, outside, name) = (url.to_owned(), pool.clone(), "trial".to_owned());
        let test_store = Self { pool, outside, url, schema, name, outbox };
        let tables = sqlx::raw_sql(test_store.sql(TABLES)).execute(&test_store.pool);
        tables.await.expect("the application's tables");
        (test_store, Box::new(made))
    }

    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        let schema = format!("{}.", self.schema);
        let text = text.replace("{app}", &schema).replace("{log}", &schema);
        AssertSqlSafe(text.replace("{long_ago}", "'epoch'").replace("{frontier}", "frontier"))
    }

    async fn begin(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        self.pool.begin().await
    }
}

async fn connect(url: &str, application: &str, most: u32) -> sqlx::Result<PgPool> {
    let options = PgConnectOptions::from_str(url)?.application_name(application);
    PgPoolOptions::new().max_connections(most).connect_with(options).await
}

#[async_trait]
impl StoreKind for PgTestStore {
    type Outbox = Outbox;

    async fn make() -> (Self, Keep) {
        Self::make_on(&address::postgres()).await
    }

    async fn reach(options: &RelayOptions) -> postrider::Result<Self> {
        let failed = |error: sqlx::Error| Error::new(ErrorKind::Unreachable, "reach", error.to_string());
        let pool = connect(&options.store, "relay_process", 8).await.map_err(failed)?;
        let outside = connect(&options.store, "outside", 4).await.map_err(failed)?;
        let outbox = Outbox::builder().schema(&options.schema).connect(&pool).await?;
        let (url, schema, name) = (options.store.clone(), options.schema.clone(), options.name.clone());
        Ok(Self { pool, outside, url, schema, name, outbox })
    }

    fn relay_options(&self, name: &str) -> RelayOptions {
        RelayOptions::new(name, &self.url, &self.schema)
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

test_store!(PgTestStore);
