//! A MariaDB or MySQL database of a test's own, and the effects of handlers in it.

#![allow(dead_code, unreachable_pub)]

use std::str::FromStr;

use postrider::mysql::{Outbox, Tx};
use postrider::{Failure, Received, Uuid};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, MySqlPool, Row};

fn server() -> MySqlConnectOptions {
    let url = std::env::var("POSTRIDER_TEST_MYSQL").expect(
        "POSTRIDER_TEST_MYSQL is not set: run the tests by `cargo xtask test`, or name a MariaDB or MySQL server there",
    );
    MySqlConnectOptions::from_str(&url).expect("POSTRIDER_TEST_MYSQL is an address of a MySQL server")
}

/// A database with an outbox and a table of effects; whoever made it removes it.
pub struct Database {
    pub name: String,
    pub pool: MySqlPool,
    pub outbox: Outbox,
    own: bool,
}

impl Database {
    pub async fn new() -> Self {
        let name = format!("t{}", Uuid::new_v4().simple());
        let mut connection = MySqlConnection::connect_with(&server()).await.expect("the server answers");
        let create = format!("create database {name} character set utf8mb4 collate utf8mb4_bin");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await.expect("a database");
        let made = Self::open(&name, true).await;
        let table = "create table effect (n bigint auto_increment primary key, event_id binary(16) not null,
                     owner varchar(100) not null, version bigint not null)";
        sqlx::raw_sql(table).execute(&made.pool).await.expect("a table");
        made
    }

    /// The database that another process has made.
    pub async fn of(name: &str) -> Self {
        Self::open(name, false).await
    }

    async fn open(name: &str, own: bool) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(20).connect_lazy_with(server().database(name));
        let outbox = Outbox::migrated(&pool).await.expect("migrated");
        Self { name: name.to_owned(), pool, outbox, own }
    }

    pub async fn count(&self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("select count(*) from {table}"));
        sqlx::query(sql).fetch_one(&self.pool).await.expect("a count").get(0)
    }

    /// The effects so far: key and version, in the order in which they happened.
    pub async fn effects(&self) -> Vec<(String, i64)> {
        let rows = sqlx::query("select owner, version from effect order by n").fetch_all(&self.pool);
        rows.await.expect("effects").iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        let (name, server) = (self.name.clone(), server());
        let drop = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                if let Ok(mut connection) = MySqlConnection::connect_with(&server).await {
                    let sql = format!("set lock_wait_timeout = 2; drop database {name}");
                    let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
                }
            });
        };
        let _ = std::thread::spawn(drop).join();
    }
}

/// Writes an effect in the handler's transaction.
pub async fn apply(event: &Received<i64>, tx: &mut Tx) -> Result<(), Failure> {
    let recorded = event.event();
    let insert = sqlx::query("insert into effect (event_id, owner, version) values (?, ?, ?)");
    let insert = insert.bind(recorded.event_id).bind(recorded.key().into_owned()).bind(**event);
    insert.execute(&mut **tx).await?;
    Ok(())
}
