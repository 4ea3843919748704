//! The promises of `cargo xtask services`, kept by the binary itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use xtask::process::{self, Process};

const SOON: Duration = Duration::from_secs(20);

/// A target folder of its own, so that the developer's services stay out of it.
struct Sandbox {
    target: PathBuf,
}

impl Sandbox {
    fn new(name: &str) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&target).expect("a folder");
        Self { target }
    }

    fn xtask(&self, arguments: &[&str]) -> Command {
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask.args(arguments).env("CARGO_TARGET_DIR", &self.target).env_remove("POSTRIDER_TEST_POSTGRES");
        xtask
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.xtask(arguments).output().expect("xtask runs")
    }

    /// What a command that succeeds writes to stdout.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// `services run` of a command that says its server's address and then never ends.
    fn run_for_ever(&self) -> (Child, Server) {
        let script = r#"echo "$POSTRIDER_TEST_POSTGRES"; exec tail -f "$1" >&2"#;
        let marker = self.target.join("marker");
        fs::write(&marker, "").expect("a file");
        let mut run = self.xtask(&["services", "run", "--", "sh", "-c", script, "sh"]);
        let mut run = run.arg(marker).stdout(Stdio::piped()).spawn().expect("xtask runs");
        let mut line = String::new();
        BufReader::new(run.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let server = Server::at(&line);
        (run, server)
    }

    fn command_runs(&self) -> bool {
        let target = self.target.to_string_lossy();
        process::list().iter().any(|it| it.command.starts_with("tail") && it.command.contains(&*target))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.xtask(&["services", "down"]).output();
        let _ = fs::remove_dir_all(&self.target);
    }
}

/// A server as the system sees it.
#[derive(Debug)]
struct Server {
    port: u16,
    process: Process,
    folder: PathBuf,
}

impl Server {
    /// The one whose address stands in `text`.
    fn at(text: &str) -> Self {
        let (_, rest) = text.split_once("postgres://postgres@127.0.0.1:").expect("an address");
        let port: u16 = rest.split_once('/').expect("a database").0.parse().expect("a port");
        let process = process::list()
            .into_iter()
            .find(|process| process.command.contains(&format!(" -p {port} ")))
            .expect("a server on that port");
        let mut words = process.command.split(' ').skip_while(|word| *word != "-D");
        let data = PathBuf::from(words.nth(1).expect("a data folder"));
        Self { port, folder: data.parent().expect("its folder").to_owned(), process }
    }

    fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    fn is_gone(&self) -> bool {
        !self.answers() && !self.folder.exists() && !process::is_running(self.process.pid, &self.folder)
    }
}

#[test]
fn services_come_up_once_and_go_down_without_a_trace() {
    let sandbox = Sandbox::new("up-down");
    assert_eq!(sandbox.answer(&["services", "status"]), "PostgreSQL: not started\n");

    let exports = sandbox.answer(&["services", "up"]);
    assert!(exports.contains("\nexport POSTRIDER_TEST_POSTGRES_BIN=/"), "{exports}");
    let server = Server::at(&exports);
    assert!(server.answers());
    assert!(!server.folder.starts_with(xtask::workspace::root()));
    assert_eq!(sandbox.answer(&["services", "up"]), exports, "what runs is used again");
    let status = sandbox.answer(&["services", "status"]);
    assert!(
        status.contains(&format!("process {}", server.process.pid)) && status.ends_with(": running\n"),
        "{status}"
    );

    sandbox.answer(&["services", "down"]);
    assert!(server.is_gone(), "{server:?}");
    assert_eq!(sandbox.answer(&["services", "status"]), "PostgreSQL: not started\n");
}

#[test]
fn a_service_whose_process_died_is_reported_as_dead_and_replaced() {
    let sandbox = Sandbox::new("dead");
    let dead = Server::at(&sandbox.answer(&["services", "up"]));
    process::signal("KILL", &[dead.process.pid.into()]);
    assert!(process::wait_until(SOON, || !process::is_running(dead.process.pid, &dead.folder)));
    let status = sandbox.answer(&["services", "status"]);
    assert!(status.ends_with(": dead\n"), "{status}");

    let heir = Server::at(&sandbox.answer(&["services", "up"]));
    assert!(heir.answers());
    assert_ne!(heir.folder, dead.folder);
    assert!(!dead.folder.exists());
    sandbox.answer(&["services", "down"]);
    assert!(heir.is_gone(), "{heir:?}");
}

#[test]
fn a_process_that_took_over_the_id_of_a_service_is_not_touched() {
    let sandbox = Sandbox::new("stranger");
    let folder = std::env::temp_dir().join(format!("postrider-stranger-{}", std::process::id()));
    let state = sandbox.target.join("services");
    fs::create_dir_all(&state).expect("a folder");
    let text = format!("pid={}\nport=1\nfolder={}\nbinaries=/none\n", std::process::id(), folder.display());
    fs::write(state.join("postgres"), text).expect("a file");

    assert!(sandbox.answer(&["services", "status"]).ends_with(": dead\n"));
    sandbox.answer(&["services", "down"]);
    assert_eq!(sandbox.answer(&["services", "status"]), "PostgreSQL: not started\n");
}

#[test]
fn a_given_address_is_used_and_nothing_is_started() {
    let sandbox = Sandbox::new("given");
    let given = "postgres://somebody@db.example/test";
    let mut up = sandbox.xtask(&["services", "up"]);
    let up = up.env("POSTRIDER_TEST_POSTGRES", given).output().expect("xtask runs");
    assert!(String::from_utf8_lossy(&up.stdout).contains(given));
    assert_eq!(sandbox.answer(&["services", "status"]), "PostgreSQL: not started\n");
}

#[test]
fn a_command_gets_a_server_that_ends_with_it() {
    let sandbox = Sandbox::new("run");
    let script = r#"echo "$POSTRIDER_TEST_POSTGRES"; "$POSTRIDER_TEST_POSTGRES_BIN/pg_isready" -d "$POSTRIDER_TEST_POSTGRES" && exit 7"#;
    let run = sandbox.output(&["services", "run", "--", "sh", "-c", script]);
    assert_eq!(run.status.code(), Some(7), "the command's own exit code: {run:?}");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let port: u16 = said.split([':', '/']).find_map(|word| word.parse().ok()).expect("a port");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the server is gone with the command");
}

#[test]
fn an_interrupted_command_is_ended_and_its_server_stopped() {
    for signal in ["INT", "TERM"] {
        let sandbox = Sandbox::new(&format!("interrupted-{signal}"));
        let (mut run, server) = sandbox.run_for_ever();
        assert!(server.answers());
        assert!(process::wait_until(SOON, || sandbox.command_runs()));
        process::signal(signal, &[run.id().into()]);
        assert_eq!(run.wait().expect("an end").code(), Some(130));
        assert!(server.is_gone(), "{server:?}");
        assert!(!sandbox.command_runs());
    }
}

#[test]
fn a_server_and_its_command_do_not_outlive_a_killed_xtask() {
    let sandbox = Sandbox::new("killed");
    let (mut run, server) = sandbox.run_for_ever();
    assert!(process::wait_until(SOON, || sandbox.command_runs()));
    run.kill().expect("killed");
    run.wait().expect("an end");
    assert!(process::wait_until(SOON, || server.is_gone()), "{server:?}");
    assert!(process::wait_until(SOON, || !sandbox.command_runs()));
}

#[test]
fn an_unknown_command_prints_the_usage_and_exits_with_2() {
    let sandbox = Sandbox::new("usage");
    for arguments in [&["servces"][..], &[], &["services"], &["test", "--fast"], &["bench", "log", "--slow"]]
    {
        let output = sandbox.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("Usage: cargo xtask"));
    }
    assert!(sandbox.answer(&["help"]).starts_with("Usage: cargo xtask"));
}
