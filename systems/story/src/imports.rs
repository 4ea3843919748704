//! The check that the inside of a system names nothing of the outside.

use std::fs;
use std::path::Path;

/// What domain and application code must not name, in any system.
pub const OUTSIDE: &[&str] = &["postrider", "sqlx", "rdkafka", "reqwest", "axum", "story", "tokio"];

/// The lines of the Rust files below a folder that name one of the words as a path (`sqlx::`, `use sqlx`), with their file. Comments
/// don't count.
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

/// The lines of a text that name one of the words.
pub fn lines_naming(text: &str, words: &[&str]) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let named = |line: &str| words.iter().any(|word| names(line, word));
    code.filter(|line| named(line)).map(|line| line.trim().to_owned()).collect()
}

fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + word.len()..];
        let begins = before.is_none_or(|sign| !sign.is_alphanumeric() && sign != '_');
        begins && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found_and_comments_are_not() {
        for planted in ["use sqlx::PgPool;", "let x = ::sqlx::query(\"\");", "use sqlx;", "use sqlx as s;"] {
            assert_eq!(lines_naming(planted, OUTSIDE).len(), 1, "{planted}");
        }
        for fine in ["// sqlx::query", "use crate::sqlx_like::Thing;", "let mysqlx = 1;"] {
            assert_eq!(lines_naming(fine, OUTSIDE), [""; 0], "{fine}");
        }
    }
}
