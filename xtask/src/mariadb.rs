//! A MariaDB server of one's own, or a MySQL, that may be stopped, killed and started again.
//!
//! This module owns the life of such a server. Where its programs come from is in [`programs`].

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::account::Account;
use crate::detached::Detached;
use crate::folder;
use crate::port;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::{CLEAN_UP, LAUNCH, Watchdog};

pub mod programs;

use programs::Programs;

/// Debian's and Ubuntu's packages of it.
pub const PACKAGES: &[&str] = &["mariadb-server"];

/// The settings of a throw-away server: no waiting for a disk that nobody will read again (a benchmark sets
/// `innodb-flush-log-at-trx-commit` to 1).
pub const SETTINGS: &[(&str, &str)] = &[
    ("max-connections", "600"),
    ("innodb-buffer-pool-size", "256M"),
    ("innodb-flush-log-at-trx-commit", "0"),
    ("skip-name-resolve", "1"),
    // Hundreds of databases: a table that falls out of the cache makes the server prepare statements again, until it gives up.
    ("table-definition-cache", "4000"),
    ("table-open-cache", "4000"),
];

/// What MySQL is told beside that: nothing of it outside of its own folder, and no disk to wait for.
const MYSQL_SETTINGS: &[(&str, &str)] =
    &[("mysqlx", "OFF"), ("secure-file-priv", "NULL"), ("sync-binlog", "0")];

/// What MariaDB is told beside that: no certificate of its own, which 11.4 and later make at each start, for seconds on a busy machine.
const MARIADB_SETTINGS: &[(&str, &str)] = &[("ssl", "0")];

/// What a new MySQL lacks beside a new MariaDB: clients by TCP are nobody to it, and there is no database `test`.
const MYSQL_BEGINNING: &str = "create user root@'127.0.0.1';\n\
     grant all on *.* to root@'127.0.0.1' with grant option;\n\
     create database test;\n";

/// How often another port is tried when somebody took the one that was free.
const PORT_ATTEMPTS: usize = 5;

/// How long a server may take until it answers, on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a server that was told to stop may take.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The first byte of what a server says that takes connections: the version of its protocol.
const GREETING: u8 = 10;

/// A throw-away MariaDB on a loopback port, with the user `root`, no password and a database `test`; a MySQL, if its programs are
/// those of one.
///
/// It is stopped and its folder removed when it is dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Mariadb {
    programs: Programs,
    account: Account,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    child: Option<Child>,
    /// Nobody: the server was detached and is not this value's to clean up.
    watchdog: Option<Watchdog>,
}

impl Mariadb {
    /// Makes a new server and starts it on a free port.
    ///
    /// Its settings are those of [`SETTINGS`], then `settings`, which win.
    pub fn create(settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        Self::create_of(Programs::find()?.ok_or_else(programs::missing)?, settings)
    }

    /// The same of these programs.
    pub fn create_of(programs: Programs, settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let account = Account::for_servers()?;
        let folder = folder::create(&account)?;
        let watchdog = match Watchdog::spawn(&account, CLEAN_UP, &[&folder.to_string_lossy()]) {
            Ok(watchdog) => watchdog,
            Err(failure) => {
                folder::remove(&folder)?;
                return Err(failure);
            }
        };
        let own = if programs.is_mysql() { MYSQL_SETTINGS } else { MARIADB_SETTINGS };
        let settings = SETTINGS.iter().chain(own).chain(settings);
        let settings = settings.map(|(name, value)| format!("--{name}={value}")).collect();
        let port = port::free()?;
        let mut server =
            Self { programs, account, folder, port, settings, child: None, watchdog: Some(watchdog) };
        server.initialise()?;
        for _ in 1..PORT_ATTEMPTS {
            match server.start() {
                Err(failure) if failure.mentions("Can't start server: Bind on TCP/IP port") => {
                    server.port = port::free()?;
                }
                other => return other.map(|()| server),
            }
        }
        server.start().map(|()| server)
    }

    /// Whether [`create`](Self::create) makes a MySQL, because the programs that it finds are those of one.
    pub fn is_mysql() -> bool {
        Programs::find().ok().flatten().is_some_and(|programs| programs.is_mysql())
    }

    /// The address of a database of this server, for clients; `test` is there from the beginning.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
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

    /// The folder that holds all of this server: data, log and Unix socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process id of the server, if it runs; one that is paused does.
    pub fn pid(&self) -> Option<u32> {
        let pid = self.child.as_ref()?.id();
        // Nobody else gets the id before this child is reaped.
        process::find(pid).map(|_| pid)
    }

    /// Starts the server and waits until it takes connections; one that runs already is left alone.
    ///
    /// A server that does not start is a failure with the end of its log.
    pub fn start(&mut self) -> Result<(), TaskError> {
        if self.pid().is_some() {
            return Ok(());
        }
        self.reap()?;
        let name = self.programs.name();
        let unstarted = |error: io::Error| TaskError::new(format!("could not start {name}: {error}"));
        let log = OpenOptions::new().create(true).append(true).open(self.log()).map_err(unstarted)?;
        let written_before = fs::read(self.log()).map(|bytes| bytes.len()).unwrap_or_default();
        let mut launch = Command::new("sh");
        launch.args(["-c", LAUNCH, "sh"]).arg(&self.folder).arg(&self.programs.server);
        launch.arg("--no-defaults").args(self.programs.options());
        launch
            .arg(format!("--datadir={}", self.data_dir().display()))
            .arg(format!("--socket={}", self.folder.join("socket").display()))
            .arg(format!("--pid-file={}", self.folder.join("pid").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={}", self.port)])
            .args(&self.settings)
            .current_dir(&self.folder)
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            // Ctrl-C reaches everything in the group of the terminal's foreground: not the server.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(unstarted)?)
            .stderr(log);
        self.account.run(&mut launch);
        self.child = Some(launch.spawn().map_err(unstarted)?);
        let mut ready = false;
        process::wait_until(READY_WITHIN, || {
            ready = greets(self.port);
            ready || self.pid().is_none()
        });
        if ready && self.pid().is_some() {
            return Ok(());
        }
        let log = fs::read(self.log()).unwrap_or_default();
        let new = String::from_utf8_lossy(log.get(written_before..).unwrap_or_default()).into_owned();
        Err(TaskError::new(format!("{name} did not start; the end of its log:")).with_log(&new))
    }

    /// Stops the server in order: everything committed is on disk.
    pub fn stop(&mut self) -> Result<(), TaskError> {
        if let Some(pid) = self.pid() {
            process::signal("TERM", &[pid.into()]);
            if !process::wait_until(GONE_WITHIN, || self.pid().is_none()) {
                return Err(TaskError::new(format!("MariaDB (process {pid}) does not stop")));
            }
        }
        self.reap()
    }

    /// Kills the server, as a crash would. When it returns it is gone; [`start`](Self::start) then recovers what was
    /// committed.
    pub fn kill(&mut self) -> Result<(), TaskError> {
        if let Some(child) = &mut self.child {
            child.kill().map_err(|error| TaskError::new(format!("could not kill MariaDB: {error}")))?;
        }
        self.reap()
    }

    /// Lets the server outlive this process. Whoever takes it over ends it with [`Detached::stop`].
    pub fn detach(mut self) -> Result<Detached, TaskError> {
        let pid = self.pid().ok_or_else(|| TaskError::new("a stopped MariaDB cannot be left running"))?;
        let detached = Detached { pid, port: self.port, folder: self.folder.clone() };
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.disarm();
        }
        Ok(detached)
    }

    fn initialise(&self) -> Result<(), TaskError> {
        let mut install = Command::new(self.programs.install.as_ref().unwrap_or(&self.programs.server));
        install
            .arg("--no-defaults")
            .args(self.programs.options())
            .arg(format!("--datadir={}", self.data_dir().display()))
            .arg("--skip-name-resolve");
        if self.programs.is_mysql() {
            let beginning = self.folder.join("beginning.sql");
            fs::write(&beginning, MYSQL_BEGINNING).map_err(|error| {
                TaskError::new(format!("could not write {}: {error}", beginning.display()))
            })?;
            install.args(["--initialize-insecure", "--mysqlx=OFF", "--secure-file-priv=NULL"]);
            install.arg(format!("--init-file={}", beginning.display()));
        } else {
            install.arg("--auth-root-authentication-method=normal");
        }
        install
            .env("HOME", &self.folder)
            // A server that starts removes what it takes for its own temporary tables: not in a folder of many.
            .env("TMPDIR", &self.folder)
            .current_dir(&self.folder);
        self.account.run(&mut install);
        process::output(&mut install, &format!("make a {} data folder", self.programs.name())).map(drop)
    }

    /// Takes note of its end: until then the system keeps its id.
    fn reap(&mut self) -> Result<(), TaskError> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        child.wait().map(drop).map_err(|error| TaskError::new(format!("could not wait for MariaDB: {error}")))
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        let Some(watchdog) = self.watchdog.take() else { return };
        if self.kill().and_then(|()| folder::remove(&self.folder)).is_ok() {
            watchdog.disarm();
        }
    }
}

/// Whether a server on that port takes connections: it speaks first.
pub(crate) fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut said = [0; 5];
    let heard =
        stream.set_read_timeout(Some(Duration::from_secs(1))).and_then(|()| stream.read_exact(&mut said));
    heard.is_ok() && said[4] == GREETING
}
