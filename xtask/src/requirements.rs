//! `cargo xtask requirements`: whether every requirement of the five source documents has a test that exists and passed.
//!
//! `docs/source-systems.md` has a row for each id, with the tests that prove it. A test names its ids in its doc comment. The whole
//! suite leaves a list of the tests that passed.

pub mod mutants;
mod page;
mod source;

use std::collections::BTreeSet;
use std::fs;

use crate::suite;
use crate::task_error::TaskError;
use crate::{say, workspace};

use page::Row;
use source::Source;

/// The letters of the documents, and how many ids each has.
const IDS: &[(char, u32)] = &[('U', 19), ('E', 18), ('L', 17), ('C', 19), ('T', 12), ('X', 2)];

/// The page with the table.
const PAGE: &str = "docs/source-systems.md";

/// All ids, in the order of the documents.
pub fn ids() -> Vec<String> {
    IDS.iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")))
        .collect()
}

/// A test, as the page and the list of what passed name it: `package::program::path`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// The package, by its folder.
    pub package: String,
    /// The test program.
    pub program: String,
    /// The path of the function in it.
    pub path: String,
}

impl Test {
    /// Reads `package::program::path`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, "::").map(str::to_owned);
        let (package, program, path) = (parts.next()?, parts.next()?, parts.next()?);
        let whole =
            ![&package, &program, &path].into_iter().any(|part| part.is_empty() || part.contains(' '));
        whole.then_some(Self { package, program, path })
    }

    /// The function's name.
    pub fn function(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or(&self.path)
    }
}

/// Checks all ids, says what is missing, and gives the exit code. Without a list of what passed, `must_have_run` fails it.
pub fn check(must_have_run: bool) -> Result<u8, TaskError> {
    let page = workspace::root().join(PAGE);
    let text = fs::read_to_string(&page)
        .map_err(|error| TaskError::new(format!("could not read {PAGE}: {error}")))?;
    let source = Source::of_workspace()?;
    let passed = suite::passed()?;
    if passed.is_none() && must_have_run {
        say("no list of tests that passed: run `cargo xtask test` first");
        return Ok(1);
    }
    let complaints = complaints(&ids(), &page::rows(&text), &source, passed.as_ref());
    for complaint in &complaints {
        say(complaint);
    }
    let ids = ids().len();
    if complaints.is_empty() {
        let ran = if passed.is_some() { "exists and passed" } else { "exists" };
        println!("requirements: {ids} of {ids} have a test that {ran}");
        Ok(0)
    } else {
        println!("requirements: {} things are wrong in {PAGE} or in the tests", complaints.len());
        Ok(1)
    }
}

fn complaints(
    ids: &[String],
    rows: &[Row],
    source: &Source,
    passed: Option<&BTreeSet<String>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for id in ids {
        match rows.iter().filter(|row| row.id == *id).collect::<Vec<_>>()[..] {
            [] => wrong.push(format!("{id} has no row in {PAGE}")),
            [row] => wrong.extend(wrong_with(row, source, passed)),
            _ => wrong.push(format!("{id} has several rows in {PAGE}")),
        }
    }
    let unknown = rows.iter().filter(|row| !ids.contains(&row.id));
    wrong.extend(unknown.map(|row| format!("{} in {PAGE} is no requirement", row.id)));
    wrong
}

fn wrong_with(row: &Row, source: &Source, passed: Option<&BTreeSet<String>>) -> Vec<String> {
    let id = &row.id;
    let mut wrong = Vec::new();
    if row.tests.is_empty() {
        wrong.push(format!("{id} names no test"));
    }
    for name in &row.tests {
        let Some(test) = Test::parse(name) else {
            wrong.push(format!("{id}: {name} must be package::program::test"));
            continue;
        };
        if !source.names(test.function(), id) {
            wrong.push(format!("{id}: no test {} names {id} in its doc comment", test.function()));
        }
        if passed.is_some_and(|passed| !passed.contains(name)) {
            wrong.push(format!("{id}: {name} did not run, or failed"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// U1, U2: both.\n#[tokio::test]\nasync fn it_holds() {}\n";

    fn found(page: &str, passed: &[&str]) -> Vec<String> {
        let source = Source::of_texts([CODE]);
        let passed = passed.iter().map(|name| (*name).to_owned()).collect();
        complaints(&["U1".into(), "U2".into()], &page::rows(page), &source, Some(&passed))
    }

    #[test]
    fn there_are_87_ids() {
        assert_eq!(ids().len(), 87);
    }

    #[test]
    fn a_whole_page_has_nothing_wrong() {
        let page = "| U1 | a | `umbra::flows::it_holds` | |\n| U2 | b | `umbra::flows::it_holds` | |\n";
        assert_eq!(found(page, &["umbra::flows::it_holds"]), [""; 0]);
    }

    #[test]
    fn whatever_is_missing_is_told() {
        let page = "| U1 | a | `umbra::flows::other`, `x` | |\n| U9 | b | | |\n";
        let found = found(page, &["umbra::flows::it_holds"]).join("\n");
        for what in [
            "U1: no test other names U1",
            "U1: umbra::flows::other did not run",
            "U1: x must be package::program::test",
            "U2 has no row",
            "U9 in docs/source-systems.md is no requirement",
        ] {
            assert!(found.contains(what), "{found}");
        }
    }
}
