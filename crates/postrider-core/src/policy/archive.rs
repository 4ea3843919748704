//! Archiving: where retention moves events, and which fields it masks.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Mask, Result};

/// How events are archived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// The payload fields to mask.
    pub mask: Mask,
    /// A table of the application that receives them. Default: the archive.
    pub target: Option<ArchiveTable>,
    /// Whether to partition the archive by the month of recording, on MariaDB and MySQL. On PostgreSQL it always is.
    pub by_month: bool,
}

impl ArchiveOptions {
    /// Approximate bytes of events in memory during one round of archiving that is not plain: 4 MiB, or one event.
    pub const BYTES: u64 = 4 << 20;

    /// Whether events go to the archive unchanged.
    pub fn is_plain(&self) -> bool {
        self.mask.is_empty() && self.target.is_none()
    }
}

/// A table of the application that receives archived events, in the transaction that removes them from the log.
///
/// Postrider only inserts into it, with the privileges of its role: it never reads, changes or drops it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveTable {
    table: Vec<String>,
    columns: Vec<(String, Field)>,
    skip_existing: bool,
}

impl ArchiveTable {
    /// A table such as `audit.events`, and the field that each column stores. Names are case-sensitive.
    pub fn new(table: &str, columns: impl IntoIterator<Item = (String, Field)>) -> Result<Self> {
        let refuse = |what: String| Err(Error::new(ErrorKind::Invalid, "archive", what));
        let names: Vec<String> = table.split('.').map(ToOwned::to_owned).collect();
        if names.len() > 2 || !names.iter().all(|name| is_name(name)) {
            return refuse(format!("{table:?} is not a table name such as \"audit.events\""));
        }
        let columns: Vec<_> = columns.into_iter().collect();
        if let Some((column, _)) = columns.iter().find(|(column, _)| !is_name(column)) {
            return refuse(format!("{column:?} is not a column name"));
        }
        if !columns.iter().any(|(_, field)| matches!(field, Field::EventId | Field::Id)) {
            return refuse(format!(
                "one column of {table} must store event_id, to identify the event of a row"
            ));
        }
        Ok(Self { table: names, columns, skip_existing: false })
    }

    /// Skips an event whose id already exists in the table, for a table that a subscriber also fills. The column that stores `event_id` must be unique; `id` if no column stores `event_id`.
    ///
    /// A row that can't be inserted for any other reason fails as before.
    #[must_use]
    pub fn skip_existing(mut self) -> Self {
        self.skip_existing = true;
        self
    }

    /// The column and the field that identify an existing row, if existing rows are skipped.
    pub fn existing_by(&self) -> Option<(&str, Field)> {
        let column = |wanted| self.columns.iter().find(move |(_, field)| *field == wanted);
        let (name, field) = column(Field::EventId).or_else(|| column(Field::Id))?;
        self.skip_existing.then_some((name.as_str(), *field))
    }

    /// [`ArchiveTable::existing_by`]'s column, quoted for SQL.
    pub fn quoted_existing(&self) -> Option<String> {
        self.existing_by().map(|(column, _)| quoted(column))
    }

    /// The table's name, for people.
    pub fn name(&self) -> String {
        self.table.join(".")
    }

    /// The schema, if one is named, and the table.
    pub fn table(&self) -> (Option<&str>, &str) {
        match self.table.as_slice() {
            [schema, table] => (Some(schema), table),
            [table] => (None, table),
            _ => (None, ""),
        }
    }

    /// Its columns and the field of each.
    pub fn columns(&self) -> &[(String, Field)] {
        &self.columns
    }

    /// The table's name, quoted for SQL.
    pub fn quoted_table(&self) -> String {
        self.table.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".")
    }

    /// The names of its columns, quoted for SQL.
    pub fn quoted_columns(&self) -> String {
        self.columns.iter().map(|(column, _)| quoted(column)).collect::<Vec<_>>().join(", ")
    }
}

fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && !name.contains('\0')
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

macro_rules! fields {
    ($($field:ident $name:literal $about:literal),+) => {
        /// A field of an event that a column of an [`ArchiveTable`] stores.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Field {
            $(#[doc = $about] $field),+
        }

        impl Field {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$field),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$field => $name),+
                }
            }
        }
    };
}

fields! {
    Id "id" "Its number in the log.",
    EventId "event_id" "Its id outside of the log.",
    Stream "stream" "Its stream.",
    EventType "event_type" "Its type.",
    AggregateType "aggregate_type" "The type of its aggregate.",
    AggregateId "aggregate_id" "The id of its aggregate.",
    OrderingKey "ordering_key" "Its ordering key; by default the aggregate as `type:id`.",
    Sequence "sequence" "Its number within its key, if it has one.",
    Payload "payload" "Its payload, if it is JSON.",
    ContentType "content_type" "The media type of its payload, if it is not JSON.",
    Content "content" "Its payload, if it is not JSON.",
    Headers "headers" "Its headers, as a JSON object.",
    OccurredAt "occurred_at" "When it happened.",
    RecordedAt "recorded_at" "When it was recorded.",
    ArchivedAt "archived_at" "When it was archived."
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Field {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.iter().find(|field| field.as_str() == text).copied().ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|field| field.as_str()).collect();
            let message = format!("{text:?} is not a field of an event; the fields are {}", all.join(", "));
            Error::new(ErrorKind::Invalid, "archive", message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_is_in_them() {
        let columns = [("id".to_owned(), Field::EventId), ("a\"b; drop".to_owned(), Field::Payload)];
        let target = ArchiveTable::new("audit.Events\"", columns).expect("a target");
        assert_eq!(target.quoted_table(), "\"audit\".\"Events\"\"\"");
        assert_eq!(target.quoted_columns(), "\"id\", \"a\"\"b; drop\"");
        assert_eq!(target.table(), (Some("audit"), "Events\""));
    }

    #[test]
    fn a_target_that_cannot_be_one_is_refused() {
        let id = || [("id".to_owned(), Field::EventId)];
        for (table, columns) in
            [("a.b.c", id().to_vec()), ("", id().to_vec()), ("a.", id().to_vec()), ("a", vec![])]
        {
            assert_eq!(
                ArchiveTable::new(table, columns).expect_err("must be refused").kind(),
                ErrorKind::Invalid
            );
        }
        let error = "payloads".parse::<Field>().expect_err("no field").to_string();
        assert!(error.contains("payload, content_type"), "{error}");
    }
}
