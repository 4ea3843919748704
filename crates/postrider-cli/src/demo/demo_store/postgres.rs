//! The shop in a schema of its own on a PostgreSQL server.

use std::time::Duration;

use postrider::postgres::Outbox;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::Transaction;
use sqlx_postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres as Driver};

use super::*;
use crate::config::{Problem, Store};
use crate::database::Address;

const PATIENCE: Duration = Duration::from_secs(3);

/// The SQLSTATE of a schema that is there already.
const IS_THERE: &str = "42P06";

/// The shop on a server.
#[derive(Clone)]
pub(crate) struct Postgres {
    pool: PgPool,
    outbox: Outbox,
    schema: String,
    name: &'static str,
}

impl Postgres {
    /// A new one in a schema of its own; one that is there is left alone.
    pub(crate) async fn build(address: &str, schema: &str) -> Result<Self, Failure> {
        let pool = pool(options(address)?, schema);
        let place = postrider::postgres::place(&pool.connect_options());
        let made = raw_sql(AssertSqlSafe(format!("create schema \"{schema}\""))).execute(&pool).await;
        made.map_err(|error| match &error {
            sqlx_core::Error::Database(said) if said.code().as_deref() == Some(IS_THERE) => format!(
                "the schema {schema} already exists ({place}): another demo runs in it, or was kept; wait for it, choose another \
                 with --schema, or drop it (drop schema {schema} cascade)"
            ),
            sqlx_core::Error::Database(said) => format!(
                "the demo needs a schema of its own, but creating one failed ({place}): {}; use a user that may create schemas",
                said.message()
            ),
            _ => format!("the database does not answer ({place}); check that it is running, and the URL"),
        })?;
        let built = Self::furnished(pool.clone(), schema).await;
        if built.is_err() {
            remove(&pool, schema).await;
        }
        built
    }

    async fn furnished(pool: PgPool, schema: &str) -> Result<Self, Failure> {
        let outbox = Outbox::builder().source("shop").schema(schema).migrated(&pool).await?;
        raw_sql(include_str!("../../../sql/demo/schema_postgres.sql")).execute(&pool).await?;
        Ok(Self { pool, outbox, schema: schema.to_owned(), name: "PostgreSQL" })
    }

    /// The one that is there, for another process.
    pub(crate) async fn open(address: &str, schema: &str) -> Result<Self, Failure> {
        let pool = pool(options(address)?, schema);
        let outbox = Outbox::builder().source("shop").schema(schema).connect(&pool).await?;
        Ok(Self { pool, outbox, schema: schema.to_owned(), name: "PostgreSQL" })
    }

    /// Removes it from the server; whether it is gone.
    pub(crate) async fn remove(&self) -> bool {
        remove(&self.pool, &self.schema).await
    }

    async fn begin(&self) -> Result<Transaction<'static, Driver>, Failure> {
        Ok(self.pool.begin().await?)
    }

    async fn tidied(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn store_of_log(&self) -> Result<SharedStore, Failure> {
        Ok(crate::database::bounded(self.outbox.store().await?))
    }

    /// A statement as PostgreSQL has it: its parameters, its types, and the outbox's tables without a prefix.
    fn sql(statement: &'static str) -> AssertSqlSafe<String> {
        let statement = statement
            .replace("cross join postrider_", "join ")
            .replace("postrider_", "")
            .replace("as signed", "as bigint")
            .replace("payload not like", "payload::text not like");
        let mut parts = statement.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (place, part) in parts.enumerate() {
            text.push_str(&format!("${}{part}", place + 1));
        }
        AssertSqlSafe(text)
    }
}

demo_store!(Postgres, Outbox, PgConnection);

fn options(address: &str) -> Result<PgConnectOptions, Problem> {
    match Address::of(&Store::at(address))? {
        Address::Postgres(options) => Ok(options),
        _ => Err(Problem::new("--store: the URL must begin with postgres://")),
    }
}

fn pool(options: PgConnectOptions, schema: &str) -> PgPool {
    let options = options.options([("search_path", schema)]);
    PgPoolOptions::new().max_connections(8).acquire_timeout(PATIENCE).connect_lazy_with(options)
}

/// Waits for nobody: a relay that was killed may still be at it.
async fn remove(pool: &PgPool, schema: &str) -> bool {
    let drop = format!("set lock_timeout = '10s'; drop schema if exists \"{schema}\" cascade");
    raw_sql(AssertSqlSafe(drop)).execute(pool).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_the_parameters_and_types_of_postgresql() {
        let AssertSqlSafe(text) =
            Postgres::sql("select cast(1 as signed) from postrider_event where a = ? and b = ?");
        assert_eq!(text, "select cast(1 as bigint) from event where a = $1 and b = $2");
    }
}
