//! Databases and schemas of a test's own on a PostgreSQL.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{address, cleanup};

/// Runs statements on a connection of their own.
pub async fn execute(server: &PgConnectOptions, sql: String) {
    try_execute(server, sql.clone()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn try_execute(server: &PgConnectOptions, sql: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(server).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// A database. It is dropped with this, also when its test fails.
#[derive(Debug)]
pub struct Database {
    server: PgConnectOptions,
    name: String,
}

impl Database {
    /// A new one on the server of the tests.
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// A new one, created with these options: `encoding 'LATIN1' template template0`.
    pub async fn with(options: &str) -> Self {
        let (server, name) = (address::postgres_options(), crate::unique("d"));
        execute(&server, format!("create database {name} {options}")).await;
        Self { server, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to it.
    pub fn options(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    /// Its address, as `postgres://…`.
    pub fn url(&self) -> String {
        address::with_database(&address::postgres(), &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, sql) = (self.server.clone(), format!("drop database {} with (force)", self.name));
        cleanup::run(async move || drop(try_execute(&server, sql).await));
    }
}

/// A schema that somebody creates. It is dropped with this, also when its test fails.
#[derive(Debug)]
pub struct Schema {
    server: PgConnectOptions,
    name: String,
}

impl Schema {
    /// A name that nobody has, on the server of the tests.
    pub fn new() -> Self {
        Self::on(address::postgres_options())
    }

    /// The same on another server.
    pub fn on(server: PgConnectOptions) -> Self {
        Self { server, name: crate::unique("t") }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let sql = format!("set lock_timeout = '2s'; drop schema {name} cascade");
        cleanup::run(async move || drop(try_execute(&server, sql).await));
    }
}
