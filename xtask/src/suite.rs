//! The whole suite: every test program of the workspace, several at once.
//!
//! `cargo test` runs them one after another, and most of them wait for servers most of the time. Here they share the machine; those
//! that measure, or need all of it, run alone. What each wrote is printed when it has ended.

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::fs::{self, File};
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::foreground::Foreground;
use crate::process;
use crate::program::Program;
use crate::tally::{self, Tally};
use crate::task_error::TaskError;
use crate::{say, workspace};

/// How many run at once.
const AT_ONCE: usize = 3;

/// Those that run alone, as package and program: they measure times or memory, or need the whole machine.
pub const ALONE: &[(&str, &str)] = &[
    ("postrider-cli", "demo"),
    ("postrider-cli", "memory"),
    ("postrider-cli", "mysql"),
    ("postrider-kafka", "consumer_defaults"),
    ("postrider-kafka", "consumer_memory"),
    ("postrider-mysql", "servers"),
    ("postrider-postgres", "races"),
    ("postrider-trials", "failover"),
    ("postrider-trials", "trials"),
    ("transfers", "load"),
    // How relays share lanes depends on how fast each of them starts.
    ("transfers", "system"),
];

/// Those that take longest, in the order in which they begin, before all others: so that nobody waits for one of them at the end.
pub const LONG: &[(&str, &str)] = &[
    ("postrider-mysql", "conformance"),
    ("postrider-kafka", "promises"),
    ("postrider-postgres", "pooled"),
    ("postrider-mysql", "engine"),
    ("postrider-postgres", "conformance"),
    ("postrider-postgres", "engine"),
    ("postrider-cli", "operators"),
    ("postrider-cli", "silence"),
    ("xtask", "kafka"),
    ("postrider-sqlite", "conformance"),
    ("postrider-sqlite", "engine"),
    ("postrider-postgres", "plans"),
    ("xtask", "services"),
    ("postrider-memory", "engine"),
    ("postrider-memory", "conformance"),
];

/// The variable of the folders with libraries.
const LIBRARIES: &str =
    if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };

/// A program to run, and where it writes to.
struct Job {
    heading: String,
    /// What its tests are called by: `package::program::`.
    prefix: String,
    command: Command,
    log: PathBuf,
}

/// What came of all.
#[derive(Debug, Default)]
struct Results {
    tally: Tally,
    /// What failed, as it is told at the end.
    failures: Vec<String>,
    /// What passed, as `package::program::path`.
    passed: BTreeSet<String>,
    /// The first exit code that is not 0.
    code: u8,
}

/// Builds all tests and runs them with these variables, whatever fails; gives the exit code. `cargo test` prints the same: what each
/// program wrote, and its closing line.
pub fn run(foreground: &Foreground, variables: &[(&str, String)]) -> Result<u8, TaskError> {
    let folder = workspace::target().join("suite");
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    let listing = folder.join("programs.json");
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    cargo.envs(variables.iter().map(|(name, value)| (name, value))).stdout(created(&listing)?);
    match foreground.run(&mut cargo)? {
        0 => {}
        code => return Ok(code),
    }
    let listed = fs::read_to_string(&listing);
    let programs = Program::listed(&listed.map_err(|error| unreadable(&listing, &error))?)?;
    known(&programs)?;
    let libraries = libraries()?;
    let job = |program: Program| {
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env(LIBRARIES, &libraries);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let log = folder.join(program.file()).with_extension("log");
        Job { heading: program.heading(), prefix: program.prefix(), command, log }
    };
    let (alone, mut shared): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|program| ALONE.iter().any(|alone| program.is(*alone)));
    shared.sort_by_key(|program| LONG.iter().position(|long| program.is(*long)).unwrap_or(LONG.len()));
    let shared = [examples(variables, &folder)].into_iter().chain(shared.into_iter().map(job));
    let results = Mutex::new(Results::default());
    at_once(foreground, AT_ONCE, shared.collect(), &results)?;
    at_once(foreground, 1, alone.into_iter().map(job).collect(), &results)?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    if foreground.is_interrupted() {
        return Ok(crate::foreground::INTERRUPTED);
    }
    for failure in &results.failures {
        say(failure);
    }
    let passed: String = results.passed.iter().map(|name| format!("{name}\n")).collect();
    fs::write(passed_list(), passed).map_err(|error| unwritable(&passed_list(), &error))?;
    let Tally { passed, failed, ignored } = results.tally;
    if ignored > 0 {
        say(&format!("{ignored} were left out: they are marked with #[ignore]"));
    }
    println!("{passed} passed, {failed} failed");
    Ok(results.code)
}

/// The list of what passed in the last run of the whole suite.
fn passed_list() -> PathBuf {
    workspace::target().join("suite").join("passed.txt")
}

/// What passed in the last run of the whole suite, as `package::program::path`; nothing if there was none.
pub fn passed() -> Result<Option<BTreeSet<String>>, TaskError> {
    match fs::read_to_string(passed_list()) {
        Ok(text) => Ok(Some(text.lines().map(str::to_owned).collect())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&passed_list(), &error)),
    }
}

/// Whether every program that is named here is there: one that was renamed would not run as it has to.
fn known(programs: &[Program]) -> Result<(), TaskError> {
    let missing = ALONE.iter().chain(LONG).find(|named| !programs.iter().any(|program| program.is(**named)));
    missing.map_or(Ok(()), |(package, name)| {
        Err(TaskError::new(format!(
            "xtask/src/suite.rs names {name} of {package}, and there is no such test program"
        )))
    })
}

/// The examples in the documentation, which only cargo can run.
fn examples(variables: &[(&str, String)], folder: &Path) -> Job {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Job {
        heading: "the examples in the documentation (cargo test --doc)".to_owned(),
        prefix: "docs::examples::".to_owned(),
        command,
        log: folder.join("examples.log"),
    }
}

/// Runs jobs, so many at a time; no more are begun after an interruption.
fn at_once(
    foreground: &Foreground,
    most: usize,
    jobs: Vec<Job>,
    results: &Mutex<Results>,
) -> Result<(), TaskError> {
    let jobs = Mutex::new(VecDeque::from(jobs));
    // Not in the condition of the loop, which would keep the lock.
    let next = || locked(&jobs).pop_front();
    let work = || {
        while let Some(job) = next() {
            if foreground.is_interrupted() {
                break;
            }
            job.run(foreground, results)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..most).map(|_| scope.spawn(work)).collect();
        let ended: Vec<Result<(), TaskError>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect();
        ended.into_iter().collect()
    })
}

impl Job {
    /// Runs it, prints what it wrote, and counts.
    fn run(mut self, foreground: &Foreground, results: &Mutex<Results>) -> Result<(), TaskError> {
        let file = created(&self.log)?;
        self.command.stderr(file.try_clone().map_err(|error| unwritable(&self.log, &error))?).stdout(file);
        let begun = Instant::now();
        let code = foreground.run(&mut self.command)?;
        let written = fs::read(&self.log).map_err(|error| unreadable(&self.log, &error))?;
        let output = String::from_utf8_lossy(&written);
        let mut results = locked(results);
        println!("     Running {}, {:.1} s\n{output}", self.heading, begun.elapsed().as_secs_f64());
        if foreground.is_interrupted() {
            return Ok(());
        }
        results.count(&self.heading, code, &output);
        results
            .passed
            .extend(tally::passed(&output).into_iter().map(|path| format!("{}{path}", self.prefix)));
        Ok(())
    }
}

impl Results {
    fn count(&mut self, heading: &str, code: u8, output: &str) {
        let tally = Tally::of(output);
        self.tally = self.tally.and(tally.unwrap_or_default());
        let mut failed: Vec<String> =
            tally::failed(output).into_iter().map(|name| format!("failed: {name}, of {heading}")).collect();
        if tally.is_none() || (code != 0 && failed.is_empty()) {
            failed.push(format!("failed: {heading} ended with exit code {code} before its tests did"));
            // One that nobody could count.
            self.tally.failed += 1;
        }
        if (code != 0 || !failed.is_empty()) && self.code == 0 {
            self.code = if code == 0 { 1 } else { code };
        }
        self.failures.extend(failed);
    }
}

/// Where the system looks for the libraries of a test program: as cargo sets it.
fn libraries() -> Result<String, TaskError> {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(workspace::root()).args(["--print", "target-libdir"]);
    let own = process::output(&mut rustc, "ask where the compiler keeps its libraries")?;
    let given = env::var(LIBRARIES).ok().filter(|path| !path.is_empty());
    Ok([Some(own.trim().to_owned()), given].into_iter().flatten().collect::<Vec<_>>().join(":"))
}

fn created(path: &Path) -> Result<File, TaskError> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> TaskError {
    TaskError::new(format!("could not read {}: {error}", path.display()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::folder;

    const WELL: &str =
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
    const BADLY: &str =
        "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";

    fn job(folder: &Path, name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        Job { heading: name.to_owned(), prefix: format!("a::{name}::"), command, log: folder.join(name) }
    }

    fn results(jobs: impl FnOnce(&Path) -> Vec<Job>, most: usize) -> Results {
        let folder = folder::create(&Account::own_user()).expect("a folder");
        let results = Mutex::new(Results::default());
        let ran = at_once(&Foreground::unheard(), most, jobs(&folder), &results);
        folder::remove(&folder).expect("removed");
        ran.expect("all ran");
        results.into_inner().expect("results")
    }

    #[test]
    fn whatever_fails_the_others_run_and_all_of_it_is_told() {
        let failing = format!("echo 'test one ... FAILED'; echo '{BADLY}'; exit 101");
        let jobs = |folder: &Path| {
            vec![
                job(folder, "failing", &failing),
                job(folder, "killed", "echo 'test two ... ok'; kill -s ABRT $$"),
                job(folder, "empty", "true"),
                job(folder, "fine", &format!("echo '{WELL}'")),
            ]
        };
        let results = results(jobs, 1);
        // Those that could not be counted have failed.
        assert_eq!(results.tally, Tally { passed: 3, failed: 3, ignored: 1 });
        assert_eq!(results.code, 101);
        assert_eq!(results.passed, BTreeSet::from(["a::killed::two".to_owned()]));
        let told = results.failures.join("\n");
        for what in
            ["failed: one, of failing", "failed: killed ended with exit code 134", "failed: empty ended"]
        {
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn a_program_that_is_named_here_and_missing_is_told() {
        let said = known(&[]).expect_err("none is there").to_string();
        assert!(said.contains("names demo of postrider-cli"), "{said}");
    }

    #[test]
    fn as_many_as_told_run_at_once() {
        let waits = format!(
            "touch $0; for n in $(seq 600); do [ -e $1 ] && echo '{WELL}' && exit; sleep 0.1; done; exit 1"
        );
        let jobs = |folder: &Path| {
            let mut both = [job(folder, "a", &waits), job(folder, "b", &waits)];
            both[0].command.args(["began-a", "began-b"]);
            both[1].command.args(["began-b", "began-a"]);
            both.into()
        };
        assert_eq!(results(jobs, 2).tally, Tally { passed: 4, failed: 0, ignored: 0 });
    }
}
