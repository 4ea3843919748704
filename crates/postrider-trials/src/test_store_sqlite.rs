//! The store on SQLite: a file of its own.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use postrider::sqlite::Outbox;
use postrider::{Error, ErrorKind, Uuid};
use postrider_testkit::Folder;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, Sqlite, SqlitePool, Transaction};

use crate::relay_options::RelayOptions;
use crate::test_store::{Applied, Change, Holder, Keep, Sight, StoreKind, TestStore, test_store};

const TABLES: &str = "
    create table account (id text primary key, version bigint not null);
    create table seen (at integer primary key autoincrement, event_id blob not null, number bigint not null,
                       account text not null, version bigint not null, attempt bigint not null, relay_process text not null);
    create table applied (at integer primary key autoincrement, event_id blob not null, account text not null,
                          version bigint not null, relay_process text not null);
    create index seen_relay on seen (relay_process);
    create index applied_relay on applied (relay_process);";

/// An SQLite database in a folder of its own.
#[derive(Clone)]
pub struct LiteTestStore {
    /// Connections to the database.
    pub pool: SqlitePool,
    outside: SqlitePool,
    file: String,
    name: String,
    outbox: Outbox,
}

impl LiteTestStore {
    fn sql(&self, text: &str) -> AssertSqlSafe<String> {
        let text = text.replace("{app}", "").replace("{log}", "postrider_");
        AssertSqlSafe(text.replace("{long_ago}", "0").replace("{frontier}", "position"))
    }

    async fn begin(&self) -> postrider::Result<Transaction<'static, Sqlite>> {
        self.outbox.begin().await
    }
}

/// A process that is killed loses nothing that it gave to the operating system, so there is no need to wait for the disk.
async fn connect(file: &Path, create: bool) -> sqlx::Result<SqlitePool> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(create);
    let options = options.busy_timeout(Duration::from_secs(30)).synchronous(SqliteSynchronous::Normal);
    SqlitePoolOptions::new().max_connections(12).connect_with(options).await
}

#[async_trait]
impl StoreKind for LiteTestStore {
    type Outbox = Outbox;

    async fn make() -> (Self, Keep) {
        let folder = Folder::new();
        let path = folder.path().join("outbox.db");
        let pool = connect(&path, true).await.expect("SQLite opens");
        let outbox = Outbox::migrated(&pool).await.expect("a migrated database");
        sqlx::raw_sql(TABLES).execute(&pool).await.expect("the application's tables");
        let (outside, file) = (pool.clone(), path.to_string_lossy().into_owned());
        (Self { pool, outside, file, name: "trial".to_owned(), outbox }, Box::new(folder))
    }

    async fn reach(options: &RelayOptions) -> postrider::Result<Self> {
        let failed = |error: sqlx::Error| Error::new(ErrorKind::Unreachable, "reach", error.to_string());
        let pool = connect(Path::new(&options.store), false).await.map_err(failed)?;
        let outbox = Outbox::connect(&pool).await?;
        let (outside, file, name) = (pool.clone(), options.store.clone(), options.name.clone());
        Ok(Self { pool, outside, file, name, outbox })
    }

    fn relay_options(&self, name: &str) -> RelayOptions {
        RelayOptions::new(name, &self.file, "")
    }

    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    async fn can_be_written(&self) -> bool {
        let options = (*self.pool.connect_options()).clone().busy_timeout(Duration::from_millis(300));
        let Ok(mut connection) = options.connect().await else { return false };
        let write = "begin immediate; insert into account (id, version) values ('', 0); rollback";
        let written = sqlx::raw_sql(write).execute(&mut connection).await.is_ok();
        let _ = connection.close().await;
        written
    }

    /// An open transaction has the whole database here.
    fn longest_hold(&self) -> u64 {
        2
    }
}

test_store!(LiteTestStore);
