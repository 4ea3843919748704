//! The promises on every version of the databases that users may have: one table.
//!
//! The servers come from Maven Central, as jars with the programs in them, and from Debian's unstable suite.

mod programs;

use std::path::Path;
use std::time::{Duration, Instant};

use self::programs::{Programs, release};
use crate::foreground::Foreground;
use crate::kafka::{Broker, Options, java};
use crate::kind::Kind;
use crate::mariadb::Mariadb;
use crate::mariadb::programs::{Programs as MysqlPrograms, VARIABLE, missing};
use crate::pgbouncer::{self, Pgbouncer};
use crate::postgres::{Cluster, binaries};
use crate::task_error::TaskError;
use crate::{maven, package, say, workspace};

/// The versions of PostgreSQL, each with its latest release.
pub const POSTGRES: &[&str] = &["13.23.0", "14.24.0", "15.19.0", "16.15.0", "17.11.0", "18.6.0"];

/// The versions of MariaDB and MySQL, and where each comes from.
pub const MYSQL: &[(&str, &str, Origin)] = &[
    ("MariaDB", "10.11", Origin::Machine),
    ("MariaDB", "11.4.5", Origin::Maven),
    ("MariaDB", "11.8", Origin::Unstable(&["mariadb-server-core", "mariadb-client-core"])),
    ("MySQL", "9.7", Origin::Unstable(&["mysql-server-core"])),
];

/// Where a server's programs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They are installed.
    Machine,
    /// A jar.
    Maven,
    /// These packages of Debian's unstable suite.
    Unstable(&'static [&'static str]),
}

/// The tests that run on each PostgreSQL.
const TESTS: &[&str] = &[
    "conformance",
    "effects",
    "engine",
    "migrations",
    "operating",
    "planted",
    "pooled",
    "poolers",
    "postgres",
    "privileges",
    "races",
    "refusals",
    "retention",
    "settings",
    "silence",
    "unreadable",
    "whole",
];

/// Those that don't, and why.
#[cfg(test)]
const LEFT_OUT: &[(&str, &str)] = &[
    ("clusters", "standbys and dumps need programs that the jars lack"),
    ("os_user", "it is about the driver, not the server"),
    ("plans", "its limits are those of the planner of one version"),
    ("restores", "dumps need programs that the jars lack"),
];

/// What runs on each MariaDB and MySQL, as `cargo test` and the test program are told: all tests of the store, the binary's, those of consumers
/// with an inbox there, and relays that are killed in front of endpoints and of Kafka.
const MYSQL_TESTS: &[(&[&str], &[&str])] = &[
    (&["-p", "postrider-mysql", "--tests"], &[]),
    (&["-p", "postrider-cli", "--test", "mysql"], &[]),
    (&["-p", "postrider-kafka", "--test", "consumer_mysql"], &[]),
    (&["-p", "postrider-trials", "--test", "trials"], &["--skip", "on_postgres", "--skip", "on_sqlite"]),
];

/// What came of one version.
#[derive(Debug)]
struct Row {
    server: String,
    outcome: Outcome,
    took: Duration,
}

#[derive(Debug)]
enum Outcome {
    /// The tests ended with this code.
    Ended(u8),
    /// The server could not be fetched or started.
    NotRun(TaskError),
}

impl Row {
    /// What came of `begun` on a server. One that can't be had keeps nobody from running the others.
    fn of(server: String, begun: Instant, ended: Result<(String, u8), TaskError>) -> Self {
        let (server, outcome) = match ended {
            Ok((tested, code)) => (tested, Outcome::Ended(code)),
            Err(failure) => {
                say(&format!("{server} was not run: {failure}"));
                (server, Outcome::NotRun(failure))
            }
        };
        Self { server, outcome, took: begun.elapsed() }
    }

    fn code(&self) -> u8 {
        match self.outcome {
            Outcome::Ended(code) => code,
            Outcome::NotRun(_) => 1,
        }
    }

    fn line(&self) -> String {
        let (verdict, why) = match &self.outcome {
            Outcome::Ended(0) => ("green".to_owned(), String::new()),
            Outcome::Ended(code) => (format!("red (exit code {code})"), String::new()),
            Outcome::NotRun(failure) => ("red (not run)".to_owned(), format!("  {}", first_line(failure))),
        };
        format!("{:<20} {verdict:<20} {:>4} s{why}", self.server, self.took.as_secs())
    }
}

/// The table has a line a server.
fn first_line(failure: &TaskError) -> String {
    failure.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Runs the suite on the versions that begin with one of `wanted`, all unless any is named; 0 if all are green. With `names`, only the
/// tests that have one of them in their name.
pub fn run(foreground: &Foreground, wanted: &[&str], names: &[&str]) -> Result<u8, TaskError> {
    let chosen: Vec<&str> = POSTGRES.iter().copied().filter(|version| is_wanted(version, wanted)).collect();
    let mysql: Vec<_> = MYSQL.iter().filter(|(_, version, _)| is_wanted(version, wanted)).collect();
    if chosen.is_empty() && mysql.is_empty() {
        let mysql: Vec<String> = MYSQL.iter().map(|(name, version, _)| format!("{name} {version}")).collect();
        return Err(TaskError::new(format!(
            "no such version; there is PostgreSQL {}; {}",
            POSTGRES.join(", "),
            mysql.join(", ")
        )));
    }
    if !maven::is_there() && package::can_install()? {
        // What comes without it is run all the same.
        package::install("Maven", java::PACKAGES).unwrap_or_else(|failure| say(&failure.to_string()));
    }
    let mut rows = Vec::new();
    for version in chosen {
        let (server, begun) = (format!("PostgreSQL {version}"), Instant::now());
        let ended = on_postgres(foreground, version, names).map(|code| (server.clone(), code));
        rows.push(Row::of(server, begun, ended));
        if foreground.is_interrupted() {
            return Ok(last_code(&rows));
        }
    }
    for (name, version, origin) in mysql {
        let begun = Instant::now();
        let ended = on_mysql(foreground, name, version, *origin, names);
        rows.push(Row::of(format!("{name} {version}"), begun, ended));
        if foreground.is_interrupted() {
            return Ok(last_code(&rows));
        }
    }
    for row in &rows {
        println!("{}", row.line());
    }
    Ok(code_of(&rows))
}

fn last_code(rows: &[Row]) -> u8 {
    rows.last().map_or(0, Row::code)
}

/// 0 if all are green.
fn code_of(rows: &[Row]) -> u8 {
    rows.iter().map(Row::code).find(|code| *code != 0).unwrap_or(0)
}

fn is_wanted(version: &str, wanted: &[&str]) -> bool {
    let is = |wanted: &&str| version == *wanted || version.starts_with(&format!("{wanted}."));
    wanted.is_empty() || wanted.iter().any(is)
}

fn on_postgres(foreground: &Foreground, version: &str, names: &[&str]) -> Result<u8, TaskError> {
    let programs = Programs::fetch(version)?;
    let cluster = Cluster::create_of(programs.bin(), &[])?;
    let kind = Kind::Postgres;
    if Pgbouncer::program().is_none() && package::can_install()? {
        package::install(&Kind::Pgbouncer.to_string(), pgbouncer::PACKAGES)?;
    }
    let pooler = Pgbouncer::before(&format!("127.0.0.1:{}", cluster.port()), &[])?;
    say(&format!("testing on PostgreSQL {version} ({})", kind.address(cluster.port())));
    let mut cargo = workspace::cargo();
    cargo.args(["test", "-p", "postrider-postgres", "--no-fail-fast"]);
    for test in TESTS {
        cargo.args(["--test", test]);
    }
    cargo.arg("--").args(names);
    cargo.envs(kind.environment(&kind.address(cluster.port()))).env(binaries::VARIABLE, programs.bin());
    cargo.env(Kind::Pgbouncer.variable(), pooler.url("postgres"));
    foreground.run(&mut cargo)
}

/// Runs the suite on one version; what was run, and the exit code.
fn on_mysql(
    foreground: &Foreground,
    name: &str,
    version: &str,
    origin: Origin,
    names: &[&str],
) -> Result<(String, u8), TaskError> {
    let kind = Kind::Mysql;
    if origin == Origin::Machine && MysqlPrograms::find()?.is_none() && package::can_install()? {
        package::install(&kind.to_string(), crate::mariadb::PACKAGES)?;
    }
    let folder = Programs::none()?;
    let programs = match origin {
        Origin::Machine => MysqlPrograms::find()?.ok_or_else(missing)?,
        Origin::Maven => folder.fetch_mariadb(version)?,
        Origin::Unstable(packages) => folder.fetch_unstable(packages)?,
    };
    let base = programs.base().map(Path::to_owned);
    let release = release(&programs)?;
    if !is_wanted(&release, &[version]) {
        return Err(TaskError::new(format!(
            "what was found for {name} {version} is {release}: name another version in MYSQL of xtask/src/compat.rs"
        )));
    }
    let server = Mariadb::create_of(programs, &[])?;
    let broker = Broker::create(&Options::new())?;
    let tested = format!("{name} {release}");
    say(&format!("testing on {tested} ({})", kind.address(server.port())));
    let mut code = 0;
    for (tests, options) in MYSQL_TESTS {
        let mut cargo = workspace::cargo();
        cargo.args(["test", "--no-fail-fast"]).args(*tests).arg("--").args(*options).args(names);
        cargo.envs(kind.environment(&kind.address(server.port())));
        cargo.env(Kind::Kafka.variable(), broker.bootstrap());
        // For the tests that start servers of their own.
        cargo.envs(base.as_ref().map(|base| (VARIABLE, base)));
        let ended = foreground.run(&mut cargo)?;
        if foreground.is_interrupted() {
            return Ok((tested, ended));
        }
        code = if code == 0 { ended } else { code };
    }
    Ok((tested, code))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{jdbc, mariadb, openssl, postgres};

    #[test]
    fn a_version_is_chosen_by_its_beginning() {
        assert!(
            is_wanted("13.23.0", &[])
                && is_wanted("13.23.0", &["13"])
                && is_wanted("13.23.0", &["18", "13.23"])
        );
        assert!(!is_wanted("13.23.0", &["1"]) && !is_wanted("13.23.0", &["18"]));
    }

    #[test]
    fn every_test_that_is_run_on_each_version_exists() {
        let tests = workspace::root().join("crates/postrider-postgres/tests");
        let mut found: Vec<String> = fs::read_dir(&tests)
            .expect("the tests")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file())
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        found.sort();
        let mut listed: Vec<&str> =
            TESTS.iter().copied().chain(LEFT_OUT.iter().map(|(test, _)| *test)).collect();
        listed.sort_unstable();
        assert_eq!(found, listed, "each test runs on every version, or there is a reason why not");
    }

    #[test]
    fn a_server_that_cannot_be_had_is_a_red_line_and_keeps_no_other_from_running() {
        let begun = Instant::now();
        let moved = TaskError::new("what was found for MySQL 9.7 is 9.8.0: name another version\nand more");
        let rows = [
            Row::of("MariaDB 11.8".into(), begun, Ok(("MariaDB 11.8.9".into(), 0))),
            Row::of("MySQL 9.7".into(), begun, Err(moved)),
        ];
        let lines = rows.each_ref().map(Row::line);
        assert_eq!(lines[0].trim_end(), "MariaDB 11.8.9       green                   0 s");
        assert!(
            lines[1].starts_with(
                "MySQL 9.7            red (not run)           0 s  what was found for MySQL 9.7"
            )
        );
        assert!(!lines[1].contains('\n') && code_of(&rows) == 1, "{lines:?}");
        assert_eq!(code_of(&rows[..1]), 0);
    }

    /// The job of every week has Debian's own apt, and all programs that are started or built with.
    #[test]
    fn ci_runs_every_version_each_week_with_the_programs_that_it_needs() {
        let ci = fs::read_to_string(workspace::root().join(".github/workflows/ci.yml")).expect("CI's jobs");
        let (_, job) = ci.split_once("\n  compat:\n").expect("its job");
        let job = job.split("\n\n").next().unwrap_or_default();
        for line in
            ["if: github.event_name == 'schedule'", "image: debian:bookworm", "- run: cargo xtask compat"]
        {
            assert!(job.contains(line), "{line} is missing in: {job}");
        }
        let words: Vec<&str> = job.split_whitespace().collect();
        let lists =
            [postgres::PACKAGES, pgbouncer::PACKAGES, mariadb::PACKAGES, jdbc::PACKAGES, openssl::PACKAGES];
        for package in lists.concat() {
            assert!(words.contains(&package), "{package} is missing in: {job}");
        }
    }
}
