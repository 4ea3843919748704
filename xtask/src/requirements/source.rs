//! Which tests name which requirements in their doc comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::Test;
use super::page::is_id;
use super::place::{self, Package};
use crate::task_error::TaskError;

/// The package whose macros make tests of its functions in the packages that call them.
const SUITE: &str = "postrider-conformance";

/// The ids that the doc comments of functions name.
///
/// A function is known by its package, its test program and its name: a path to its module would need the compiler.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// By `package::program::function`.
    named: BTreeMap<String, BTreeSet<String>>,
    /// Those of [`SUITE`], by `module::function`: the same module has them in the program that calls the macro.
    shared: BTreeMap<String, BTreeSet<String>>,
    /// The programs that call a macro of [`SUITE`], as `package::program`.
    sharing: BTreeSet<String>,
}

impl Source {
    /// All Rust files of the crates, systems and examples.
    pub(super) fn of_workspace() -> Result<Self, TaskError> {
        let mut source = Self::default();
        for package in place::packages()? {
            source.read(&package, &package.folder)?;
        }
        Ok(source)
    }

    /// Of these texts, each with its package and its path in it.
    #[cfg(test)]
    pub(super) fn of_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let mut source = Self::default();
        for (name, path, text) in texts {
            let package = Package::new(name, name.into(), &toml::Table::new());
            source.add(&package, Path::new(path), text);
        }
        source
    }

    /// Whether this test has the id in its doc comment.
    pub(super) fn names(&self, test: &Test, id: &str) -> bool {
        let Test { package, program, .. } = test;
        let program = format!("{package}::{program}");
        let own = self.named.get(&format!("{program}::{}", test.function()));
        let shared = self.sharing.contains(&program).then(|| self.shared.get(test.function_in_module()));
        own.into_iter().chain(shared.flatten()).any(|ids| ids.contains(id))
    }

    fn read(&mut self, package: &Package, folder: &Path) -> Result<(), TaskError> {
        let unreadable = |error| TaskError::new(format!("could not read {}: {error}", folder.display()));
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                self.read(package, &path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).map_err(unreadable)?;
                self.add(package, path.strip_prefix(&package.folder).unwrap_or(&path), &text);
            }
        }
        Ok(())
    }

    fn add(&mut self, package: &Package, path: &Path, text: &str) {
        let Some(place) = package.place(path) else { return };
        let programs = place.programs.iter().map(|program| format!("{}::{program}", package.name));
        if calls_the_suite(text) {
            self.sharing.extend(programs.clone());
        }
        for (function, ids) in functions(text) {
            if package.name == SUITE {
                let known = self.shared.entry(format!("{}::{function}", place.module)).or_default();
                known.extend(ids.iter().cloned());
            }
            for program in programs.clone() {
                self.named.entry(format!("{program}::{function}")).or_default().extend(ids.iter().cloned());
            }
        }
    }
}

/// The functions of a file, with the ids in the doc comments above them.
fn functions(text: &str) -> Vec<(&str, BTreeSet<String>)> {
    let mut functions = Vec::new();
    let mut ids = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            ids.extend(words(comment).filter(|word| is_id(word)).map(str::to_owned));
        } else if let Some(name) = function(line) {
            functions.push((name, std::mem::take(&mut ids)));
        } else if !line.starts_with("#[") && !line.ends_with(")]") {
            ids.clear();
        }
    }
    functions
}

/// Whether a file calls a macro of [`SUITE`], by its full name as all do.
fn calls_the_suite(text: &str) -> bool {
    let crate_name = SUITE.replace('-', "_");
    let calls = |line: &str| line.strip_prefix(&crate_name).is_some_and(|rest| rest.contains("!("));
    text.lines().map(str::trim).any(calls)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_ascii_alphanumeric())
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifiers = ["", "async ", "pub ", "pub async "];
    let name = after.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next()?;
    (qualifiers.contains(&before) && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &Source, test: &str, id: &str) -> bool {
        source.names(&Test::parse(test).expect("a test"), id)
    }

    #[test]
    fn ids_belong_to_the_function_below_them_alone() {
        let text = "/// U1: this,\n/// and E12.\n#[tokio::test(flavor = \"multi_thread\")]\nasync fn one() {}\n\n/// U3.\nconst A: u8 = 1;\nfn two() {}\n";
        let source = Source::of_texts([("a", "tests/b.rs", text)]);
        assert!(names(&source, "a::b::one", "U1") && names(&source, "a::b::one", "E12"));
        assert!(!names(&source, "a::b::two", "U3") && !names(&source, "a::b::two", "U1"));
        assert!(!names(&source, "a::b::three", "U1"));
    }

    #[test]
    fn a_test_of_the_same_name_elsewhere_lends_no_ids() {
        let source = Source::of_texts([
            ("umbra", "tests/story.rs", "/// U9.\nfn it_holds() {}\n"),
            ("everbit", "tests/story.rs", "/// E5.\nfn it_holds() {}\n"),
            ("everbit", "tests/queue/main.rs", "/// E3.\nfn it_holds() {}\n"),
            ("everbit", "src/domain/order.rs", "/// E11.\nfn it_holds() {}\n"),
        ]);
        let named = |test: &str| -> Vec<&str> {
            ["U9", "E5", "E3", "E11"].into_iter().filter(|id| names(&source, test, id)).collect()
        };
        assert_eq!(named("umbra::story::it_holds"), ["U9"]);
        assert_eq!(named("everbit::story::it_holds"), ["E5"]);
        assert_eq!(named("everbit::queue::it_holds"), ["E3"]);
        assert_eq!(named("everbit::everbit::domain::order::tests::it_holds"), ["E11"]);
        assert_eq!(named("ledger::story::it_holds"), [""; 0]);
    }

    #[test]
    fn a_test_of_the_suite_of_all_stores_has_its_ids_where_the_suite_is_called() {
        let source = Source::of_texts([
            (SUITE, "src/promises/leases.rs", "/// E10.\npub async fn it_holds() {}\n"),
            (SUITE, "src/promises/states.rs", "/// U7.\npub async fn it_holds() {}\n"),
            ("a", "tests/pooled.rs", "postrider_conformance::conformance!(pooled());\n"),
            ("a", "tests/other.rs", "use postrider_conformance::TestLog;\n"),
        ]);
        assert!(names(&source, "a::pooled::leases::it_holds", "E10"));
        assert!(names(&source, "a::pooled::at_work::states::it_holds", "U7"));
        assert!(!names(&source, "a::pooled::leases::it_holds", "U7"));
        assert!(!names(&source, "a::other::leases::it_holds", "E10"));
        assert!(!names(&source, "b::pooled::leases::it_holds", "E10"));
    }
}
