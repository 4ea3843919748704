//! The texts of the statements: one file each, under `sql/`.

use std::fmt;

use sqlx_core::query::{Query, query};
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr, SqlStr};
use sqlx_sqlite::{Sqlite, SqliteArguments};

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

    fn text(&self, statement: Statement) -> SqlStr {
        match self.patch.and_then(|patch| patch(statement.name, statement.text)) {
            Some(text) => AssertSqlSafe(text).into_sql_str(),
            None => SqlStr::from_static(statement.text),
        }
    }

    /// A statement, ready for its parameters.
    pub(crate) fn query<'q>(&self, statement: Statement) -> Query<'q, Sqlite, SqliteArguments> {
        query(self.text(statement))
    }

    /// A look at what is due, by the part of it that goes by an order.
    pub(crate) fn query_due<'q>(&self, chosen: Statement) -> Query<'q, Sqlite, SqliteArguments> {
        let text = self.text(statement!("due.sql"));
        query(AssertSqlSafe(text.as_str().replace("{chosen}", self.text(chosen).as_str())))
    }

    /// A statement whose `{where}` is filled in; never with anything that a caller wrote.
    pub(crate) fn query_where<'q>(
        &self,
        statement: Statement,
        where_: &str,
    ) -> Query<'q, Sqlite, SqliteArguments> {
        self.query_with(statement, &[("{where}", where_)])
    }

    /// The same with several places.
    pub(crate) fn query_with<'q>(
        &self,
        statement: Statement,
        parts: &[(&str, &str)],
    ) -> Query<'q, Sqlite, SqliteArguments> {
        let text = self.text(statement).as_str().to_owned();
        query(AssertSqlSafe(parts.iter().fold(text, |text, (place, part)| text.replace(place, part))))
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.patch.is_some() { "Sql(patched)" } else { "Sql" })
    }
}
