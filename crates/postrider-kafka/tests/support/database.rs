//! A PostgreSQL schema of a test's own, and the effects of handlers in it.

#![allow(dead_code, unreachable_pub)]

use std::str::FromStr;

use postrider::postgres::{Outbox, Tx};
use postrider::{Failure, Received, Uuid};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row};

fn server() -> PgConnectOptions {
    let url = std::env::var("POSTRIDER_TEST_POSTGRES").expect(
        "POSTRIDER_TEST_POSTGRES is not set: run the tests by `cargo xtask test`, or name a PostgreSQL server there",
    );
    PgConnectOptions::from_str(&url).expect("POSTRIDER_TEST_POSTGRES is an address of a PostgreSQL server")
}

/// A schema with an outbox and a table of effects; whoever made it removes it.
pub struct Database {
    pub schema: String,
    pub pool: PgPool,
    pub outbox: Outbox,
    own: bool,
}

impl Database {
    pub async fn new() -> Self {
        let made = Self::open(&format!("t{}", Uuid::new_v4().simple()), true).await;
        let table = "create table {schema}.effect (n bigserial, event_id uuid, key text, version bigint)";
        made.run(table).await;
        made
    }

    /// The schema that another process has made.
    pub async fn of(schema: &str) -> Self {
        Self::open(schema, false).await
    }

    async fn open(schema: &str, own: bool) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(20)
            .connect_with(server())
            .await
            .expect("PostgreSQL answers");
        let outbox = Outbox::builder().schema(schema).migrated(&pool).await.expect("migrated");
        Self { schema: schema.to_owned(), pool, outbox, own }
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

impl Drop for Database {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        let (schema, server) = (self.schema.clone(), server());
        let drop = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                if let Ok(mut connection) = PgConnection::connect_with(&server).await {
                    let sql = format!("set lock_timeout = '2s'; drop schema {schema} cascade");
                    let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
                }
            });
        };
        let _ = std::thread::spawn(drop).join();
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
