//! Statements: the text of a file, what is put into it, and its way to the database.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use futures_util::TryStreamExt;
use postrider_core::{Error, Result};
use sqlx_core::Error as SqlxError;
use sqlx_core::arguments::IntoArguments;
use sqlx_core::database::{Database, HasStatementCache};
use sqlx_core::executor::Executor;
use sqlx_core::query::Query;

use crate::value::Value;

/// One statement: the name of its file, and what is in it.
#[derive(Clone, Copy)]
pub struct Statement {
    /// The name of the file, such as `read.sql`.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// The statement in a file of the folder `sql` of the crate that asks for it.
#[macro_export]
macro_rules! statement {
    ($name:literal) => {
        $crate::Statement {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name)),
        }
    };
}

/// Changes a statement by its name; for tests that prove that tests notice.
pub type Patch = fn(&'static str, &str) -> Option<String>;

/// A statement of the driver, ready to run.
pub type DriverQuery<D> =
    Query<'static, <D as Dialect>::Database, <<D as Dialect>::Database as Database>::Arguments>;
/// A connection of the driver.
pub type Connection<D> = <<D as Dialect>::Database as Database>::Connection;
/// A row of the driver.
pub type DriverRow<D> = <<D as Dialect>::Database as Database>::Row;

/// What one kind of database has of its own in running statements.
pub trait Dialect: Copy + Default + Send + Sync + 'static {
    /// The driver's name for it.
    type Database: Database + HasStatementCache;

    /// What the log keeps as `max_attempts` of an event that has no limit of its own.
    const NO_LIMIT: Option<i64>;

    /// The driver's statement of a text whose first parameter is `?1`.
    fn query(text: Cow<'static, str>, values: Vec<Value>) -> DriverQuery<Self>;

    /// Gives a statement its next parameter.
    fn bind(query: DriverQuery<Self>, value: Value) -> DriverQuery<Self>;

    /// How many rows a statement wrote.
    fn rows_affected(done: &<Self::Database as Database>::QueryResult) -> u64;

    /// What an error of the driver means.
    fn failed(op: &'static str) -> impl Fn(SqlxError) -> Error;

    /// Whether a statement had no effect and must be sent again in the same transaction.
    fn must_repeat(error: &SqlxError) -> bool {
        let _ = error;
        false
    }
}

/// The statements of a store, as they are or with a bug planted in them.
#[derive(Clone, Copy, Default)]
pub struct Sql<D> {
    patch: Option<Patch>,
    dialect: PhantomData<D>,
}

impl<D: Dialect> Sql<D> {
    /// Statements with a bug planted in them.
    pub fn patched(patch: Patch) -> Self {
        Self { patch: Some(patch), dialect: PhantomData }
    }

    /// A statement, ready for its parameters.
    pub fn query(self, statement: Statement) -> Call<D> {
        let patched = self.patch.and_then(|patch| patch(statement.name, statement.text));
        let text = patched.map_or(Cow::Borrowed(statement.text), Cow::Owned);
        Call { text, values: Vec::new(), dialect: PhantomData }
    }

    /// The look at what is due, `due`, with the part of it that goes by an order.
    pub fn query_due(self, due: Statement, chosen: Statement) -> Call<D> {
        let chosen = self.query(chosen);
        self.query(due).with("{chosen}", &chosen.text)
    }
}

impl<D: Dialect> Sql<D>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
{
    /// Runs a statement that has one parameter, and gives how many rows it wrote.
    pub async fn run(
        self,
        conn: &mut Connection<D>,
        statement: Statement,
        value: impl Into<Value>,
        op: &'static str,
    ) -> Result<u64> {
        self.query(statement).bind(value).execute(conn, op).await
    }
}

impl<D> fmt::Debug for Sql<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.patch.is_some() { "Sql(patched)" } else { "Sql" })
    }
}

/// A statement with its parameters.
pub struct Call<D> {
    text: Cow<'static, str>,
    values: Vec<Value>,
    dialect: PhantomData<D>,
}

impl<D: Dialect> Call<D> {
    /// The next parameter: the first is `?1`.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Fills in a part of the text; never with anything that a caller wrote.
    #[must_use]
    pub fn with(mut self, place: &str, text: &str) -> Self {
        self.text = Cow::Owned(self.text.replace(place, text));
        self
    }
}

impl<D: Dialect> Call<D>
where
    for<'c> &'c mut Connection<D>: Executor<'c, Database = D::Database>,
    <D::Database as Database>::Arguments: IntoArguments<D::Database>,
{
    /// Runs it, and gives how many rows it wrote.
    pub async fn execute(self, conn: &mut Connection<D>, op: &'static str) -> Result<u64> {
        let done = D::query(self.text, self.values).execute(conn).await.map_err(D::failed(op))?;
        Ok(D::rows_affected(&done))
    }

    /// All its rows.
    pub async fn fetch_all(self, conn: &mut Connection<D>, op: &'static str) -> Result<Vec<DriverRow<D>>> {
        D::query(self.text, self.values).fetch_all(conn).await.map_err(D::failed(op))
    }

    /// Its row.
    pub async fn fetch_one(self, conn: &mut Connection<D>, op: &'static str) -> Result<DriverRow<D>> {
        D::query(self.text, self.values).fetch_one(conn).await.map_err(D::failed(op))
    }

    /// Its row, if there is one.
    pub async fn fetch_optional(
        self,
        conn: &mut Connection<D>,
        op: &'static str,
    ) -> Result<Option<DriverRow<D>>> {
        D::query(self.text, self.values).fetch_optional(conn).await.map_err(D::failed(op))
    }

    /// Gives each row to `take` as it comes, until it wants no more. Whether it had them all: otherwise rows may still be on their way.
    pub async fn fetch_each(
        self,
        conn: &mut Connection<D>,
        op: &'static str,
        mut take: impl FnMut(DriverRow<D>) -> Result<bool>,
    ) -> Result<bool> {
        let mut rows = D::query(self.text, self.values).fetch(conn);
        while let Some(row) = rows.try_next().await.map_err(D::failed(op))? {
            if !take(row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
