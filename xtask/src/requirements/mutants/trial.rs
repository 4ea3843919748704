//! Running the test of one requirement alone, and what came of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::foreground::Foreground;
use crate::process;
use crate::requirements::Test;
use crate::requirements::place::Package;
use crate::session::Session;
use crate::tally::Tally;
use crate::task_error::TaskError;
use crate::{say, workspace};

/// How long a test may take. One that waits for what the removed line did would never end.
const LIMIT: Duration = Duration::from_secs(15 * 60);

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
    let code = run_within(LIMIT, foreground, test, &mut cargo)?;
    let written = fs::read(&log).map_err(|error| unusable(&log, &error))?;
    let output = String::from_utf8_lossy(&written);
    println!("{output}");
    Ok(Outcome::of(code, &output))
}

/// Runs the command that names a test; gives its exit code. One that takes longer is killed and says so: its test did not run.
fn run_within(
    limit: Duration,
    foreground: &Foreground,
    test: &Test,
    command: &mut Command,
) -> Result<u8, TaskError> {
    let (ended, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                say(&format!("{test} was ended: it took longer than {} seconds", limit.as_secs()));
                // The command leads a process group of its own.
                let groups: Vec<i64> = process::list()
                    .iter()
                    .filter(|process| {
                        process.parent == std::process::id() && process.command.contains(&test.path)
                    })
                    .map(|process| -i64::from(process.pid))
                    .collect();
                process::signal("KILL", &groups);
            }
        });
        let code = foreground.run(command);
        drop(ended);
        code
    })
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
    fn a_test_that_takes_too_long_is_ended_and_did_not_run() {
        let test = Test::parse("a::b::c::waits_for_ever").expect("a test");
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do sleep 1; done", &test.path]);
        let code = run_within(Duration::from_secs(1), &Foreground::unheard(), &test, &mut shell);
        let code = code.expect("an exit code");
        assert_eq!(code, 128 + 9);
        assert_eq!(Outcome::of(code, "running 1 test\n"), Outcome::NotRun);
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
