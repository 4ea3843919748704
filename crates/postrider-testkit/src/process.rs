//! A process that a test starts.

use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// A process. It is killed when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        Self(command.spawn().unwrap_or_else(|error| panic!("{program} does not start: {error}")))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Takes its standard input, which must be a pipe.
    pub fn stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().expect("its stdin is a pipe")
    }

    /// Takes its standard output, which must be a pipe.
    pub fn stdout(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("its stdout is a pipe")
    }

    /// Takes its standard error, which must be a pipe.
    pub fn stderr(&mut self) -> ChildStderr {
        self.0.stderr.take().expect("its stderr is a pipe")
    }

    /// Sends it a signal: `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        xtask::process::signal(name, &[self.0.id().into()]);
    }

    /// Kills it, as a crash would, and waits until it is gone.
    pub fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it is gone");
    }

    /// The most memory that it ever had resident, in megabytes; Linux only.
    pub fn most_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("a process on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
        line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number") * 1024.0 / 1e6
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("its state")
    }

    /// Waits until it has ended, at most for [`PATIENCE`]; nothing if it has not.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
