//! The check that the inside of a system names nothing of the outside.

use std::fs;
use std::path::Path;

/// What domain and application code must not name, in any system.
pub const OUTSIDE: &[&str] = &["postrider", "sqlx", "rdkafka", "reqwest", "axum", "story", "tokio"];

/// The lines of the Rust files below a folder that have one of the words, with their file. Comments don't count.
///
/// A word is found however it is written: as a path (`sqlx::query`), and within braces, where nothing has to follow it.
pub fn naming(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .flatten()
        .collect();
    entries.sort_by_key(fs::DirEntry::path);
    for path in entries.iter().map(fs::DirEntry::path) {
        if path.is_dir() {
            found.extend(naming(&path, words));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let lines = lines_naming(&text, words).into_iter();
            found.extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
    }
    found
}

/// The lines of a text that have one of the words.
pub fn lines_naming(text: &str, words: &[&str]) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let named = |line: &&str| {
        let mut found = line.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
        found.any(|word| words.contains(&word))
    };
    code.filter(named).map(|line| line.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found_and_comments_are_not() {
        let words = [OUTSIDE, &["adapters", "stubs"]].concat();
        for planted in [
            "use sqlx::PgPool;",
            "let x = ::sqlx::query(\"\");",
            "use sqlx;",
            "use sqlx as s;",
            "use {sqlx};",
            "use {sqlx, std::fmt};",
            "use crate::{domain::About, stubs};",
            "use crate::{adapters::wire, domain::About};",
            "use super::super::adapters as outside;",
            "    adapters,",
            "    stubs::{exchange, push},",
        ] {
            assert_eq!(lines_naming(&format!("// sqlx\n{planted}\nuse std::fmt;"), &words), [planted.trim()]);
        }
        for fine in
            ["// sqlx::query", "use crate::sqlx_like::Thing;", "let mysqlx = 1;", "let it = 1; // stubs"]
        {
            assert_eq!(lines_naming(fine, &words), [""; 0], "{fine}");
        }
    }
}
