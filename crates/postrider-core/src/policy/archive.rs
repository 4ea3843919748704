//! How events are put away: what of them is masked, and where they go.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Mask, Result};

/// How events are put away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// What is not kept in the clear.
    pub mask: Mask,
    /// A table of the application that they go to; the archive, unless set.
    pub target: Option<ArchiveTable>,
    /// Whether the archive is to be partitioned by the month of recording, where a store leaves the choice: MariaDB and MySQL.
    /// PostgreSQL's always is.
    pub by_month: bool,
}

impl ArchiveOptions {
    /// About how many bytes of events go through a relay's memory in one round of a archiving that is not plain: 4 MiB, or one event.
    pub const BYTES: u64 = 4 << 20;

    /// Whether events go to the archive just as they are.
    pub fn is_plain(&self) -> bool {
        self.mask.is_empty() && self.target.is_none()
    }
}

/// A table of the application that archived events go to, in the same transaction that takes them out of the log.
///
/// Postrider only adds rows to it, by the rights of the role that it has: it never reads, changes or drops it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveTable {
    table: Vec<String>,
    columns: Vec<(String, Field)>,
}

impl ArchiveTable {
    /// A table, as in `audit.events`, and which of its columns takes which field. Names are taken as they are, capitals included.
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
        Ok(Self { table: names, columns })
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

    /// Its columns and what goes into them.
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
        /// What a column of a [`ArchiveTable`] takes.
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
    EventId "event_id" "Its id for everybody else.",
    Stream "stream" "The stream it was in.",
    EventType "event_type" "What happened.",
    AggregateType "aggregate_type" "What kind of thing it happened to.",
    AggregateId "aggregate_id" "Which one it happened to.",
    OrderingKey "ordering_key" "What it was ordered by: the aggregate as `type:id`, unless told otherwise.",
    Sequence "sequence" "Its number within its key, where it has one.",
    Payload "payload" "What it says, if it is JSON.",
    ContentType "content_type" "The media type of what it says, if it is not JSON.",
    Content "content" "What it says, if it is not JSON.",
    Headers "headers" "What travelled beside the payload, as a JSON object.",
    OccurredAt "occurred_at" "When it happened.",
    RecordedAt "recorded_at" "When it was recorded.",
    ArchivedAt "archived_at" "When it was put away."
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
