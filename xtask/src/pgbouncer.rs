//! A PgBouncer of one's own in front of a PostgreSQL, in transaction mode unless it is told otherwise.
//!
//! This module owns the life of such a pooler. The server behind it is somebody else's.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::account::Account;
use crate::detached::Detached;
use crate::folder;
use crate::kind::Kind;
use crate::port;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::{CLEAN_UP, LAUNCH, Watchdog};

/// Debian's and Ubuntu's packages of it.
pub const PACKAGES: &[&str] = &["pgbouncer"];

/// Where distributions keep the program.
const FOLDERS: [&str; 5] =
    ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// The settings of a throw-away pooler. Users are looked up in the server, and nobody has a password.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addr", "127.0.0.1"),
    ("unix_socket_dir", ""),
    ("pool_mode", "transaction"),
    ("auth_type", "trust"),
    ("auth_user", "postgres"),
    ("max_client_conn", "2000"),
    ("default_pool_size", "100"),
];

/// How often another port is tried when somebody took the one that was free.
const PORT_ATTEMPTS: usize = 5;

/// How long a pooler may take until it answers, on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A throw-away PgBouncer on a loopback port. Users and databases are those of the server behind it.
///
/// It is stopped and its folder removed when it is dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Pgbouncer {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
    /// Nobody: the pooler was detached and is not this value's to clean up.
    watchdog: Option<Watchdog>,
}

impl Pgbouncer {
    /// The program on this machine, if there is one; it installs nothing.
    pub fn program() -> Option<PathBuf> {
        FOLDERS.iter().map(|folder| Path::new(folder).join("pgbouncer")).find(|path| path.is_file())
    }

    /// Starts one on a free port in front of the PostgreSQL at `server` (`host:port`). Its settings are those for tests, then
    /// `settings`, which win.
    pub fn before(server: &str, settings: &[(&str, &str)]) -> Result<Self, TaskError> {
        let program = Self::program().ok_or_else(missing)?;
        let account = Account::for_servers()?;
        let folder = folder::create(&account)?;
        let watchdog = match Watchdog::spawn(&account, CLEAN_UP, &[&folder.to_string_lossy()]) {
            Ok(watchdog) => watchdog,
            Err(failure) => {
                folder::remove(&folder)?;
                return Err(failure);
            }
        };
        let mut pooler = Self { folder, port: port::free()?, child: None, watchdog: Some(watchdog) };
        for _ in 1..PORT_ATTEMPTS {
            match pooler.start(&program, &account, server, settings) {
                Err(failure) if failure.mentions("Address already in use") => pooler.port = port::free()?,
                other => return other.map(|()| pooler),
            }
        }
        pooler.start(&program, &account, server, settings).map(|()| pooler)
    }

    /// The address of a database behind it, for clients; `postgres` is there from the beginning.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets the pooler outlive this process. Whoever takes it over ends it with [`Detached::stop`].
    pub fn detach(mut self) -> Result<Detached, TaskError> {
        let child =
            self.child.take().ok_or_else(|| TaskError::new("a stopped PgBouncer cannot be left running"))?;
        let detached = Detached { pid: child.id(), port: self.port, folder: self.folder.clone() };
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.disarm();
        }
        Ok(detached)
    }

    fn start(
        &mut self,
        program: &Path,
        account: &Account,
        server: &str,
        settings: &[(&str, &str)],
    ) -> Result<(), TaskError> {
        let unstarted = |error: io::Error| TaskError::new(format!("could not start PgBouncer: {error}"));
        let (host, server_port) = server.rsplit_once(':').unwrap_or((server, "5432"));
        let mut text = format!("[databases]\n* = host={host} port={server_port}\n[pgbouncer]\n");
        let users = self.folder.join("users");
        fs::write(&users, "\"postgres\" \"\"\n").map_err(unstarted)?;
        text.push_str(&format!("listen_port = {}\nauth_file = {}\n", self.port, users.display()));
        for (name, value) in
            SETTINGS.iter().filter(|(name, _)| settings.iter().all(|(own, _)| own != name)).chain(settings)
        {
            text.push_str(&format!("{name} = {value}\n"));
        }
        let configuration = self.folder.join("pgbouncer.ini");
        fs::write(&configuration, text).map_err(unstarted)?;
        account.own(&self.folder)?;
        let log = self.folder.join("log");
        let file = File::create(&log).map_err(unstarted)?;
        let mut launch = Command::new("sh");
        launch.args(["-c", LAUNCH, "sh"]).arg(&self.folder).arg(program).arg(&configuration);
        launch
            .current_dir(&self.folder)
            // Ctrl-C reaches everything in the group of the terminal's foreground: not the pooler.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(unstarted)?)
            .stderr(file);
        account.run(&mut launch);
        let mut child = launch.spawn().map_err(unstarted)?;
        let (mut ready, mut ended) = (false, false);
        process::wait_until(READY_WITHIN, || {
            ended = !matches!(child.try_wait(), Ok(None));
            ready = !ended && TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            ready || ended
        });
        if ready {
            self.child = Some(child);
            return Ok(());
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(TaskError::new("PgBouncer did not start; the end of its log:").with_log_file(&log))
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        let Some(watchdog) = self.watchdog.take() else { return };
        let gone = self.child.take().is_none_or(|mut child| child.kill().and_then(|()| child.wait()).is_ok());
        if gone && folder::remove(&self.folder).is_ok() {
            watchdog.disarm();
        }
    }
}

/// The host and the port in an address of a PostgreSQL.
pub fn place_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, place)| place)
}

/// The failure to find any, saying what to install.
pub fn missing() -> TaskError {
    TaskError::new(format!(
        "PgBouncer is missing: install it (Debian and Ubuntu: `apt-get install pgbouncer`; Fedora: `dnf install pgbouncer`; \
         Homebrew: `brew install pgbouncer`), or name one in front of the PostgreSQL in {}",
        Kind::Pgbouncer.variable()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_server_is_found_in_its_address() {
        assert_eq!(place_of("postgres://postgres@127.0.0.1:5433/postgres"), "127.0.0.1:5433");
        assert_eq!(place_of("postgresql://u:p@db.example?sslmode=require"), "db.example");
        assert_eq!(place_of("localhost:1/x"), "localhost:1");
    }
}
