//! `cargo xtask requirements --mutants`: removes a line that a requirement needs, and expects its test to fail.
//!
//! `mutants.toml` of each system has a line for each id. A file that was changed is put back, however the test ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Test, ids};
use crate::foreground::Foreground;
use crate::services::Services;
use crate::session::Session;
use crate::task_error::TaskError;
use crate::{say, workspace};

/// How many are tried unless told.
pub const COUNT: usize = 10;

/// The chance that picks them, the same each time.
const SEED: u64 = 0x0b5e_55ed;

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

/// Tries these ids, or so many of all by a fixed seed; every test must fail. Gives the exit code.
pub fn run(foreground: &Foreground, count: usize, named: &[&str]) -> Result<u8, TaskError> {
    let mutants = all()?;
    let wrong = complaints(&mutants);
    wrong.iter().for_each(|what| say(what));
    if !wrong.is_empty() {
        return Ok(1);
    }
    let chosen: Vec<Mutant> = if named.is_empty() {
        chosen(mutants, count)
    } else {
        mutants.into_iter().filter(|mutant| named.contains(&mutant.id.as_str())).collect()
    };
    let session = Session::open(&Services::of_workspace(), &crate::kind::Kind::ALL)?;
    let mut survived = 0;
    for mutant in &chosen {
        let verdict = tried(foreground, &session, mutant)?;
        if foreground.is_interrupted() {
            return Ok(crate::foreground::INTERRUPTED);
        }
        survived += usize::from(verdict != "killed");
        println!("{} {verdict}: {} without {:?}", mutant.id, mutant.test.path, mutant.line);
    }
    println!("mutants: {} of {} were killed", chosen.len() - survived, chosen.len());
    Ok(u8::from(survived > 0))
}

/// So many, by the seed.
fn chosen(mut mutants: Vec<Mutant>, count: usize) -> Vec<Mutant> {
    let mut state = SEED;
    let mut chosen = Vec::new();
    while chosen.len() < count && !mutants.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).unwrap_or_default() % mutants.len();
        chosen.push(mutants.swap_remove(at));
    }
    chosen
}

fn tried(foreground: &Foreground, session: &Session, mutant: &Mutant) -> Result<&'static str, TaskError> {
    let changed = Changed::apply(mutant)?;
    let Test { package, program, path } = &mutant.test;
    let target: &[&str] = if program == package { &["--lib"] } else { &["--test", program] };
    let mut build = workspace::cargo();
    build.args(["test", "--no-run", "-p", package]).args(target);
    if foreground.run(&mut build)? != 0 {
        return Ok("NOT BUILT");
    }
    let mut test = workspace::cargo();
    test.args(["test", "-p", package]).args(target).args([path, "--", "--exact"]).envs(session.environment());
    let code = foreground.run(&mut test)?;
    drop(changed);
    Ok(if code == 0 { "SURVIVED" } else { "killed" })
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

    fn mutant(line: &str) -> Mutant {
        let test = Test::parse("a::b::c").expect("a test");
        Mutant { id: "U1".to_owned(), test, file: "x.rs".into(), line: line.to_owned(), with: String::new() }
    }

    #[test]
    fn a_line_is_removed_where_it_stands_once() {
        assert_eq!(mutant("b();").applied("a();\n  b();\nc();\n").as_deref(), Ok("a();\n\nc();\n"));
        assert!(mutant("b();").applied("b();\nb();\n").expect_err("twice").contains("2 times"));
    }

    #[test]
    fn a_seed_chooses_the_same_ones_each_time() {
        let mutants: Vec<Mutant> = (0..30).map(|number| mutant(&number.to_string())).collect();
        let (one, other) = (chosen(mutants.clone(), 10), chosen(mutants.clone(), 10));
        assert_eq!(one, other);
        assert_eq!(one.len(), 10);
        assert_eq!(chosen(mutants, 99).len(), 30);
    }
}
