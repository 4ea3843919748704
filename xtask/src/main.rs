//! `cargo xtask`: reads the arguments and calls the library.

use std::env;
use std::process::{Command, ExitCode};

use xtask::checks;
use xtask::foreground::{Foreground, INTERRUPTED};
use xtask::process::shell_quoted;
use xtask::services::{Services, Status};
use xtask::session::{self, Session};
use xtask::{Failure, say, workspace};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test [--no-services] [-- ARGS]   run all tests (cargo test --workspace ARGS) with the servers they need
  soak [--no-services] [-- ARGS]   the same with the long forms of the tests (POSTRIDER_SOAK=1)
  ci [--no-services]               format, clippy, documentation, features, then the tests
  bench log [--json] [--quick] [read|publish|idle]
                                   measure the log on a PostgreSQL that waits for its disk
  services up                      start the servers and leave them running; prints variables to export
  services down                    stop them and remove their folders
  services status                  say what runs
  services run -- COMMAND [ARGS]   run a command with the servers it needs
  help                             print this

The servers are throw-away ones on free ports. POSTRIDER_TEST_POSTGRES=postgres://... uses that server instead;
POSTRIDER_TEST_POSTGRES_BIN names the folder of the PostgreSQL programs to use.
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
        ["services", "up"] => services_up(),
        ["services", "down"] => services_down(),
        ["services", "status"] => services_status(),
        ["services", "run", "--", program, arguments @ ..] => services_run(program, arguments),
        ["bench", "log", options @ ..]
            if options
                .iter()
                .all(|option| ["--json", "--quick", "read", "publish", "idle"].contains(option)) =>
        {
            bench_log(options)
        }
        ["test", options @ ..] => tests(options, &[]),
        ["soak", options @ ..] => tests(options, &[("POSTRIDER_SOAK", "1")]),
        ["ci", options @ ..] if options.is_empty() || options == ["--no-services"] => ci(options),
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

fn services_up() -> Result<u8, Failure> {
    let url = match session::given() {
        Some(url) => {
            say(&format!("{} is set: nothing to start", session::VARIABLE));
            url
        }
        None => {
            let service = Services::of_workspace().up()?;
            say(&format!("{service}: running"));
            service.url()
        }
    };
    for (name, value) in session::environment(&url) {
        println!("export {name}={}", shell_quoted(&value));
    }
    Ok(0)
}

fn services_down() -> Result<u8, Failure> {
    match Services::of_workspace().down()? {
        Status::Absent => say("nothing to stop"),
        Status::Running(service) => say(&format!("{service}: stopped")),
        Status::Dead(service) => say(&format!("{service}: was dead, its folder is removed")),
    }
    Ok(0)
}

fn services_status() -> Result<u8, Failure> {
    println!("{}", Services::of_workspace().status()?);
    Ok(0)
}

fn services_run(program: &str, arguments: &[&str]) -> Result<u8, Failure> {
    interruptible(|foreground| {
        let session = Session::open(&Services::of_workspace())?;
        foreground.run(Command::new(program).args(arguments).envs(session.environment()))
    })
}

fn bench_log(options: &[&str]) -> Result<u8, Failure> {
    interruptible(|foreground| {
        let session = Session::open_with(&[("fsync", "on")])?;
        say(&format!("measuring on {}", session.describe()));
        let mut cargo = workspace::cargo();
        cargo.args(["run", "--release", "-p", "postrider-bench", "--bin", "bench-log", "--"]).args(options);
        foreground.run(cargo.envs(session.environment()))
    })
}

fn ci(options: &[&str]) -> Result<u8, Failure> {
    interruptible(|foreground| match checks::run(foreground)? {
        0 => run_tests(foreground, options.is_empty(), &[], &[]),
        code => Ok(code),
    })
}

fn tests(options: &[&str], variables: &[(&str, &str)]) -> Result<u8, Failure> {
    let (with_services, extra) = match options {
        [] => (true, &[][..]),
        ["--no-services"] => (false, &[][..]),
        ["--", extra @ ..] => (true, extra),
        ["--no-services", "--", extra @ ..] => (false, extra),
        _ => return Ok(misused()),
    };
    interruptible(|foreground| run_tests(foreground, with_services, extra, variables))
}

/// Does something that Ctrl-C ends; what it started is stopped when it returns, interrupted or not.
fn interruptible(action: impl FnOnce(&Foreground) -> Result<u8, Failure>) -> Result<u8, Failure> {
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
    with_services: bool,
    extra: &[&str],
    variables: &[(&str, &str)],
) -> Result<u8, Failure> {
    let session =
        if with_services { Session::open(&Services::of_workspace())? } else { Session::without_servers() };
    let servers = session.describe();
    say(&format!("testing with {servers}"));
    let mut cargo = workspace::cargo();
    cargo.arg("test");
    // `--workspace` would win over the packages that were asked for.
    if !names_a_package(extra) {
        cargo.arg("--workspace");
    }
    cargo.args(extra).envs(session.environment()).envs(variables.iter().copied());
    let code = foreground.run(&mut cargo)?;
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
