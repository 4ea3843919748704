//! `cargo xtask`: reads the arguments and calls the library.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

use xtask::foreground::{Foreground, INTERRUPTED};
use xtask::kind::Kind;
use xtask::postgres::Cluster;
use xtask::process::shell_quoted;
use xtask::requirements::{self, mutants};
use xtask::service::Status;
use xtask::services::Services;
use xtask::session::Session;
use xtask::{
    TaskError, checks, compat, docs, jdbc, nats, node, openssl, python, say, suite, system, workspace,
};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test [WITHOUT] [-- ARGS]         run all tests, several programs at once, with the servers they need; or cargo test ARGS with them
  soak [WITHOUT] [-- ARGS]         the same with the long forms of the tests (POSTRIDER_SOAK=1); without options, then
                                   ten mutants, each week the next ones, and `bench catalog --quick`
  ci [WITHOUT]                     format, clippy, documentation, features, then the tests
  compat [VERSION...] [-- NAME...] run the suite on every PostgreSQL from 13 to 18, MariaDB 10.11, 11.4, 11.8 and MySQL 9.7, or on those named;
                                   with NAMEs only the tests with one of them in their name
  bench log [--json] [--quick] [read|publish|idle]
                                   measure the log on a PostgreSQL that waits for its disk
  bench log --store mysql [--json] [--quick] [drain|publish]
                                   the same on a MariaDB
  bench engine [--json] [--quick] [drain|latency|slow|effects|idle|memory|open]
                                   measure the engine in the same way
  bench kafka [--json] [--quick] [drain|latency|effects|memory]
                                   measure the way to Kafka and back, with a real broker
  bench retention [--json] [--quick] [archive|prune]
                                   measure what retention costs publishers
  bench cli [--json] [--quick] [status|idle]
                                   measure how long people wait for the binary, and what it costs when idle
  bench catalog [--json] [--quick] [size]
                                   measure how the work of a catalog grows with its events; it needs no server
  system NAME [--keep] [--long] [--release] [--break loss] [--store sqlite]
                                   run umbra, everbit, ledger, commerce, transfers or all of them, and let it tell its story
  requirements                     check that every requirement of the five systems has a test that passed in the last `cargo xtask test`,
                                   and that of its mutant among its tests
  requirements --mutants [COUNT | ID...]
                                   remove a line that each of ten (COUNT, or these) needs, and expect its test, which passed before, to fail
  docs                             write the pages of docs/ that are made from the code
  services up [--no-kafka]         start the servers and leave them running; prints variables to export
  services down                    stop them and remove their folders
  services status                  say what runs
  services run [--no-kafka] -- COMMAND [ARGS]
                                   run a command with the servers it needs
  help                             print this

The servers, a PostgreSQL, a PgBouncer in front of it, a MariaDB and a Kafka, are throw-away ones on free ports. WITHOUT is
--no-services or --no-kafka. POSTRIDER_TEST_POSTGRES=postgres://..., POSTRIDER_TEST_PGBOUNCER=postgres://...,
POSTRIDER_TEST_MYSQL=mysql://... and POSTRIDER_TEST_KAFKA=host:port use those servers instead; POSTRIDER_TEST_POSTGRES_BIN names
the folder of the PostgreSQL programs to use, POSTRIDER_TEST_MYSQL_BASE that of a MariaDB or MySQL installation.
";

/// The exit code for arguments that make no sense.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(0)
        }
        ["services", "up", options @ ..] if [&[][..], &["--no-kafka"]].contains(&options) => {
            services_up(options)
        }
        ["services", "down"] => services_down(),
        ["services", "status"] => services_status(),
        ["services", "run", "--", program, arguments @ ..] => services_run(&[], program, arguments),
        ["services", "run", "--no-kafka", "--", program, arguments @ ..] => {
            services_run(&["--no-kafka"], program, arguments)
        }
        ["bench", "log", "--store", "mysql", options @ ..] if is_bench("log-mysql", options) => {
            bench("log-mysql", options)
        }
        ["bench", subject, options @ ..] if is_bench(subject, options) => bench(subject, options),
        ["compat", words @ ..] => {
            let split = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            let (versions, names) = (&words[..split], words.get(split + 1..).unwrap_or_default());
            if versions.iter().any(|version| version.starts_with('-')) {
                Ok(misused())
            } else {
                interruptible(|foreground| compat::run(foreground, versions, names))
            }
        }
        ["system", words @ ..] => match system::Request::parse(words) {
            Ok(request) => interruptible(|foreground| system::run(foreground, &request)),
            Err(sentence) => {
                say(&sentence);
                Ok(MISUSED)
            }
        },
        ["requirements"] => requirements::check(true),
        ["requirements", "--mutants", words @ ..] => {
            let count = words.first().and_then(|word| word.parse().ok());
            let named = if count.is_some() { &[] } else { words };
            let count = count.unwrap_or(mutants::COUNT);
            interruptible(|foreground| mutants::run(foreground, count, named, 0))
        }
        ["docs"] => interruptible(docs::write),
        ["test", options @ ..] => tests(options, &[]),
        ["soak", options @ ..] => tests(options, &[("POSTRIDER_SOAK", "1")]),
        ["ci", options @ ..] if kinds(options).is_some() => ci(options),
        _ => Ok(misused()),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

fn misused() -> u8 {
    eprint!("{USAGE}");
    MISUSED
}

/// The servers that are left by the options; nothing if one of these is unknown.
fn kinds(options: &[&str]) -> Option<Vec<Kind>> {
    let is_left = |kind: &Kind| match kind {
        _ if options.contains(&"--no-services") => false,
        Kind::Kafka => !options.contains(&"--no-kafka"),
        Kind::Postgres | Kind::Mysql | Kind::Pgbouncer => true,
    };
    let known = options.iter().all(|option| ["--no-services", "--no-kafka"].contains(option));
    known.then(|| Kind::ALL.into_iter().filter(is_left).collect())
}

fn services_up(options: &[&str]) -> Result<u8, TaskError> {
    let session = Session::leave(&Services::of_workspace(), &kinds(options).unwrap_or_default())?;
    say(&format!("ready: {}", session.describe()));
    for (name, value) in session.environment() {
        println!("export {name}={}", shell_quoted(&value));
    }
    Ok(0)
}

fn services_down() -> Result<u8, TaskError> {
    for (kind, status) in Services::of_workspace().down()? {
        match status {
            Status::Absent => say(&format!("{kind}: nothing to stop")),
            Status::Running(service) => say(&format!("{service}: stopped")),
            Status::Dead(service) => say(&format!("{service}: was dead, its folder is removed")),
        }
    }
    Ok(0)
}

fn services_status() -> Result<u8, TaskError> {
    for kind in Kind::ALL {
        match Services::of_workspace().status(kind)? {
            Status::Absent => println!("{kind}: not started"),
            Status::Running(service) => println!("{service}: running"),
            Status::Dead(service) => println!("{service}: dead"),
        }
    }
    Ok(0)
}

fn services_run(options: &[&str], program: &str, arguments: &[&str]) -> Result<u8, TaskError> {
    interruptible(|foreground| {
        let session = Session::open(&Services::of_workspace(), &kinds(options).unwrap_or_default())?;
        foreground.run(Command::new(program).args(arguments).envs(session.environment()))
    })
}

/// Whether there is a benchmark of that subject, and it knows these options.
fn is_bench(subject: &str, options: &[&str]) -> bool {
    let parts: &[&str] = match subject {
        "log" => &["read", "publish", "idle"],
        "log-mysql" => &["drain", "publish"],
        "engine" => &["drain", "latency", "slow", "effects", "idle", "memory", "open"],
        "kafka" => &["drain", "latency", "effects", "memory"],
        "retention" => &["archive", "prune"],
        "cli" => &["status", "idle"],
        "catalog" => &["size"],
        _ => return false,
    };
    options.iter().all(|option| ["--json", "--quick"].contains(option) || parts.contains(option))
}

fn bench(subject: &str, options: &[&str]) -> Result<u8, TaskError> {
    interruptible(|foreground| {
        let mut settings = vec![("fsync", "on")];
        if subject == "log-mysql" {
            // What was just recorded is in memory, as it is on a server that people pay for.
            settings = vec![
                ("innodb-flush-log-at-trx-commit", "1"),
                ("innodb-log-file-size", "512M"),
                ("innodb-buffer-pool-size", "2G"),
            ];
        }
        if ["engine", "cli"].contains(&subject) && counts_statements() {
            // Off until the benchmark turns it on for the one database where it counts.
            let counted = "pg_stat_statements";
            settings.extend([("shared_preload_libraries", counted), ("pg_stat_statements.track", "none")]);
        }
        if subject == "retention" {
            // Vacuum is part of what a sweep costs: it comes at once, not within a minute.
            settings.push(("autovacuum_naptime", "1s"));
        }
        let kinds: &[Kind] = match subject {
            "kafka" => &[Kind::Postgres, Kind::Kafka],
            "log-mysql" => &[Kind::Mysql],
            "catalog" => &[],
            _ => &[Kind::Postgres],
        };
        let session = Session::open_with(kinds, &settings)?;
        if !kinds.is_empty() {
            say(&format!("measuring on {}", session.describe()));
        }
        if subject == "cli" {
            let mut cargo = workspace::cargo();
            let code = foreground.run(cargo.args(["build", "--release", "-p", "postrider-cli"]))?;
            if code != 0 {
                return Ok(code);
            }
        }
        bench_program(foreground, subject, options, &session.environment())
    })
}

fn bench_program(
    foreground: &Foreground,
    subject: &str,
    options: &[&str],
    variables: &[(&str, String)],
) -> Result<u8, TaskError> {
    let mut cargo = workspace::cargo();
    let program = format!("bench-{subject}");
    cargo.args(["run", "--release", "-p", "postrider-bench", "--bin", &program, "--"]).args(options);
    foreground.run(cargo.envs(variables.iter().map(|(name, value)| (name, value))))
}

/// Whether the PostgreSQL of this machine can count statements; a server that is told to and can't does not start.
fn counts_statements() -> bool {
    let library = |folder: &str, programs: &Path| {
        programs.parent().is_some_and(|root| root.join(folder).join("pg_stat_statements.so").is_file())
    };
    Cluster::binaries()
        .is_ok_and(|programs| ["lib", "lib/postgresql"].into_iter().any(|folder| library(folder, &programs)))
}

fn ci(options: &[&str]) -> Result<u8, TaskError> {
    openssl::prepare()?;
    interruptible(|foreground| match checks::run(foreground)? {
        0 => run_tests(foreground, &kinds(options).unwrap_or_default(), &[], &[]),
        code => Ok(code),
    })
}

fn tests(options: &[&str], variables: &[(&str, &str)]) -> Result<u8, TaskError> {
    let mut parts = options.splitn(2, |option| *option == "--");
    let Some(kinds) = kinds(parts.next().unwrap_or_default()) else { return Ok(misused()) };
    let extra = parts.next().unwrap_or_default();
    interruptible(|foreground| match run_tests(foreground, &kinds, extra, variables)? {
        // The whole soak also tries whether the tests of the requirements can fail, and how the work of a catalog grows.
        0 if options.is_empty() && !variables.is_empty() => {
            match mutants::run(foreground, mutants::COUNT, &[], mutants::week())? {
                0 => bench_program(foreground, "catalog", &["--quick"], &[]),
                code => Ok(code),
            }
        }
        code => Ok(code),
    })
}

/// Does something that Ctrl-C ends; what it started is stopped when it returns, interrupted or not.
fn interruptible(action: impl FnOnce(&Foreground) -> Result<u8, TaskError>) -> Result<u8, TaskError> {
    let foreground = Foreground::new()?;
    let result = action(&foreground);
    if foreground.is_interrupted() {
        say("interrupted; what was started is stopped");
        return Ok(INTERRUPTED);
    }
    result
}

fn run_tests(
    foreground: &Foreground,
    kinds: &[Kind],
    extra: &[&str],
    variables: &[(&str, &str)],
) -> Result<u8, TaskError> {
    openssl::prepare()?;
    if !kinds.is_empty() {
        python::prepare()?;
        node::prepare()?;
        jdbc::prepare()?;
        nats::prepare()?;
    }
    let session = Session::open(&Services::of_workspace(), kinds)?;
    let servers = session.describe();
    say(&format!("testing with {servers}"));
    let code = if extra.is_empty() && variables.is_empty() {
        match suite::run(foreground, &session.environment())? {
            // With fewer servers, fewer tests pass.
            0 if kinds.len() == Kind::ALL.len() => requirements::check(true)?,
            code => code,
        }
    } else {
        let mut cargo = workspace::cargo();
        cargo.arg("test");
        // `--workspace` would win over the packages that were asked for.
        if !names_a_package(extra) {
            cargo.arg("--workspace");
        }
        // Whatever fails, all failures are told.
        if !extra
            .iter()
            .take_while(|argument| **argument != "--")
            .any(|argument| argument.ends_with("fail-fast"))
        {
            cargo.arg("--no-fail-fast");
        }
        cargo.args(extra).envs(session.environment()).envs(variables.iter().copied());
        foreground.run(&mut cargo)?
    };
    drop(session);
    match code {
        _ if foreground.is_interrupted() => {}
        0 => say(&format!("tests passed, with {servers}")),
        _ => say(&format!("tests failed (exit code {code}), with {servers}")),
    }
    Ok(code)
}

fn names_a_package(extra: &[&str]) -> bool {
    let mut of_cargo = extra.iter().take_while(|argument| **argument != "--");
    of_cargo.any(|argument| argument.starts_with("--package") || argument.starts_with("-p"))
}
