//! Demos at work: their processes, and what they say.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use postrider_testkit::{Folder, PATIENCE, Process};

pub(crate) fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.arg("demo").args(arguments).env("TMPDIR", folder).stdin(Stdio::null());
    command
}

pub(crate) fn postrider(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).env("TMPDIR", folder).output().expect("the binary runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is in a folder.
pub(crate) fn content(folder: &Folder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// A demo at work, that is killed with the test; its relays end with it.
pub(crate) struct Playing {
    process: Process,
    err: ChildStderr,
    /// Its standard output, which a test may close.
    pub(crate) out: Option<BufReader<ChildStdout>>,
    relays: BTreeSet<u32>,
}

impl Playing {
    /// Starts one, and waits until both of its relays are at work.
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Folder, arguments: &[&str]) -> Self {
        let mut command = demo(folder.path(), arguments);
        let mut process = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (mut out, err) = (BufReader::new(process.stdout()), process.stderr());
        let mut playing = Self { process, err, out: None, relays: BTreeSet::new() };
        let mut line = String::new();
        while !line.contains("share the lanes") {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it ended too early");
        }
        playing.out = Some(out);
        playing.relays = children(playing.process.id());
        assert_eq!(playing.relays.len(), 2, "two relays are processes of their own");
        playing
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Its exit code, and what it said on stderr.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let status = self.process.wait().expect("it ends");
        let mut said = String::new();
        self.err.read_to_string(&mut said).expect("text");
        (status.code(), said)
    }

    pub(crate) fn no_relay_is_left(&self) {
        let end = Instant::now() + PATIENCE;
        while let Some(relay) = self.relays.iter().find(|relay| is_alive(**relay)) {
            assert!(Instant::now() < end, "the relay {relay} was left behind");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn processes() -> Vec<(u32, u32, String)> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output().expect("ps");
    let table = text(&output.stdout);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        Some((number()?, number()?, words.next()?.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

fn children(parent: u32) -> BTreeSet<u32> {
    processes().into_iter().filter(|(_, of, _)| *of == parent).map(|(process, ..)| process).collect()
}

/// Whether a process runs; one that has ended and was not collected does not.
fn is_alive(process: u32) -> bool {
    processes().iter().any(|(number, _, state)| *number == process && !state.starts_with('Z'))
}

/// The figures of a row of the summary: of the books, the mail and the warehouse.
pub(crate) fn row(text: &str, name: &str) -> [u64; 3] {
    let summary = text.split("counted in the shop").nth(1).unwrap_or_else(|| panic!("no summary in\n{text}"));
    let line = summary.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line {name:?} in\n{text}"));
    let figures =
        line.trim_start()[name.len()..].split_whitespace().map(|figure| figure.parse().expect("a number"));
    figures.collect::<Vec<u64>>().try_into().expect("three figures")
}
