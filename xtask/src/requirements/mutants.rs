//! `cargo xtask requirements --mutants`: removes a line that a requirement needs, and expects its test to fail.
//!
//! `mutants.toml` of each system has a line for each id. A test that fails must have passed before, with all files as they are. A file
//! that was changed is put back, however the test ends.

mod binary;
mod trial;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Test, ids, place};
use crate::foreground::Foreground;
use crate::services::Services;
use crate::session::Session;
use crate::task_error::TaskError;
use crate::{say, workspace};

use binary::Binary;
use trial::Outcome;

/// How many are tried unless told.
pub const COUNT: usize = 10;

/// The chance that puts them in an order, the same each time.
const SEED: u64 = 0x0b5e_55ed;

/// The week since 1970: the soak of each week tries the mutants behind those of the week before, so that all have their turn.
pub fn week() -> usize {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    usize::try_from(since.as_secs() / (7 * 24 * 60 * 60)).unwrap_or_default()
}

/// A line, and the test that fails without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The requirement.
    pub id: String,
    /// The test that proves it.
    pub test: Test,
    /// The file, within the workspace.
    pub file: PathBuf,
    /// The line, without the white space around it.
    pub line: String,
    /// What stands there instead; nothing by default.
    pub with: String,
}

impl Mutant {
    fn parse(table: &toml::Table) -> Result<Self, String> {
        let text = |name: &str| table.get(name).and_then(toml::Value::as_str).map(str::to_owned);
        let needed = |name: &str| text(name).ok_or_else(|| format!("a mutant needs {name}"));
        let test = needed("test")?;
        let test = Test::parse(&test).ok_or_else(|| format!("{test} must be package::program::test"))?;
        Ok(Self {
            id: needed("id")?,
            test,
            file: needed("file")?.into(),
            line: needed("line")?.trim().to_owned(),
            with: text("with").unwrap_or_default(),
        })
    }

    /// One that names this test, and a file that nobody has.
    #[cfg(test)]
    pub(super) fn of_test(id: &str, test: &str) -> Self {
        let test = Test::parse(test).expect("a test");
        Self { id: id.to_owned(), test, file: "x.rs".into(), line: String::new(), with: String::new() }
    }

    /// Whether its file may be part of the binary `postrider`.
    fn is_below_crates(&self) -> bool {
        self.file.starts_with("crates")
    }

    /// The text without its line; a sentence if the line is not there once.
    fn applied(&self, text: &str) -> Result<String, String> {
        let is_it = |line: &&str| line.trim() == self.line;
        match text.lines().filter(is_it).count() {
            1 => {
                let lines = text.lines().map(|line| if is_it(&line) { self.with.as_str() } else { line });
                Ok(lines.collect::<Vec<_>>().join("\n") + "\n")
            }
            count => {
                let file = self.file.display();
                Err(format!(
                    "{}: {file} must have the line {:?} once, and has it {count} times",
                    self.id, self.line
                ))
            }
        }
    }
}

/// All mutants of the systems.
pub fn all() -> Result<Vec<Mutant>, TaskError> {
    let mut mutants = Vec::new();
    for system in crate::system::SYSTEMS {
        let path = workspace::root().join("systems").join(system.name).join("mutants.toml");
        let wrong = |what: &dyn std::fmt::Display| TaskError::new(format!("{}: {what}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        let table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        let list = table.get("mutant").and_then(toml::Value::as_array);
        for mutant in
            list.ok_or_else(|| wrong(&"it has no [[mutant]]"))?.iter().filter_map(toml::Value::as_table)
        {
            mutants.push(Mutant::parse(mutant).map_err(|error| wrong(&error))?);
        }
    }
    Ok(mutants)
}

/// What is wrong with the list itself: an id without a mutant, a line that is not there.
pub fn complaints(mutants: &[Mutant]) -> Vec<String> {
    let known: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    let missing =
        ids().into_iter().filter(|id| !known.contains(id.as_str())).map(|id| format!("{id} has no mutant"));
    let lines = mutants.iter().filter_map(|mutant| {
        let path = workspace::root().join(&mutant.file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {}: {error}", mutant.id, path.display()));
        text.and_then(|text| mutant.applied(&text)).err()
    });
    missing.chain(lines).collect()
}

/// Tries these ids, or so many of all by a fixed seed, those of this turn: every test must pass, and then fail without its line. Gives the
/// exit code.
pub fn run(foreground: &Foreground, count: usize, named: &[&str], turn: usize) -> Result<u8, TaskError> {
    let mutants = all()?;
    let mut wrong = complaints(&mutants);
    wrong.extend(unknown(&mutants, named));
    wrong.iter().for_each(|what| say(what));
    if !wrong.is_empty() {
        return Ok(1);
    }
    let chosen: Vec<Mutant> = if named.is_empty() {
        chosen(mutants, count, turn)
    } else {
        mutants.into_iter().filter(|mutant| named.contains(&mutant.id.as_str())).collect()
    };
    let session = Session::open(&Services::of_workspace(), &crate::kind::Kind::ALL)?;
    let packages = place::packages()?;
    let run = |test: &Test| trial::run(foreground, &session, &packages, test);
    let mut binary = Binary::of_workspace(foreground);
    let stands = stands(foreground, &mut binary, &chosen, run)?;
    if foreground.is_interrupted() {
        return Ok(crate::foreground::INTERRUPTED);
    }
    if !stands {
        return Ok(1);
    }
    let mut killed = 0;
    for mutant in &chosen {
        let outcome = tried(&mut binary, mutant, run)?;
        if foreground.is_interrupted() {
            return Ok(crate::foreground::INTERRUPTED);
        }
        killed += usize::from(outcome == Outcome::Failed);
        println!("{} {}: {} without {:?}", mutant.id, outcome.verdict(), mutant.test, mutant.line);
    }
    println!("mutants: {killed} of {} were killed", chosen.len());
    Ok(u8::from(killed < chosen.len()))
}

/// A sentence for each of these ids that no mutant has.
fn unknown(mutants: &[Mutant], named: &[&str]) -> Vec<String> {
    let unknown = named.iter().filter(|id| !mutants.iter().any(|mutant| mutant.id == **id));
    unknown.map(|id| format!("{id} is no requirement with a mutant")).collect()
}

/// Whether the tests of these mutants pass with all files as they are; says which do not.
fn stands(
    foreground: &Foreground,
    binary: &mut Binary<'_>,
    mutants: &[Mutant],
    run: impl Fn(&Test) -> Result<Outcome, TaskError>,
) -> Result<bool, TaskError> {
    if !binary.build()? {
        say("the binary postrider must compile before a line is removed");
        return Ok(false);
    }
    let tests: BTreeSet<&Test> = mutants.iter().map(|mutant| &mutant.test).collect();
    let mut stands = true;
    for test in tests {
        let outcome = run(test)?;
        if foreground.is_interrupted() {
            return Ok(false);
        }
        if outcome != Outcome::Passed {
            say(&format!("{test} must pass before a line is removed: {}", outcome.sentence()));
            stands = false;
        }
    }
    Ok(stands)
}

/// So many, by the seed: each turn those behind the ones of the turn before, and from the first one again when all had theirs.
fn chosen(mut mutants: Vec<Mutant>, count: usize, turn: usize) -> Vec<Mutant> {
    let mut state = SEED;
    let mut order = Vec::new();
    while !mutants.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).unwrap_or_default() % mutants.len();
        order.push(mutants.swap_remove(at));
    }
    let all = order.len();
    let first = turn.wrapping_mul(count) % all.max(1);
    order.into_iter().cycle().skip(first).take(count.min(all)).collect()
}

/// Removes the line, runs the test and puts the line back. The binary is built beside it if a change can show there.
fn tried(
    binary: &mut Binary<'_>,
    mutant: &Mutant,
    run: impl FnOnce(&Test) -> Result<Outcome, TaskError>,
) -> Result<Outcome, TaskError> {
    let _changed = Changed::apply(mutant)?;
    let built = if mutant.is_below_crates() { binary.build_changed()? } else { binary.build_if_changed()? };
    if !built {
        return Ok(Outcome::NotBuilt);
    }
    binary.test_builds(&mutant.test.package);
    run(&mutant.test)
}

/// A file without its line. It is put back when this is dropped.
struct Changed {
    path: PathBuf,
    text: String,
}

impl Changed {
    fn apply(mutant: &Mutant) -> Result<Self, TaskError> {
        let path = workspace::root().join(&mutant.file);
        let text = fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
        let without = mutant.applied(&text).map_err(TaskError::new)?;
        let changed = Self { path, text };
        fs::write(&changed.path, without).map_err(|error| unusable(&changed.path, &error))?;
        Ok(changed)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.text) {
            say(&format!("{} could not be put back ({error}): use git checkout", self.path.display()));
        }
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::folder;

    fn mutant(line: &str) -> Mutant {
        Mutant { line: line.to_owned(), ..Mutant::of_test("U1", "a::b::c") }
    }

    #[test]
    fn a_line_is_removed_where_it_stands_once() {
        assert_eq!(mutant("b();").applied("a();\n  b();\nc();\n").as_deref(), Ok("a();\n\nc();\n"));
        assert!(mutant("b();").applied("b();\nb();\n").expect_err("twice").contains("2 times"));
    }

    #[test]
    fn a_list_that_has_become_stale_is_told() {
        let list = all().expect("the lists of the systems");
        assert_eq!(complaints(&list), [""; 0], "the lists of this workspace");
        let gone = Mutant { id: "U1".to_owned(), file: "xtask/Cargo.toml".into(), ..mutant("it is gone") };
        let rest = list.into_iter().filter(|mutant| !["U1", "U2"].contains(&mutant.id.as_str()));
        let said = complaints(&rest.chain([gone]).collect::<Vec<_>>()).join("\n");
        assert!(said.contains("U2 has no mutant") && !said.contains("U1 has no mutant"), "{said}");
        assert!(said.contains("U1: xtask/Cargo.toml must have the line \"it is gone\" once"), "{said}");
    }

    #[test]
    fn a_seed_chooses_the_same_ones_each_time_and_each_turn_the_next_ones() {
        let mutants: Vec<Mutant> = (0..30).map(|number| mutant(&number.to_string())).collect();
        let (one, other) = (chosen(mutants.clone(), 10, 0), chosen(mutants.clone(), 10, 0));
        assert_eq!(one, other);
        assert_eq!(one.len(), 10);
        assert_eq!(chosen(mutants.clone(), 99, 7).len(), 30);
        assert_eq!(chosen(Vec::new(), 10, 3), []);
        // Each turn has others, until all had theirs.
        let lines = |turn: usize| chosen(mutants.clone(), 10, turn).into_iter().map(|mutant| mutant.line);
        assert_eq!((0..3).flat_map(lines).collect::<BTreeSet<_>>().len(), 30);
        assert_eq!(lines(3).collect::<Vec<_>>(), lines(0).collect::<Vec<_>>());
    }

    #[test]
    fn an_id_without_a_mutant_is_refused() {
        let said = ["U9 is no requirement with a mutant"];
        assert_eq!(unknown(&[mutant("a")], &["U1", "U9"]), said);
    }

    #[test]
    fn a_test_that_does_not_pass_with_all_lines_shows_nothing_without_one() {
        let mutants = ["a::b::c", "a::b::d"].map(|test| Mutant::of_test("U1", test));
        let stand = |code: u8, outcome: Outcome| {
            let mut binary = Binary::new(PathBuf::new(), || Ok(code));
            let run = |test: &Test| Ok(if test.path == "d" { outcome } else { Outcome::Passed });
            stands(&Foreground::unheard(), &mut binary, &mutants, run).expect("an answer")
        };
        assert!(stand(0, Outcome::Passed));
        for outcome in [Outcome::Failed, Outcome::NotBuilt, Outcome::NotRun] {
            assert!(!stand(0, outcome), "{outcome:?}");
        }
        assert!(!stand(101, Outcome::Passed), "without the binary");
    }

    #[test]
    fn a_line_is_missing_while_the_test_runs_and_back_afterwards() {
        let folder = folder::create(&Account::own_user()).expect("a folder");
        let file = folder.join("x.rs");
        fs::write(&file, "a();\nb();\n").expect("a file");
        let mutant = Mutant { file: file.clone(), ..mutant("b();") };
        let mut seen = None;
        let mut binary = Binary::new(PathBuf::new(), || Ok(0));
        let outcome = tried(&mut binary, &mutant, |_| {
            seen = fs::read_to_string(&file).ok();
            Ok(Outcome::Failed)
        });
        let after = fs::read_to_string(&file).expect("the file");
        folder::remove(&folder).expect("removed");
        assert_eq!(outcome.expect("an outcome"), Outcome::Failed);
        assert_eq!(seen.as_deref(), Some("a();\n\n"));
        assert_eq!(after, "a();\nb();\n");
    }

    #[test]
    fn only_what_is_below_crates_can_show_in_the_binary() {
        let of = |file: &str| Mutant { file: file.into(), ..mutant("a") };
        assert!(of("crates/postrider-postgres/sql/claim.sql").is_below_crates());
        assert!(!of("systems/commerce/commerce.toml").is_below_crates());
    }
}
