//! Running the test of one requirement alone, and what came of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::foreground::Foreground;
use crate::requirements::Test;
use crate::requirements::place::Package;
use crate::session::Session;
use crate::tally::Tally;
use crate::task_error::TaskError;
use crate::workspace;

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// It does not compile.
    NotBuilt,
    /// It was not found, was left out, or its program ended before it did.
    NotRun,
}

impl Outcome {
    /// By the exit code and what the test programs wrote.
    fn of(code: u8, output: &str) -> Self {
        let Tally { passed, failed, .. } = Tally::of(output).unwrap_or_default();
        match (code, passed, failed) {
            (0, 1.., 0) => Self::Passed,
            (1.., _, 1..) => Self::Failed,
            _ => Self::NotRun,
        }
    }

    /// What is said of a test that has to pass.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Passed => "it passed",
            Self::Failed => "it failed",
            Self::NotBuilt => "it does not compile",
            Self::NotRun => "it was not found, or did not run to its end",
        }
    }

    /// What is said of a mutant whose test this is.
    pub(super) fn verdict(self) -> &'static str {
        match self {
            Self::Passed => "SURVIVED",
            Self::Failed => "killed",
            Self::NotBuilt => "NOT BUILT",
            Self::NotRun => "NOT RUN",
        }
    }
}

/// Builds a test and runs it with these servers, whatever the files are like now.
pub(super) fn run(
    foreground: &Foreground,
    session: &Session,
    packages: &[Package],
    test: &Test,
) -> Result<Outcome, TaskError> {
    let Some(package) = packages.iter().find(|package| package.name == test.package) else {
        return Ok(Outcome::NotRun);
    };
    let mut build = workspace::cargo();
    build.args(["test", "--no-run", "-p", &package.name]).args(package.target(&test.program));
    if foreground.run(&mut build)? != 0 {
        return Ok(Outcome::NotBuilt);
    }
    let log = log()?;
    let file = File::create(&log).map_err(|error| unusable(&log, &error))?;
    let mut cargo = workspace::cargo();
    cargo.args(["test", "-p", &package.name]).args(package.target(&test.program));
    cargo.args([&test.path, "--", "--exact"]).envs(session.environment()).stdout(file);
    let code = foreground.run(&mut cargo)?;
    let written = fs::read(&log).map_err(|error| unusable(&log, &error))?;
    let output = String::from_utf8_lossy(&written);
    println!("{output}");
    Ok(Outcome::of(code, &output))
}

/// The file that a test writes to.
fn log() -> Result<PathBuf, TaskError> {
    let folder = workspace::target().join("suite");
    fs::create_dir_all(&folder).map_err(|error| unusable(&folder, &error))?;
    Ok(folder.join("mutant.log"))
}

fn unusable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(passed: usize, failed: usize, ignored: usize) -> String {
        format!(
            "\nrunning 1 test\ntest result: ok. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 9 filtered out\n"
        )
    }

    #[test]
    fn a_test_passed_or_failed_when_it_ran() {
        assert_eq!(Outcome::of(0, &ended(1, 0, 0)), Outcome::Passed);
        assert_eq!(Outcome::of(101, &ended(0, 1, 0)), Outcome::Failed);
        let library_and_binary = ended(0, 0, 0) + &ended(1, 0, 0);
        assert_eq!(Outcome::of(0, &library_and_binary), Outcome::Passed);
    }

    #[test]
    fn a_test_that_did_not_run_has_not_failed() {
        for (what, code, output) in [
            ("not found", 0, ended(0, 0, 0)),
            ("left out", 0, ended(0, 0, 1)),
            ("cargo failed", 101, String::new()),
            ("its program was killed", 101, "running 1 test\n".to_owned()),
            ("passed, and cargo failed", 1, ended(1, 0, 0)),
        ] {
            assert_eq!(Outcome::of(code, &output), Outcome::NotRun, "{what}");
        }
        assert_ne!(Outcome::NotRun.verdict(), Outcome::Failed.verdict());
    }
}
