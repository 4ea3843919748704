//! A server that outlives the process that started it.

use std::path::PathBuf;
use std::time::Duration;

use crate::folder;
use crate::process;
use crate::task_error::TaskError;

/// How long the processes of a server that was told to end may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// A server that was left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// Its process id.
    pub pid: u32,
    /// The port it listens on.
    pub port: u16,
    /// The folder that holds all of it.
    pub folder: PathBuf,
}

impl Detached {
    /// Whether it still runs, and is still the one that was started.
    pub fn is_running(&self) -> bool {
        process::is_running(self.pid, &self.folder)
    }

    /// Ends it by `signal`, if it still runs, and removes its folder.
    pub fn stop(&self, signal: &str) -> Result<(), TaskError> {
        if self.is_running() {
            process::signal(signal, &[self.pid.into()]);
            if !process::wait_until(GONE_WITHIN, || !self.is_running()) {
                return Err(TaskError::new(format!("the server (process {}) does not stop", self.pid)));
            }
        }
        folder::remove(&self.folder)
    }
}
