//! How statements reach SQLite. Their texts are under `sql/`, one file each.

use std::borrow::Cow;

use postrider_core::Error;
use postrider_sql::clock::micros;
use postrider_sql::{Dialect, DriverQuery, Value};
use sqlx_core::Error as SqlxError;
use sqlx_core::query::query;
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr, SqlStr};
use sqlx_sqlite::{Sqlite, SqliteQueryResult};

use crate::error::failed;

/// The statements of a store.
pub(crate) type Sql = postrider_sql::Sql<SqliteDialect>;

/// What SQLite has of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SqliteDialect;

impl Dialect for SqliteDialect {
    type Database = Sqlite;
    const NO_LIMIT: Option<i64> = None;

    fn query(text: Cow<'static, str>, values: Vec<Value>) -> DriverQuery<Self> {
        let text = match text {
            Cow::Borrowed(text) => SqlStr::from_static(text),
            Cow::Owned(text) => AssertSqlSafe(text).into_sql_str(),
        };
        values.into_iter().fold(query(text), Self::bind)
    }

    fn bind(query: DriverQuery<Self>, value: Value) -> DriverQuery<Self> {
        match value {
            Value::Number(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Id(id) => query.bind(id),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Time(time) => query.bind(time.map(micros)),
        }
    }

    fn rows_affected(done: &SqliteQueryResult) -> u64 {
        done.rows_affected()
    }

    fn failed(op: &'static str) -> impl Fn(SqlxError) -> Error {
        failed(op)
    }
}
