//! `cargo xtask requirements`: whether every requirement of the five source documents has a test that exists and passed.
//!
//! `docs/source-systems.md` has a row for each id, with the tests that prove it. A test names its ids in its doc comment. The whole
//! suite leaves a list of the tests that passed. `mutants.toml` of each system names, for each id, a test that can fail.

pub mod mutants;
mod page;
mod place;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use crate::suite;
use crate::task_error::TaskError;
use crate::{say, workspace};

use mutants::Mutant;
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

    /// The function's name behind that of the module it is in: `module::function`.
    fn function_in_module(&self) -> &str {
        self.path
            .rmatch_indices("::")
            .nth(1)
            .map_or(&self.path, |(at, colons)| &self.path[at + colons.len()..])
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}::{}", self.package, self.program, self.path)
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
    let mutants = mutants::all()?;
    let mut complaints = complaints(&ids(), &page::rows(&text), &source, passed.as_ref(), &mutants);
    complaints.extend(mutants::complaints(&mutants));
    for complaint in &complaints {
        say(complaint);
    }
    let ids = ids().len();
    if complaints.is_empty() {
        let ran = if passed.is_some() { "exists and passed" } else { "exists" };
        println!("requirements: {ids} of {ids} have a test that {ran}");
        Ok(0)
    } else {
        println!(
            "requirements: {} things are wrong in {PAGE}, in the tests or in a mutants.toml",
            complaints.len()
        );
        Ok(1)
    }
}

fn complaints(
    ids: &[String],
    rows: &[Row],
    source: &Source,
    passed: Option<&BTreeSet<String>>,
    mutants: &[Mutant],
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
    wrong.extend(mutants.iter().filter_map(|mutant| wrong_with_mutant(mutant, rows)));
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
        if !source.names(&test, id) {
            let Test { package, program, .. } = &test;
            let function = test.function();
            wrong.push(format!(
                "{id}: no test {function} of {package}::{program} names {id} in its doc comment"
            ));
        }
        if passed.is_some_and(|passed| !passed.contains(name)) {
            wrong.push(format!("{id}: {name} did not run, or failed"));
        }
    }
    wrong
}

/// A mutant whose test is not in the row of its id: what it shows is not what the row says.
fn wrong_with_mutant(mutant: &Mutant, rows: &[Row]) -> Option<String> {
    let Mutant { id, test, .. } = mutant;
    let name = test.to_string();
    let is_in_row = rows.iter().any(|row| row.id == *id && row.tests.contains(&name));
    (!is_in_row).then(|| format!("{id}: the row must name {name}, the test of its mutant"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// U1, U2: both.\n#[tokio::test]\nasync fn it_holds() {}\n";

    /// A page whose two rows name one test.
    const WHOLE: &str = "| U1 | a | `umbra::flows::it_holds` | |\n| U2 | b | `umbra::flows::it_holds` | |\n";

    fn found(page: &str, passed: &[&str], mutants: &[(&str, &str)]) -> Vec<String> {
        let source = Source::of_texts([("umbra", "tests/flows.rs", CODE)]);
        let passed = passed.iter().map(|name| (*name).to_owned()).collect();
        let mutants: Vec<Mutant> = mutants.iter().map(|(id, test)| Mutant::of_test(id, test)).collect();
        complaints(&["U1".into(), "U2".into()], &page::rows(page), &source, Some(&passed), &mutants)
    }

    #[test]
    fn there_are_87_ids() {
        assert_eq!(ids().len(), 87);
    }

    #[test]
    fn a_test_is_named_by_its_package_its_program_and_its_path() {
        let test = Test::parse("a::b::c::d::e").expect("a test");
        assert_eq!((test.function(), test.function_in_module()), ("e", "d::e"));
        assert_eq!(test.to_string(), "a::b::c::d::e");
        assert_eq!(Test::parse("a::b::c").expect("a test").function_in_module(), "c");
        assert_eq!(Test::parse("a::b::c::d").expect("a test").function_in_module(), "c::d");
    }

    #[test]
    fn a_whole_page_has_nothing_wrong() {
        let mutants = [("U1", "umbra::flows::it_holds"), ("U2", "umbra::flows::it_holds")];
        assert_eq!(found(WHOLE, &["umbra::flows::it_holds"], &mutants), [""; 0]);
    }

    #[test]
    fn whatever_is_missing_is_told() {
        let page = "| U1 | a | `umbra::flows::other`, `x` | |\n| U9 | b | | |\n";
        let found = found(page, &["umbra::flows::it_holds"], &[]).join("\n");
        for what in [
            "U1: no test other of umbra::flows names U1",
            "U1: umbra::flows::other did not run",
            "U1: x must be package::program::test",
            "U2 has no row",
            "U9 in docs/source-systems.md is no requirement",
        ] {
            assert!(found.contains(what), "{found}");
        }
    }

    #[test]
    fn a_test_of_the_same_name_in_another_program_does_not_count() {
        let page = WHOLE.replacen("umbra::flows", "ledger::flows", 1);
        let passed = ["umbra::flows::it_holds", "ledger::flows::it_holds"];
        let said = "U1: no test it_holds of ledger::flows names U1 in its doc comment";
        assert_eq!(found(&page, &passed, &[]), [said]);
    }

    #[test]
    fn the_test_of_a_mutant_is_in_the_row_of_its_id() {
        let passed = ["umbra::flows::it_holds"];
        let mutants = [("U1", "umbra::flows::it_holds"), ("U2", "umbra::flows::other")];
        let said = "U2: the row must name umbra::flows::other, the test of its mutant";
        assert_eq!(found(WHOLE, &passed, &mutants), [said]);
    }
}
