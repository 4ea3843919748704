//! A PostgreSQL server of one's own, that may be stopped, killed, copied and restored.
//!
//! This module owns the life of such a server. Where its programs come from is in [`binaries`], what is in its
//! data folder in [`data`]; [`standby`] follows another server, [`restore`] sets one back.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::account::Account;
use crate::detached::Detached;
use crate::folder;
use crate::port;
use crate::process::{self, shell_quoted};
use crate::task_error::TaskError;
use crate::watchdog::Watchdog;

pub mod binaries;
pub mod data;
pub mod restore;
pub mod standby;

pub use standby::Standby;

/// Debian's and Ubuntu's packages of it.
pub const PACKAGES: &[&str] = &["postgresql"];

/// How often another port is tried when somebody took the one that was free.
const PORT_ATTEMPTS: usize = 5;

/// How long the processes of a killed server may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// What is left to do when the owner of a cluster died. Programs that the owner was running may still be writing.
const CLEAN_UP: &str = r#"
"$1" stop -D "$2/data" -m immediate
for attempt in 1 2 3 4 5; do
    rm -rf "$2" && exit 0
    sleep 1
done
"#;

/// A throw-away PostgreSQL server on a loopback port, with one superuser `postgres` and no password.
///
/// It is stopped and its folder removed when it is dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Cluster {
    binaries: PathBuf,
    account: Account,
    folder: PathBuf,
    port: u16,
    /// Nobody: the cluster was detached and is not this value's to clean up.
    watchdog: Option<Watchdog>,
}

impl Cluster {
    /// The folder of the PostgreSQL programs on this machine; it installs nothing.
    pub fn binaries() -> Result<PathBuf, TaskError> {
        binaries::find()?.ok_or_else(binaries::missing)
    }

    /// Makes a new cluster and starts it on a free port.
    ///
    /// The server's settings are those of [`data::SETTINGS`], then `settings`, which win.
    pub fn create(settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        Self::create_of(Self::binaries()?, settings)
    }

    /// The same of the programs in the folder `binaries`.
    pub fn create_of(binaries: PathBuf, settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let mut cluster = Self::empty(binaries)?;
        data::initialise(&cluster, settings)?;
        cluster.start_on_a_free_port()?;
        Ok(cluster)
    }

    /// One without data, in a folder and with a port of its own.
    fn empty(binaries: PathBuf) -> Result<Self, TaskError> {
        let account = Account::for_servers()?;
        let folder = folder::create(&account)?;
        let pg_ctl = binaries.join("pg_ctl");
        let watchdog =
            Watchdog::spawn(&account, CLEAN_UP, &[&pg_ctl.to_string_lossy(), &folder.to_string_lossy()]);
        let watchdog = match watchdog {
            Ok(watchdog) => watchdog,
            Err(failure) => {
                folder::remove(&folder)?;
                return Err(failure);
            }
        };
        Ok(Self { binaries, account, folder, port: port::free()?, watchdog: Some(watchdog) })
    }

    /// The address of a database of this cluster, for clients; `postgres` is there from the beginning.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port it listens on; it stays the same over [`stop`](Self::stop) and [`start`](Self::start).
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The server's log file.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The folder that holds all of this cluster: data, log and Unix socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A PostgreSQL program (`psql`, `pg_dump`, …), set to run under the server's account and to talk to this
    /// server as its superuser; `PG…` variables of the developer do not reach it.
    pub fn bin(&self, name: &str) -> Command {
        let mut command = Command::new(self.binaries.join(name));
        for (variable, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(variable);
        }
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres")
            .env("HOME", &self.folder)
            .env("LC_ALL", data::LOCALE)
            .current_dir(&self.folder);
        self.account.run(&mut command);
        command
    }

    /// The process id of the server, if it runs.
    pub fn pid(&self) -> Option<u32> {
        let data = self.data_dir();
        let pid =
            fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()?;
        process::is_running(pid, &data).then_some(pid)
    }

    /// Starts the server and waits until it takes connections; one that runs already is left alone.
    ///
    /// A server that does not start is a failure with the end of its log.
    pub fn start(&mut self) -> Result<(), TaskError> {
        if self.pid().is_some() {
            return Ok(());
        }
        let log = self.log();
        let written_before = fs::read(&log).map(|bytes| bytes.len()).unwrap_or_default();
        let socket = shell_quoted(&self.folder.to_string_lossy());
        let options = format!("-h 127.0.0.1 -p {} -k {socket}", self.port);
        let mut pg_ctl = self.bin("pg_ctl");
        pg_ctl
            .args(["start", "-w", "-t", "60", "-s", "-o", &options, "-l"])
            .arg(&log)
            .arg("-D")
            .arg(self.data_dir());
        process::output(&mut pg_ctl, "start PostgreSQL").map(drop).map_err(|failure| {
            let log = fs::read(&log).unwrap_or_default();
            let new = log.get(written_before..).unwrap_or_default();
            if new.is_empty() {
                return failure;
            }
            TaskError::new("PostgreSQL did not start; the end of its log:")
                .with_log(&String::from_utf8_lossy(new))
        })
    }

    /// Starts it, on another port if somebody took the one that was free.
    fn start_on_a_free_port(&mut self) -> Result<(), TaskError> {
        for _ in 1..PORT_ATTEMPTS {
            match self.start() {
                Err(failure) if failure.mentions("could not bind") => self.port = port::free()?,
                other => return other,
            }
        }
        self.start()
    }

    /// Runs one statement as the superuser and gives what it answered.
    fn ask(&self, statement: &str) -> Result<String, TaskError> {
        let mut psql = self.bin("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        process::output(&mut psql, "ask PostgreSQL").map(|answer| answer.trim().to_owned())
    }

    /// Stops the server in order: clients are cut off, everything committed is on disk.
    pub fn stop(&mut self) -> Result<(), TaskError> {
        self.stop_by("fast")
    }

    /// Kills the server and all its processes, as a crash would: no clean-up, no word to the clients.
    ///
    /// When it returns they are gone. [`start`](Self::start) then recovers what was committed.
    pub fn kill(&mut self) -> Result<(), TaskError> {
        let Some(pid) = self.pid() else { return Ok(()) };
        // Frozen first, so that it neither starts further processes nor sees them die.
        process::signal("STOP", &[pid.into()]);
        let mut processes: Vec<u32> = process::list()
            .iter()
            .filter(|process| process.parent == pid)
            .map(|process| process.pid)
            .collect();
        processes.push(pid);
        let targets: Vec<i64> = processes.iter().copied().map(i64::from).collect();
        process::signal("KILL", &targets);
        let gone = process::wait_until(GONE_WITHIN, || {
            !process::list().iter().any(|process| processes.contains(&process.pid))
        });
        if !gone {
            return Err(TaskError::new(format!("PostgreSQL (process {pid}) outlived its kill")));
        }
        // A dead process keeps its id until its parent looks, and a server that finds its id in use does not start.
        for lock in
            [self.data_dir().join("postmaster.pid"), self.folder.join(format!(".s.PGSQL.{}.lock", self.port))]
        {
            let _ = fs::remove_file(lock);
        }
        Ok(())
    }

    /// Copies the data of a stopped cluster, file by file, to `dir`, which must not exist yet.
    pub fn copy_data_to(&self, dir: impl AsRef<Path>) -> Result<(), TaskError> {
        self.refuse_while_running("copied")?;
        data::copy(&self.data_dir(), dir.as_ref())
    }

    /// Replaces the data of a stopped cluster by a copy of `dir`; the port stays its own.
    pub fn replace_data_from(&mut self, dir: impl AsRef<Path>) -> Result<(), TaskError> {
        self.refuse_while_running("replaced")?;
        data::replace(&self.data_dir(), dir.as_ref(), &self.account)
    }

    /// Lets the server outlive this process. Whoever takes it over ends it with [`Detached::stop`].
    pub fn detach(mut self) -> Result<Detached, TaskError> {
        let pid = self.pid().ok_or_else(|| TaskError::new("a stopped PostgreSQL cannot be left running"))?;
        let detached = Detached { pid, port: self.port, folder: self.folder.clone() };
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.disarm();
        }
        Ok(detached)
    }

    fn stop_by(&self, mode: &str) -> Result<(), TaskError> {
        if self.pid().is_none() {
            return Ok(());
        }
        let mut pg_ctl = self.bin("pg_ctl");
        pg_ctl.args(["stop", "-w", "-t", "60", "-s", "-m", mode, "-D"]).arg(self.data_dir());
        // A second Ctrl-C must not end the stopping of what the first one left.
        pg_ctl.process_group(0);
        process::output(&mut pg_ctl, "stop PostgreSQL").map(drop)
    }

    fn refuse_while_running(&self, what: &str) -> Result<(), TaskError> {
        match self.pid() {
            Some(_) => Err(TaskError::new(format!(
                "the data of a running PostgreSQL cannot be {what}: stop it first"
            ))),
            None => Ok(()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(watchdog) = self.watchdog.take() else { return };
        if self.stop_by("immediate").and_then(|()| folder::remove(&self.folder)).is_ok() {
            watchdog.disarm();
        }
    }
}
