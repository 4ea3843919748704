//! An application on PostgreSQL: a schema of its own, accounts, and writers that change them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use postrider::postgres::Outbox;
use postrider::store::Figures;
use postrider::{NewEvent, Running};
use postrider_testkit::address;
use postrider_testkit::postgres::Schema;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row};
use tokio::task::JoinSet;

/// How many accounts there are.
pub(crate) const ACCOUNTS: i64 = 64;
/// How many accounts a transaction changes.
const CHANGES: i64 = 8;

/// A schema on the tests' PostgreSQL; it goes away with this.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) outbox: Outbox,
    pub(crate) url: String,
    pub(crate) schema: String,
    pool: PgPool,
    _made: Arc<Schema>,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let (url, made) = (address::postgres(), Schema::new());
        let schema = made.name().to_owned();
        let pool = connect(&url).await;
        let outbox = Outbox::builder().schema(&schema).migrated(&pool).await.expect("migrated");
        let fixture = Self { outbox, url, schema, pool, _made: Arc::new(made) };
        let table = "create table {schema}.account (id bigint primary key, version bigint not null);
                     insert into {schema}.account select n, 0 from generate_series(1, {accounts}) n;";
        sqlx::raw_sql(fixture.sql(table)).execute(&fixture.pool).await.expect("the application's table");
        fixture
    }

    /// The outbox of a schema that somebody else made.
    pub(crate) async fn reach(url: &str, schema: &str) -> Outbox {
        Outbox::builder().schema(schema).connect(&connect(url).await).await.expect("an outbox")
    }

    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(text.replace("{schema}", &self.schema).replace("{accounts}", &ACCOUNTS.to_string()))
    }

    /// Eight writers that make so many events together, each changing several accounts at once.
    pub(crate) fn write(&self, events: i64) -> JoinSet<()> {
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let fixture = self.clone();
            writers.spawn(async move {
                for turn in 0..events / 8 / CHANGES {
                    fixture.change((writer * 5 + turn * 3) % ACCOUNTS).await;
                }
            });
        }
        writers
    }

    /// Changes accounts from this one on, and records each change.
    async fn change(&self, first: i64) {
        let mut tx = self.pool.begin().await.expect("a transaction");
        // By id, so that writers wait for each other and do not deadlock.
        let accounts: Vec<i64> = (0..CHANGES).map(|n| (first + n * 7) % ACCOUNTS + 1).collect();
        let lock = self.sql("select id from {schema}.account where id = any($1) order by id for update");
        sqlx::query(lock).bind(&accounts).execute(&mut *tx).await.expect("locked");
        let update = self.sql(
            "update {schema}.account set version = version + 1 where id = any($1) returning id, version",
        );
        let rows = sqlx::query(update).bind(&accounts).fetch_all(&mut *tx).await.expect("changed");
        let event = |id: i64, version: i64| {
            NewEvent::of("orders", "AccountChanged", "Account", id.to_string(), &version).expect("an event")
        };
        let events: Vec<NewEvent> = rows.iter().map(|row| event(row.get(0), row.get(1))).collect();
        self.outbox.record_all(&mut tx, &events).await.expect("recorded");
        tx.commit().await.expect("committed");
    }

    /// Records numbers in one transaction, each for the account that follows.
    pub(crate) async fn record_numbers(&self, numbers: RangeInclusive<i64>) {
        self.record_padded(numbers, 0).await;
    }

    /// The same, each with so many bytes beside it.
    pub(crate) async fn record_padded(&self, numbers: RangeInclusive<i64>, bytes: usize) {
        let event = |number: i64| {
            let account = (number % ACCOUNTS).to_string();
            let event = NewEvent::of("orders", "AccountChanged", "Account", account, &number);
            event.expect("an event").with_header("padding", "x".repeat(bytes))
        };
        let events: Vec<NewEvent> = numbers.map(event).collect();
        let mut tx = self.pool.begin().await.expect("a transaction");
        self.outbox.record_all(&mut tx, &events).await.expect("recorded");
        tx.commit().await.expect("committed");
    }

    /// The version that each account has come to.
    pub(crate) async fn versions(&self) -> HashMap<String, i64> {
        let rows = sqlx::query(self.sql("select id::text, version from {schema}.account where version > 0"));
        let rows = rows.fetch_all(&self.pool).await.expect("versions");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// How many rows there are for deliveries that did not simply succeed.
    pub(crate) async fn delivery_rows(&self) -> i64 {
        let count = sqlx::query(self.sql("select count(*) from {schema}.delivery"));
        count.fetch_one(&self.pool).await.expect("a count").get(0)
    }

    /// Who holds the lane.
    pub(crate) async fn holder(&self) -> Option<String> {
        let holder = self.sql("select lease_owner from {schema}.lane where lease_until > clock_timestamp()");
        let row = sqlx::query(holder).fetch_optional(&self.pool).await.expect("a holder");
        row.and_then(|row| row.get(0))
    }
}

/// How many events are undelivered, and how many of them were tried or given up.
pub(crate) async fn figures(relay: &Running) -> (u64, u64) {
    let figures = relay.store().figures("kafka").await.expect("figures");
    let touched = figures.iter().map(|each| each.retrying + each.dead + each.attempts).sum();
    (figures.iter().map(Figures::undelivered).sum(), touched)
}

async fn connect(url: &str) -> PgPool {
    let options = PgConnectOptions::from_str(url).expect("an address");
    PgPoolOptions::new().max_connections(16).connect_with(options).await.expect("PostgreSQL answers")
}
