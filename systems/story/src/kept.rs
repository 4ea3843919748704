//! A story that was told with `--keep`, for the tests of what somebody can do afterwards.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};

use postrider_testkit::Process;

/// A system that its story left running. It is killed when this is dropped.
#[derive(Debug)]
pub struct Kept {
    process: Process,
    lines: Vec<String>,
    /// Open, so that the story can go on writing.
    _stdout: BufReader<ChildStdout>,
}

impl Kept {
    /// Tells the story of a program, and reads what it says until the address that it prints last.
    pub fn tell(program: &str, last: &str) -> Self {
        let mut command = Command::new(program);
        let mut process = Process::start(command.args(["story", "--keep"]).stdout(Stdio::piped()));
        let (mut stdout, mut lines) = (BufReader::new(process.stdout()), Vec::new());
        let last = format!("  {last}: ");
        for line in BufRead::lines(&mut stdout).map_while(Result::ok) {
            let is_last = line.starts_with(&last);
            lines.push(line);
            if is_last {
                break;
            }
        }
        Self { process, lines, _stdout: stdout }
    }

    /// All that it said.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// An address, or a command, that it printed for whoever looks around.
    pub fn address(&self, what: &str) -> &str {
        let start = format!("  {what}: ");
        let found = self.lines.iter().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{what} is missing: {}", self.text()))
    }

    /// Runs a command that it printed, as somebody does who copies the line: what the command said. It must succeed.
    pub fn run(&self, what: &str) -> String {
        let line = self.address(what);
        let output = Command::new("sh").args(["-c", line]).output();
        let output = output.unwrap_or_else(|error| panic!("there is no shell: {error}"));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        said
    }

    /// Asks it to end, as an operator or a service manager does: its exit code.
    pub fn end(mut self) -> Option<i32> {
        self.process.signal("TERM");
        self.process.wait().and_then(|status| status.code())
    }
}
