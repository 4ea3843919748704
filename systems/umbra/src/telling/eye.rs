//! What the story looks at: the database, whichever it is.

use sqlx::{AssertSqlSafe, PgPool, SqlitePool};

/// An eye on the database. Statements name tables as PostgreSQL does.
#[derive(Debug, Clone)]
pub(super) enum Eye {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// The names that these tables have in SQLite.
fn for_sqlite(sql: &str) -> AssertSqlSafe<String> {
    let mut text = sql.replace("events.outbox", "events_outbox").replace("audit.events", "audit_events");
    text = text.replace("events.", "postrider_");
    for schema in ["billing", "licensing", "notification", "outside"] {
        text = text.replace(&format!("{schema}."), &format!("{schema}_"));
    }
    AssertSqlSafe(text)
}

impl Eye {
    /// The number that a query returns.
    pub(super) async fn number(&self, sql: &str) -> i64 {
        let found = match self {
            Self::Postgres(pool) => sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(pool).await,
            Self::Sqlite(pool) => sqlx::query_scalar(for_sqlite(sql)).fetch_one(pool).await,
        };
        found.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The texts that a query returns.
    pub(super) async fn texts(&self, sql: &str) -> Vec<String> {
        let found = match self {
            Self::Postgres(pool) => sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(pool).await,
            Self::Sqlite(pool) => sqlx::query_scalar(for_sqlite(sql)).fetch_all(pool).await,
        };
        found.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs a statement; what the database said if it was refused.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), String> {
        let done = match self {
            Self::Postgres(pool) => sqlx::query(AssertSqlSafe(sql.to_owned())).execute(pool).await.map(drop),
            Self::Sqlite(pool) => sqlx::query(for_sqlite(sql)).execute(pool).await.map(drop),
        };
        done.map_err(|error| error.to_string())
    }
}
