//! A process whose output goes to files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{PATIENCE, Process};

/// A process that writes to `NAME.out` and `NAME.log` in a folder. It is killed when it is dropped.
#[derive(Debug)]
pub struct Logged {
    /// The process.
    pub process: Process,
    out: PathBuf,
    log: PathBuf,
}

impl Logged {
    /// Starts a program. Its stdin is empty.
    pub fn start(command: &mut Command, folder: &Path, name: &str) -> Self {
        let (out, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        command.stdin(Stdio::null()).stdout(File::create(&out).expect("a file"));
        let process = Process::start(command.stderr(File::create(&log).expect("a file")));
        Self { process, out, log }
    }

    /// Starts a program whose stderr is a pipe that nobody reads any more.
    pub fn start_unheard(command: &mut Command, folder: &Path, name: &str) -> Self {
        let (out, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        command.stdin(Stdio::null()).stdout(File::create(&out).expect("a file"));
        let mut process = Process::start(command.stderr(Stdio::piped()));
        drop(process.stderr());
        Self { process, out, log }
    }

    /// What it wrote to stdout so far.
    pub fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// What it wrote to stderr so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal: `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits until it has ended, and returns its exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        match self.process.wait() {
            Some(status) => status.code(),
            None => panic!("it did not end within {PATIENCE:?}: {}", self.log()),
        }
    }
}
