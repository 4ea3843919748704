//! The texts of the statements: one file each, under `sql/`, and what is put into them.
//!
//! MySQL knows parameters by their place only. The files number them (`?1`), so that one may stand in several places and be
//! spoken of; here they are put in order.

use std::fmt;

use futures_util::TryStreamExt;
use postrider_core::Result;
use sqlx_core::query::{Query, query};
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_mysql::{MySql, MySqlArguments, MySqlConnection, MySqlRow};
use uuid::Uuid;

use crate::error::failed;

/// One statement: the name of its file, and what is in it.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! statement {
    ($name:literal) => {
        crate::sql::Statement { name: $name, text: include_str!(concat!("../sql/", $name)) }
    };
}
pub(crate) use statement;

/// Changes a statement by its name; for tests that prove that tests notice.
pub(crate) type Patch = fn(&'static str, &str) -> Option<String>;

/// The statements of a store, as they are or with a bug planted in them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sql {
    patch: Option<Patch>,
}

impl Sql {
    pub(crate) fn patched(patch: Patch) -> Self {
        Self { patch: Some(patch) }
    }

    /// A statement, ready for its parameters.
    pub(crate) fn query(self, statement: Statement) -> Call {
        let patched = self.patch.and_then(|patch| patch(statement.name, statement.text));
        Call { text: patched.unwrap_or_else(|| statement.text.to_owned()), values: Vec::new() }
    }

    /// A look at what is due, by the part of it that goes by an order.
    pub(crate) fn query_due(self, chosen: Statement) -> Call {
        let chosen = self.query(chosen);
        self.query(statement!("due.sql")).with("{chosen}", &chosen.text)
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.patch.is_some() { "Sql(patched)" } else { "Sql" })
    }
}

/// A parameter.
#[derive(Clone)]
pub(crate) enum Value {
    Number(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
}

macro_rules! value_from {
    ($($type:ty => |$value:ident| $made:expr),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $made
            }
        })+
    };
}

value_from! {
    i64 => |number| Self::Number(Some(number)),
    u32 => |number| Self::Number(Some(i64::from(number))),
    Option<i64> => |number| Self::Number(number),
    bool => |flag| Self::Number(Some(i64::from(flag))),
    &str => |text| Self::Text(Some(text.to_owned())),
    &String => |text| Self::Text(Some(text.clone())),
    String => |text| Self::Text(Some(text)),
    Option<&str> => |text| Self::Text(text.map(str::to_owned)),
    Option<String> => |text| Self::Text(text),
    Uuid => |id| Self::Id(Some(id)),
    Option<Uuid> => |id| Self::Id(id),
}

/// A statement with its parameters.
pub(crate) struct Call {
    text: String,
    values: Vec<Value>,
}

impl Call {
    /// The next parameter: the first is `?1`.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Fills in a part of the text; never with anything that a caller wrote.
    pub(crate) fn with(mut self, place: &str, text: &str) -> Self {
        self.text = self.text.replace(place, text);
        self
    }

    /// Runs it, and gives how many rows it found.
    pub(crate) async fn execute(self, conn: &mut MySqlConnection, op: &'static str) -> Result<u64> {
        let (text, order) = in_order(&self.text);
        let done = bound(&text, &order, self.values).execute(conn).await.map_err(failed(op))?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn fetch_all(
        self,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<Vec<MySqlRow>> {
        let (text, order) = in_order(&self.text);
        bound(&text, &order, self.values).fetch_all(conn).await.map_err(failed(op))
    }

    /// Gives each row to `take` as it comes, until it wants no more. Whether it had them all: otherwise rows are still on their
    /// way, and the connection must be given up.
    pub(crate) async fn fetch_each(
        self,
        conn: &mut MySqlConnection,
        op: &'static str,
        mut take: impl FnMut(MySqlRow) -> Result<bool>,
    ) -> Result<bool> {
        let (text, order) = in_order(&self.text);
        let mut rows = bound(&text, &order, self.values).fetch(conn);
        while let Some(row) = rows.try_next().await.map_err(failed(op))? {
            if !take(row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) async fn fetch_one(self, conn: &mut MySqlConnection, op: &'static str) -> Result<MySqlRow> {
        let (text, order) = in_order(&self.text);
        bound(&text, &order, self.values).fetch_one(conn).await.map_err(failed(op))
    }

    /// Calls a procedure that has a transaction of its own, and gives its answer.
    pub(crate) async fn call(self, conn: &mut MySqlConnection, op: &'static str) -> Result<MySqlRow> {
        let answer = self.fetch_one(&mut *conn, op).await;
        if answer.is_err() {
            // A procedure that was ended from outside (`kill query`) may have had no time to roll back, and whoever gets the connection
            // next would commit one half of it by beginning another transaction.
            let _ = raw_sql("rollback").execute(conn).await;
        }
        answer
    }

    pub(crate) async fn fetch_optional(
        self,
        conn: &mut MySqlConnection,
        op: &'static str,
    ) -> Result<Option<MySqlRow>> {
        let (text, order) = in_order(&self.text);
        bound(&text, &order, self.values).fetch_optional(conn).await.map_err(failed(op))
    }
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

fn bound(text: &str, order: &[usize], values: Vec<Value>) -> Query<'static, MySql, MySqlArguments> {
    let mut query = query(AssertSqlSafe(text.to_owned()));
    for place in order {
        // A parameter that nobody gave is null, and a statement that needed it says so.
        query = match values.get(place - 1).cloned().unwrap_or(Value::Number(None)) {
            Value::Number(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Id(id) => query.bind(id),
        };
    }
    query
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
