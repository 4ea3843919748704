//! The data folder of a cluster: making it, its settings, copying it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::Cluster;
use crate::account::Account;
use crate::process;
use crate::task_error::TaskError;

/// The settings of a throw-away server: room for a benchmark's thousand connections, two-phase commit, and no
/// waiting for a disk that nobody will read again (a benchmark sets `fsync` to `on`).
pub const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "1300"),
    ("max_prepared_transactions", "20"),
    ("shared_buffers", "512MB"),
    ("fsync", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
];

/// The locale of the databases and of the programs' messages; only Linux has the first everywhere.
pub const LOCALE: &str = if cfg!(target_os = "linux") { "C.UTF-8" } else { "C" };

/// Makes the data folder of `cluster`, with [`SETTINGS`] and then `settings` at the end of its configuration.
pub fn initialise(cluster: &Cluster, settings: &[(&str, &str)]) -> Result<(), TaskError> {
    let mut initdb = cluster.bin("initdb");
    initdb
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"])
        .arg(format!("--locale={LOCALE}"))
        .arg("-D")
        .arg(cluster.data_dir());
    process::output(&mut initdb, "make a PostgreSQL data folder")?;

    let lines: String = SETTINGS.iter().chain(settings).map(|(name, value)| setting(name, value)).collect();
    append(cluster, &lines)
}

/// Makes a base backup of a running server in the folder `to`, with the log that it needs to start.
pub fn back_up(cluster: &Cluster, to: &Path) -> Result<(), TaskError> {
    let mut backup = cluster.bin("pg_basebackup");
    backup.args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "-D"]).arg(to);
    process::output(&mut backup, "back up a PostgreSQL server").map(drop)
}

/// Adds lines to the configuration of a cluster.
pub fn append(cluster: &Cluster, lines: &str) -> Result<(), TaskError> {
    let path = cluster.data_dir().join("postgresql.conf");
    OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .map_err(|error| TaskError::new(format!("could not write {}: {error}", path.display())))
}

/// Puts an empty file into the data folder, by which a server is told how to start.
pub fn signal(cluster: &Cluster, name: &str) -> Result<(), TaskError> {
    let path = cluster.data_dir().join(name);
    fs::write(&path, "")
        .map_err(|error| TaskError::new(format!("could not write {}: {error}", path.display())))?;
    cluster.account.own(&path)
}

/// Copies the folder `from` to `to`, which must not exist, keeping owners, modes and times.
pub fn copy(from: &Path, to: &Path) -> Result<(), TaskError> {
    if !from.join("PG_VERSION").is_file() {
        return Err(TaskError::new(format!("{} is not the data of a PostgreSQL server", from.display())));
    }
    if to.exists() {
        return Err(TaskError::new(format!(
            "{} exists already: data is copied to a new folder",
            to.display()
        )));
    }
    let mut cp = Command::new("cp");
    cp.arg("-a").arg("--").arg(from).arg(to);
    process::output(&mut cp, &format!("copy {} to {}", from.display(), to.display())).map(drop)
}

/// Puts a copy of `from` in the place of the data folder `data`, owned by `account`.
pub fn replace(data: &Path, from: &Path, account: &Account) -> Result<(), TaskError> {
    // The old data goes only when the new is all there.
    let fresh = data.with_extension("new");
    copy(from, &fresh)?;
    account.own(&fresh)?;
    // It names the process that had the original open: a stranger by now.
    let _ = fs::remove_file(fresh.join("postmaster.pid"));
    fs::remove_dir_all(data)
        .and_then(|()| fs::rename(&fresh, data))
        .map_err(|error| TaskError::new(format!("could not replace {}: {error}", data.display())))
}

/// A line of the configuration.
pub fn setting(name: &str, value: &str) -> String {
    format!("{name} = '{}'\n", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_setting_stays_in_its_value() {
        assert_eq!(setting("log_line_prefix", "it's "), "log_line_prefix = 'it''s '\n");
    }
}
