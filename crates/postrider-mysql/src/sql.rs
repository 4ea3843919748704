//! How statements reach the server. Their texts are under `sql/`, one file each.
//!
//! MySQL knows parameters by their place only. The files number them (`?1`), so that one may stand in several places and be
//! spoken of; here they are put in order.

use std::borrow::Cow;

use postrider_core::{Error, Result};
use postrider_sql::{Dialect, DriverQuery, Value};
use sqlx_core::Error as SqlxError;
use sqlx_core::query::query;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySql, MySqlConnection, MySqlQueryResult, MySqlRow};

use crate::error::{failed, must_prepare_again};
use crate::row::date_of;

/// The statements of a store.
pub(crate) type Sql = postrider_sql::Sql<MySqlDialect>;
/// A statement with its parameters.
pub(crate) type Call = postrider_sql::Call<MySqlDialect>;

/// What MariaDB and MySQL have of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MySqlDialect;

impl Dialect for MySqlDialect {
    type Database = MySql;
    const NO_LIMIT: Option<i64> = Some(0);

    fn query(text: Cow<'static, str>, values: Vec<Value>) -> DriverQuery<Self> {
        let (text, order) = in_order(&text);
        // A parameter that nobody gave is null, and a statement that needed it says so.
        let given = |place: &usize| values.get(place - 1).cloned().unwrap_or(Value::Number(None));
        order.iter().map(given).fold(query(AssertSqlSafe(text)), Self::bind)
    }

    fn bind(query: DriverQuery<Self>, value: Value) -> DriverQuery<Self> {
        match value {
            Value::Number(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Id(id) => query.bind(id),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Time(time) => query.bind(time.map(date_of)),
        }
    }

    fn rows_affected(done: &MySqlQueryResult) -> u64 {
        done.rows_affected()
    }

    fn failed(op: &'static str) -> impl Fn(SqlxError) -> Error {
        failed(op)
    }

    fn must_repeat(error: &SqlxError) -> bool {
        must_prepare_again(error)
    }
}

/// Calls a procedure that has a transaction of its own, and gives its answer.
pub(crate) async fn call(call: Call, conn: &mut MySqlConnection, op: &'static str) -> Result<MySqlRow> {
    let answer = call.fetch_one(conn, op).await;
    if answer.is_err() {
        // A procedure that was ended from outside (`kill query`) may have had no time to roll back, and whoever gets the connection
        // next would commit one half of it by beginning another transaction.
        let _ = raw_sql("rollback").execute(conn).await;
    }
    answer
}

/// The text with nameless parameters and without its comments, and which parameter stands at each place.
fn in_order(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut order) = (String::with_capacity(text.len()), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        let mut rest = line;
        while let Some(at) = rest.find('?') {
            plain.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            order.push(rest[..digits].parse::<usize>().unwrap_or(order.len() + 1));
            rest = &rest[digits..];
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    (plain, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_in_the_order_of_their_places() {
        let (text, order) = in_order("-- Parameters: ?1 one, ?2 two.\nselect ?2 + ?1, ?12\nwhere ?2");
        assert_eq!((text.as_str(), order), ("select ? + ?, ?\nwhere ?\n", vec![2, 1, 12, 2]));
    }

    #[test]
    fn parameters_without_a_number_count_by_themselves() {
        assert_eq!(in_order("values (?, ?, ?)").1, [1, 2, 3]);
    }
}
