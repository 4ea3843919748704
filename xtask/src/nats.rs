//! A NATS server of one's own, with JetStream: for the example of a sink of one's own.
//!
//! This module owns the life of such a server.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::account::Account;
use crate::task_error::TaskError;
use crate::watchdog::{CLEAN_UP, LAUNCH, Watchdog};
use crate::{folder, package, port, process};

/// Debian's and Ubuntu's packages of it.
pub const PACKAGES: &[&str] = &["nats-server"];

/// Where distributions keep the program.
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// How long a server may take until it answers, on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A throw-away NATS server on a loopback port, with JetStream and without passwords.
///
/// It is killed and its folder removed when it is dropped, and also when its process ends in any other way.
#[derive(Debug)]
pub struct Nats {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
    watchdog: Option<Watchdog>,
}

/// The program on this machine, if there is one.
pub fn program() -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join("nats-server")).find(|path| path.is_file())
}

/// Installs a NATS server where there is none, if that is possible.
pub fn prepare() -> Result<(), TaskError> {
    if program().is_none() && package::can_install()? {
        package::install("a NATS server", PACKAGES)?;
    }
    Ok(())
}

impl Nats {
    /// Makes a new server and starts it on a free port.
    pub fn create() -> Result<Self, TaskError> {
        let account = Account::own_user();
        let folder = folder::create(&account)?;
        let watchdog = match Watchdog::spawn(&account, CLEAN_UP, &[&folder.to_string_lossy()]) {
            Ok(watchdog) => watchdog,
            Err(failure) => {
                folder::remove(&folder)?;
                return Err(failure);
            }
        };
        let mut server = Self { folder, port: port::free()?, child: None, watchdog: Some(watchdog) };
        server.start()?;
        Ok(server)
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server, as a crash would. When it returns the server is gone.
    pub fn kill(&mut self) -> Result<(), TaskError> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let gone = child.kill().and_then(|()| child.wait());
        gone.map(drop).map_err(|error| TaskError::new(format!("could not kill the NATS server: {error}")))
    }

    /// Starts the server on its port and data, and waits until it answers.
    pub fn start(&mut self) -> Result<(), TaskError> {
        let program = program().ok_or_else(missing)?;
        let unstarted = |error: io::Error| TaskError::new(format!("could not start NATS: {error}"));
        let log = self.folder.join("log");
        let file = File::create(&log).map_err(unstarted)?;
        let mut launch = Command::new("sh");
        launch.args(["-c", LAUNCH, "sh"]).arg(&self.folder).arg(program);
        launch.args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--jetstream", "--store_dir"]);
        launch
            .arg(self.folder.join("data"))
            // Ctrl-C reaches everything in the group of the terminal's foreground: not the server.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(unstarted)?)
            .stderr(file);
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
        Err(TaskError::new("the NATS server did not start; the end of its log:").with_log_file(&log))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let gone = self.kill().is_ok();
        if gone
            && folder::remove(&self.folder).is_ok()
            && let Some(watchdog) = self.watchdog.take()
        {
            watchdog.disarm();
        }
    }
}

/// The failure to find any, saying what to install.
fn missing() -> TaskError {
    TaskError::new(
        "a NATS server is missing: install it (Debian and Ubuntu: `apt-get install nats-server`; \
         Homebrew: `brew install nats-server`)",
    )
}
