//! What is counted in the database, whichever it is.

use sqlx::{AssertSqlSafe, PgPool, SqlitePool};
use story::testkit::{Folder, postgres};

/// A database of a story's or a test's own.
#[derive(Debug)]
pub enum Database {
    /// On the server of the tests; dropped at the end.
    Postgres(Box<postgres::Database>, PgPool),
    /// A file; removed at the end.
    Sqlite(Folder, SqlitePool),
}

impl Database {
    /// A new one, without tables.
    pub async fn new(sqlite: bool) -> Self {
        if sqlite {
            let folder = Folder::new();
            let options = sqlx::sqlite::SqliteConnectOptions::new();
            let options = options.filename(folder.path().join("everbit.db")).create_if_missing(true);
            let pool = SqlitePool::connect_with(options).await;
            return Self::Sqlite(folder, pool.unwrap_or_else(|error| panic!("no database: {error}")));
        }
        let database = postgres::Database::new().await;
        let pool = PgPool::connect_with(database.options()).await;
        Self::Postgres(Box::new(database), pool.unwrap_or_else(|error| panic!("no database: {error}")))
    }

    /// Its address.
    pub fn url(&self) -> String {
        match self {
            Self::Postgres(database, _) => database.url(),
            Self::Sqlite(folder, _) => format!("sqlite:{}", folder.path().join("everbit.db").display()),
        }
    }

    /// A number.
    pub async fn count(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        let found = match self {
            Self::Postgres(_, pool) => sqlx::query_scalar(sql).fetch_one(pool).await,
            Self::Sqlite(_, pool) => sqlx::query_scalar(sql).fetch_one(pool).await,
        };
        found.unwrap_or_else(|error| panic!("no count: {error}"))
    }

    /// An id as a statement has it.
    pub fn id(&self, id: uuid::Uuid) -> String {
        match self {
            Self::Postgres(..) => format!("'{id}'"),
            Self::Sqlite(..) => format!("x'{}'", id.simple()),
        }
    }

    /// Words and numbers.
    pub async fn table(&self, sql: &str) -> Vec<(String, i64)> {
        let sql = AssertSqlSafe(sql.to_owned());
        let found = match self {
            Self::Postgres(_, pool) => sqlx::query_as(sql).fetch_all(pool).await,
            Self::Sqlite(_, pool) => sqlx::query_as(sql).fetch_all(pool).await,
        };
        found.unwrap_or_else(|error| panic!("no table: {error}"))
    }

    /// Runs a statement.
    pub async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        let done = match self {
            Self::Postgres(_, pool) => sqlx::raw_sql(sql).execute(pool).await.map(drop),
            Self::Sqlite(_, pool) => sqlx::raw_sql(sql).execute(pool).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("a statement failed: {error}"));
    }

    /// The pool, where it must be PostgreSQL.
    pub fn postgres(&self) -> &PgPool {
        match self {
            Self::Postgres(_, pool) => pool,
            Self::Sqlite(..) => panic!("this is SQLite"),
        }
    }
}
