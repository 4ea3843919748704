//! A MariaDB or MySQL database of a test's own, and the effects of handlers in it.

#![allow(dead_code, unreachable_pub)]

use postrider::mysql::{Outbox, Tx};
use postrider::{Failure, Received};
use postrider_testkit::{address, mysql};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, MySqlPool, Row};

/// A database with an outbox and a table of effects; whoever made it removes it.
pub struct Database {
    pub name: String,
    pub pool: MySqlPool,
    pub outbox: Outbox,
    _made: Option<mysql::Database>,
}

impl Database {
    pub async fn new() -> Self {
        let database = mysql::Database::new().await;
        let name = database.name().to_owned();
        let made = Self::open(&name, Some(database)).await;
        let table = "create table effect (n bigint auto_increment primary key, event_id binary(16) not null,
                     owner varchar(100) not null, version bigint not null)";
        sqlx::raw_sql(table).execute(&made.pool).await.expect("a table");
        made
    }

    /// The database that another process has made.
    pub async fn of(name: &str) -> Self {
        Self::open(name, None).await
    }

    async fn open(name: &str, made: Option<mysql::Database>) -> Self {
        let pool = MySqlPoolOptions::new()
            .max_connections(20)
            .connect_lazy_with(address::mysql_options().database(name));
        let outbox = Outbox::migrated(&pool).await.expect("migrated");
        Self { name: name.to_owned(), pool, outbox, _made: made }
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

/// Writes an effect in the handler's transaction.
pub async fn apply(event: &Received<i64>, tx: &mut Tx) -> Result<(), Failure> {
    let recorded = event.event();
    let insert = sqlx::query("insert into effect (event_id, owner, version) values (?, ?, ?)");
    let insert = insert.bind(recorded.event_id).bind(recorded.key().into_owned()).bind(**event);
    insert.execute(&mut **tx).await?;
    Ok(())
}
