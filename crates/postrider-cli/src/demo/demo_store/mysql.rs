//! The shop in a database of its own on a MariaDB or MySQL server.

use std::str::FromStr;
use std::time::Duration;

use postrider::mysql::Outbox;
use sqlx_core::connection::ConnectOptions;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::Transaction;
use sqlx_mysql::{MySql, MySqlConnectOptions, MySqlConnection, MySqlPool, MySqlPoolOptions};

use super::*;
use crate::config::{Problem, without_password};

const PATIENCE: Duration = Duration::from_secs(3);

/// The shop on a server.
#[derive(Clone)]
pub(crate) struct Mysql {
    pool: MySqlPool,
    outbox: Outbox,
    name: &'static str,
}

impl Mysql {
    /// A new one on the server that an address names.
    pub(crate) async fn build(address: &str, database: &str) -> Result<Self, Failure> {
        let server = options(address)?;
        let pool = pool(server.clone());
        let create = format!("create database {database} character set utf8mb4 collate utf8mb4_bin");
        let made = raw_sql(AssertSqlSafe(create)).execute(&pool).await;
        pool.close().await;
        made.map_err(|error| {
            let said = match &error {
                sqlx_core::Error::Database(said) => said.message().to_owned(),
                _ => "it does not answer".to_owned(),
            };
            let place = without_password(address);
            format!("the demo needs a database of its own, but creating one on {place} failed: {said}; use a user that may create databases")
        })?;
        let pool = self::pool(server.database(database));
        let built = Self::furnished(pool.clone()).await;
        if built.is_err() {
            remove(&pool).await;
        }
        built
    }

    async fn furnished(pool: MySqlPool) -> Result<Self, Failure> {
        let outbox = Outbox::builder().source("shop").migrated(&pool).await?;
        raw_sql(include_str!("../../../sql/demo/schema_mysql.sql")).execute(&pool).await?;
        Self::of(pool, outbox).await
    }

    /// The one that is there, for another process.
    pub(crate) async fn open(address: &str) -> Result<Self, Failure> {
        let pool = pool(options(address)?);
        let outbox = Outbox::builder().source("shop").connect(&pool).await?;
        Self::of(pool, outbox).await
    }

    async fn of(pool: MySqlPool, outbox: Outbox) -> Result<Self, Failure> {
        let version: String = query("select version()").fetch_one(&pool).await?.try_get(0)?;
        let name = if version.to_lowercase().contains("mariadb") { "MariaDB" } else { "MySQL" };
        Ok(Self { pool, outbox, name })
    }

    /// Where it is, with the password.
    pub(crate) fn address(&self) -> String {
        self.pool.connect_options().to_url_lossy().to_string()
    }

    /// Removes it from the server; whether it is gone.
    pub(crate) async fn remove(&self) -> bool {
        remove(&self.pool).await
    }

    async fn store_of_log(&self) -> Result<SharedStore, Failure> {
        Ok(crate::database::bounded(self.outbox.store()))
    }

    /// A statement as this database has it.
    fn sql(statement: &'static str) -> &'static str {
        statement
    }

    async fn begin(&self) -> Result<Transaction<'static, MySql>, Failure> {
        Ok(self.pool.begin().await?)
    }

    async fn tidied(&self) -> Result<(), Failure> {
        Ok(())
    }
}

demo_store!(Mysql, Outbox, MySqlConnection);

fn options(address: &str) -> Result<MySqlConnectOptions, Problem> {
    // The driver knows one name for both.
    let url = address.replacen("mariadb://", "mysql://", 1);
    MySqlConnectOptions::from_str(&url).map_err(|_| {
        let place = without_password(address);
        Problem::new(format!("--store: {place} is not a valid MySQL URL"))
    })
}

fn pool(options: MySqlConnectOptions) -> MySqlPool {
    MySqlPoolOptions::new().max_connections(8).acquire_timeout(PATIENCE).connect_lazy_with(options)
}

/// Waits for nobody: a relay that was killed may still be at it.
async fn remove(pool: &MySqlPool) -> bool {
    let options = pool.connect_options();
    let Some(database) = options.get_database() else { return false };
    let drop = format!("set session lock_wait_timeout = 10; drop database if exists {database}");
    raw_sql(AssertSqlSafe(drop)).execute(pool).await.is_ok()
}
