//! A PostgreSQL schema of a test's own, and the effects of handlers in it.

#![allow(dead_code, unreachable_pub)]

use postrider::postgres::{Outbox, Tx};
use postrider::{Failure, Received};
use postrider_testkit::address;
use postrider_testkit::postgres::Schema;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool, Row};

/// A schema with an outbox and a table of effects; whoever made it removes it.
pub struct Database {
    pub schema: String,
    pub pool: PgPool,
    pub outbox: Outbox,
    _made: Option<Schema>,
}

impl Database {
    pub async fn new() -> Self {
        let schema = Schema::new();
        let name = schema.name().to_owned();
        let made = Self::open(&name, Some(schema)).await;
        let table = "create table {schema}.effect (n bigserial, event_id uuid, key text, version bigint)";
        made.run(table).await;
        made
    }

    /// The schema that another process has made.
    pub async fn of(schema: &str) -> Self {
        Self::open(schema, None).await
    }

    async fn open(schema: &str, made: Option<Schema>) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(20)
            .connect_with(address::postgres_options())
            .await
            .expect("PostgreSQL answers");
        let outbox = Outbox::builder().schema(schema).migrated(&pool).await.expect("migrated");
        Self { schema: schema.to_owned(), pool, outbox, _made: made }
    }

    pub async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.replace("{schema}", &self.schema));
        sqlx::raw_sql(sql).execute(&self.pool).await.expect("a statement");
    }

    /// A number.
    pub async fn number(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.replace("{schema}", &self.schema));
        sqlx::query(sql).fetch_one(&self.pool).await.expect("a row").get(0)
    }

    /// The effects so far: key and version, in the order in which they happened.
    pub async fn effects(&self) -> Vec<(String, i64)> {
        let sql = AssertSqlSafe(format!("select key, version from {}.effect order by n", self.schema));
        let rows = sqlx::query(sql).fetch_all(&self.pool).await.expect("effects");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

/// Writes an effect in the handler's transaction.
pub async fn apply(schema: &str, event: &Received<i64>, tx: &mut Tx) -> Result<(), Failure> {
    let sql =
        AssertSqlSafe(format!("insert into {schema}.effect (event_id, key, version) values ($1, $2, $3)"));
    let recorded = event.event();
    let query = sqlx::query(sql).bind(recorded.event_id).bind(recorded.key().into_owned()).bind(**event);
    query.execute(&mut **tx).await?;
    Ok(())
}
