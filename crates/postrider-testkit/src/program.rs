//! A program that a test starts and listens to.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::{PATIENCE, Process};

/// A process whose lines on stdout a test waits for. It is killed when it is dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    /// The process.
    pub process: Process,
    lines: UnboundedReceiver<String>,
    errors: Errors,
}

/// What a program wrote to stderr so far. It outlives the program.
#[derive(Debug, Clone, Default)]
pub struct Errors(Arc<Mutex<String>>);

impl Errors {
    fn add(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Program {
    /// Starts a program. The name is what failures call it.
    pub fn start(name: &str, command: &mut Command) -> Self {
        let mut process = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (stdout, mut stderr) = (process.stdout(), process.stderr());
        let (heard, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if heard.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Errors::default();
        let written = errors.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                written.add(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { name: name.to_owned(), process, lines, errors }
    }

    /// Waits for a line that starts with this, and returns what follows in it. Other lines are skipped.
    pub async fn line(&mut self, start: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            match timeout_at(end, self.lines.recv()).await {
                Ok(Some(line)) => {
                    if let Some(rest) = line.strip_prefix(start) {
                        return rest.to_owned();
                    }
                }
                Ok(None) => self.fail(&format!("ended before it wrote {start:?}")),
                Err(_) => self.fail(&format!("did not write {start:?} within {PATIENCE:?}")),
            }
        }
    }

    /// What it wrote to stderr so far.
    pub fn errors(&self) -> Errors {
        self.errors.clone()
    }

    /// Waits until it has ended, and returns its exit code.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.ended() {
                return status.code();
            }
            if Instant::now() > end {
                self.fail(&format!("did not end within {PATIENCE:?}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks it to end with SIGTERM, waits until it has, and returns its exit code.
    pub async fn stop(mut self) -> Option<i32> {
        self.process.signal("TERM");
        self.exit_code().await
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{} {what}; on stderr: {}", self.name, self.errors.text())
    }
}
