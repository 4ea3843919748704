//! A relay_process's process, in the hands of a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::ride::{Point, Ride};

/// How long a relay_process may take to say what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A relay_process's process. Dropped, it is killed.
pub struct RelayProcess {
    /// Its name.
    pub name: String,
    child: Child,
    stdin: ChildStdin,
    lines: UnboundedReceiver<String>,
    said: Said,
}

/// What a relay_process wrote to stderr so far; it outlives the relay_process.
#[derive(Debug, Clone, Default)]
pub struct Said(Arc<Mutex<String>>);

impl Said {
    fn add(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RelayProcess {
    /// Starts the program on a ride. It is ready when its relay has begun to work: see [`ready`](Self::ready).
    pub fn start(program: &str, ride: &Ride) -> Self {
        let mut command = Command::new(program);
        command.args(ride.to_arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the relay_process's program runs");
        let stdin = child.stdin.take().expect("its stdin is a pipe");
        let stdout = child.stdout.take().expect("its stdout is a pipe");
        let mut stderr = child.stderr.take().expect("its stderr is a pipe");
        let (told, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        let said = Said::default();
        let saying = said.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                saying.add(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { name: ride.name.clone(), child, stdin, lines, said }
    }

    /// Waits until it says this line; others are passed over.
    pub async fn hear(&mut self, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            match timeout_at(end, self.lines.recv()).await {
                Ok(Some(line)) if line == wanted => return,
                Ok(Some(_)) => {}
                Ok(None) => panic!("{} ended before it said {wanted:?}", self.name),
                Err(_) => panic!("{} did not say {wanted:?} in {PATIENCE:?}", self.name),
            }
        }
    }

    /// Waits until its relay works.
    pub async fn ready(&mut self) {
        self.hear("ready").await;
    }

    /// Waits until it stands still at a point.
    pub async fn stands_at(&mut self, point: Point) {
        self.hear(&format!("at {point}")).await;
    }

    /// Lets it go on from where it stands.
    pub fn go_on(&mut self) {
        writeln!(self.stdin, "go").and_then(|()| self.stdin.flush()).expect("it listens");
    }

    /// What it wrote to stderr so far.
    pub fn said(&self) -> Said {
        self.said.clone()
    }

    /// Sends it a signal: `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        xtask::process::signal(name, &[self.child.id().into()]);
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its state")
    }

    /// Asks it to end, waits until it has, and gives its exit code.
    pub async fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended() {
                return status.code();
            }
            assert!(Instant::now() < end, "{} did not stop in {PATIENCE:?}", self.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
