//! Databases of a test's own on a MariaDB or MySQL.

use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection};

use crate::{address, cleanup};

/// Runs statements on a connection of their own.
pub async fn execute(server: &MySqlConnectOptions, sql: String) {
    try_execute(server, sql.clone()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn try_execute(server: &MySqlConnectOptions, sql: String) -> sqlx::Result<()> {
    let mut connection = MySqlConnection::connect_with(server).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// A database. It is dropped with this, also when its test fails.
#[derive(Debug)]
pub struct Database {
    server: MySqlConnectOptions,
    name: String,
}

impl Database {
    /// A new one on the server of the tests.
    pub async fn new() -> Self {
        Self::on(address::mysql_options()).await
    }

    /// A new one on another server.
    pub async fn on(server: MySqlConnectOptions) -> Self {
        let name = crate::unique("t");
        let create = format!("create database {name} character set utf8mb4 collate utf8mb4_bin");
        execute(&server, create).await;
        Self { server, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to it.
    pub fn options(&self) -> MySqlConnectOptions {
        self.server.clone().database(&self.name)
    }

    /// Its address on the server of the tests, as `mysql://…`.
    pub fn url(&self) -> String {
        address::with_database(&address::mysql(), &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.options(), self.name.clone());
        let sql = format!("set lock_wait_timeout = 2; drop database {name}");
        cleanup::run(async move || drop(try_execute(&server, sql).await));
    }
}
