//! Finding the PostgreSQL programs of this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kind::Kind;
use crate::process;
use crate::task_error::TaskError;

/// The variable that names the folder of the programs to use.
pub const VARIABLE: &str = "POSTRIDER_TEST_POSTGRES_BIN";

/// What a server needs; a folder without them belongs to a client installation.
const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Where Debian and Ubuntu keep one folder a version.
const BY_VERSION: &str = "/usr/lib/postgresql";

/// The folder of the PostgreSQL programs: the one in [`VARIABLE`], else that of the `pg_config` in the path, else
/// the newest below `/usr/lib/postgresql`; `None` if there is none.
///
/// A folder that [`VARIABLE`] names without the programs in it is a failure: another version would be a surprise.
pub fn find() -> Result<Option<PathBuf>, TaskError> {
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        if is_complete(&named) {
            return Ok(Some(named));
        }
        let needed = NEEDED.join(", ");
        return Err(TaskError::new(format!("{VARIABLE} names {}, which lacks {needed}", named.display())));
    }
    Ok(of_pg_config().or_else(|| newest_below(Path::new(BY_VERSION))))
}

/// The failure to find any, saying what to install.
pub fn missing() -> TaskError {
    TaskError::new(format!(
        "PostgreSQL is missing: install it (Debian and Ubuntu: `apt-get install postgresql`; Fedora: `dnf install \
         postgresql-server`; Homebrew: `brew install postgresql@17`), name the folder of its programs in {VARIABLE}, \
         or a server in {}",
        Kind::Postgres.variable()
    ))
}

fn of_pg_config() -> Option<PathBuf> {
    let answer = process::output(Command::new("pg_config").arg("--bindir"), "ask pg_config").ok()?;
    Some(PathBuf::from(answer.trim())).filter(|folder| is_complete(folder))
}

fn newest_below(versions: &Path) -> Option<PathBuf> {
    let version = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<f64>().ok();
    let mut found: Vec<(f64, PathBuf)> = fs::read_dir(versions)
        .ok()?
        .flatten()
        .filter_map(|entry| Some((version(&entry)?, entry.path().join("bin"))))
        .filter(|(_, folder)| is_complete(folder))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.pop().map(|(_, folder)| folder)
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|program| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{account::Account, folder};

    #[test]
    fn the_newest_version_that_has_a_server_is_taken() {
        let versions = folder::create(&Account::for_servers().expect("an account")).expect("a folder");
        for (version, programs) in [("9.6", &NEEDED[..]), ("15", &NEEDED[..]), ("17", &["psql"][..])] {
            let bin = versions.join(version).join("bin");
            fs::create_dir_all(&bin).expect("a folder");
            for program in programs {
                fs::write(bin.join(program), "").expect("a file");
            }
        }
        assert_eq!(newest_below(&versions), Some(versions.join("15/bin")));
        folder::remove(&versions).expect("removed");
    }
}
