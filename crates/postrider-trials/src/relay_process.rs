//! A relay in a process of its own, in the hands of a test.

use std::io::Write;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};

use postrider_testkit::Program;
pub use postrider_testkit::program::Errors;

use crate::relay_options::{Point, RelayOptions};

/// A relay in a process of its own. Dropped, it is killed.
pub struct RelayProcess {
    /// Its name.
    pub name: String,
    program: Program,
    stdin: ChildStdin,
}

impl RelayProcess {
    /// Starts the program with these options. It is ready when its relay has begun to work: see [`ready`](Self::ready).
    pub fn start(program: &str, options: &RelayOptions) -> Self {
        let mut command = Command::new(program);
        command.args(options.to_arguments()).stdin(Stdio::piped());
        let mut program = Program::start(&options.name, &mut command);
        let stdin = program.process.stdin();
        Self { name: options.name.clone(), program, stdin }
    }

    /// Waits until it says this line; others are passed over.
    pub async fn hear(&mut self, wanted: &str) {
        while !self.program.line(wanted).await.is_empty() {}
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
    pub fn errors(&self) -> Errors {
        self.program.errors()
    }

    /// Sends it a signal: `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        self.program.process.signal(name);
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        self.program.process.kill();
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.program.process.ended()
    }

    /// Asks it to end, waits until it has, and gives its exit code.
    pub async fn stop(self) -> Option<i32> {
        self.program.stop().await
    }
}
