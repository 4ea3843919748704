//! The name of the schema that the log lives in, and its forms in SQL.

use postrider_core::{Error, ErrorKind, Result};

/// The words that can't be a schema's name without quotes, in any version from 13 to 18.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric authorization binary both case cast check \
     collate collation column concurrently constraint create cross current_catalog current_date \
     current_role current_schema current_time current_timestamp current_user default deferrable desc \
     distinct do else end except false fetch for foreign freeze from full grant group having ilike in \
     initially inner intersect into is isnull join lateral leading left like limit localtime \
     localtimestamp natural not notnull null offset on only or order outer overlaps placing primary \
     references returning right select session_user similar some symmetric system_user table tablesample \
     then to trailing true union unique user using variadic verbose when where window with";

/// The name of the schema, and its forms in SQL.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) name: String,
}

impl Schema {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let fits = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
        };
        let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        if name.len() > 63 || !starts_well || !name.chars().all(fits) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "connect",
                "a schema's name must have 1 to 63 characters of a-z, 0-9 and _, and must not start with a digit",
            ));
        }
        Ok(Self { name: name.to_owned() })
    }

    /// The notification channel of this schema's bell.
    pub(crate) fn channel(&self) -> String {
        format!("{}_bell", &self.name[..self.name.len().min(58)])
    }

    /// The text with the names in it, and without its comments: they are for who reads the file, not for the server.
    pub(crate) fn statement(&self, text: &str) -> String {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
        self.fill(&lines.collect::<Vec<_>>().join("\n"))
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{schema}", &self.quoted())
            .replace("{schema_name}", &self.name)
            .replace("{channel}", &format!("'{}'", self.channel()))
    }

    /// The name as SQL takes it. Only a name that is a word of SQL has quotes: what locks are named after is hashed with the rest of
    /// its text, and must be the same for every program that uses the schema.
    pub(crate) fn quoted(&self) -> String {
        if RESERVED.split(' ').any(|word| word == self.name) {
            format!("\"{}\"", self.name)
        } else {
            self.name.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_named_like_a_word_of_sql_is_quoted_and_no_other() {
        let fill = |name: &str| Schema::new(name).map(|schema| schema.fill("{schema}.event")).ok();
        assert!(RESERVED.split(' ').all(|word| !word.is_empty()));
        assert_eq!(fill("order").as_deref(), Some("\"order\".event"));
        assert_eq!(fill("orders").as_deref(), Some("orders.event"));
        assert_eq!(fill("Order"), None);
    }
}
