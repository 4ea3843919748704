//! The process of a broker: starting it, signalling it, seeing it end.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::kit::Kit;
use super::node::Node;
use crate::account::Account;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::{CLEAN_UP, LAUNCH, Watchdog};

/// How long a broker that was told to stop may take.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The process that runs a node, if it was started.
#[derive(Debug, Default)]
pub struct Daemon {
    child: Option<Child>,
    /// How much of the log is of earlier processes.
    logged_before: usize,
}

impl Daemon {
    /// Has the process and the folder of `node` go away with this process, however it ends.
    pub fn watchdog(node: &Node) -> Result<Watchdog, TaskError> {
        Watchdog::spawn(&Account::own_user(), CLEAN_UP, &[&node.folder.to_string_lossy()])
    }

    /// The process id, if it runs; one that is paused does.
    pub fn pid(&self) -> Option<u32> {
        let pid = self.child.as_ref()?.id();
        // Nobody else gets the id before this child is reaped.
        process::find(pid).map(|_| pid)
    }

    /// Starts it and does not wait for it; one that runs already is left alone.
    pub fn launch(&mut self, kit: &Kit, node: &Node) -> Result<(), TaskError> {
        if self.pid().is_some() {
            return Ok(());
        }
        self.reap(node)?;
        let unstarted = |error: io::Error| TaskError::new(format!("could not start Kafka: {error}"));
        let log = OpenOptions::new().create(true).append(true).open(node.log()).map_err(unstarted)?;
        self.logged_before = fs::read(node.log()).map(|bytes| bytes.len()).unwrap_or_default();
        let broker = kit.broker(&node.properties());
        let mut launch = Command::new("sh");
        launch.args(["-c", LAUNCH, "sh"]).arg(&node.folder);
        launch.arg(broker.get_program()).args(broker.get_args());
        for (name, value) in broker.get_envs() {
            match value {
                Some(value) => launch.env(name, value),
                None => launch.env_remove(name),
            };
        }
        launch
            .current_dir(&node.folder)
            // Ctrl-C reaches everything in the group of the terminal's foreground: not the broker.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(unstarted)?)
            .stderr(log);
        self.child = Some(launch.spawn().map_err(unstarted)?);
        Ok(())
    }

    /// Asks it to end, and waits for that.
    pub fn stop(&mut self, node: &Node) -> Result<(), TaskError> {
        if let Some(pid) = self.pid() {
            process::signal("TERM", &[pid.into()]);
            // One that is paused hears it when it goes on.
            process::signal("CONT", &[pid.into()]);
            if !process::wait_until(GONE_WITHIN, || self.pid().is_none()) {
                return Err(TaskError::new(format!("Kafka (process {pid}) does not stop")));
            }
        }
        self.reap(node)
    }

    /// Ends it at once.
    pub fn kill(&mut self, node: &Node) -> Result<(), TaskError> {
        if let Some(child) = &mut self.child {
            child.kill().map_err(|error| TaskError::new(format!("could not kill Kafka: {error}")))?;
        }
        self.reap(node)
    }

    /// Freezes it, and waits until nothing of it moves.
    pub fn pause(&mut self) -> Result<(), TaskError> {
        let pid = self.pid().ok_or_else(|| TaskError::new("a stopped Kafka cannot be paused"))?;
        process::signal("STOP", &[pid.into()]);
        if process::wait_until(GONE_WITHIN, || process::is_paused(pid)) {
            return Ok(());
        }
        Err(TaskError::new(format!("Kafka (process {pid}) does not pause")))
    }

    /// Lets it go on.
    pub fn resume(&mut self) -> Result<(), TaskError> {
        let pid = self.pid().ok_or_else(|| TaskError::new("a stopped Kafka cannot be resumed"))?;
        process::signal("CONT", &[pid.into()]);
        Ok(())
    }

    /// The failure to start, with the end of what this process wrote.
    pub fn unstarted(&self, node: &Node) -> TaskError {
        let log = fs::read(node.log()).unwrap_or_default();
        let new = String::from_utf8_lossy(log.get(self.logged_before..).unwrap_or_default()).into_owned();
        // The way through the program leaves no room for the reason.
        let told: Vec<&str> = new.lines().filter(|line| !line.starts_with("\tat ")).collect();
        TaskError::new("Kafka did not start; the end of its log:").with_log(&told.join("\n"))
    }

    /// Takes note of its end: until then the system keeps its id.
    fn reap(&mut self, node: &Node) -> Result<(), TaskError> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let _ = fs::remove_file(node.folder.join("pid"));
        child.wait().map(drop).map_err(|error| TaskError::new(format!("could not wait for Kafka: {error}")))
    }
}
