//! The promises of `cargo xtask services`, kept by the binary itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use xtask::kafka::kit::{self, Kit};
use xtask::kind::Kind;
use xtask::postgres::Cluster;
use xtask::process::{self, Process};

const SOON: Duration = Duration::from_secs(20);

const NOTHING_STARTED: &str =
    "PostgreSQL: not started\nMariaDB: not started\nKafka: not started\nPgBouncer: not started\n";

/// A target folder of its own, so that the developer's services stay out of it.
struct Sandbox {
    target: PathBuf,
}

impl Sandbox {
    fn new(name: &str) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(target.join("services")).expect("a folder");
        // Kafka is fetched into the target folder: once is enough.
        Kit::ready().expect("Kafka");
        let fetched = kit::folder();
        symlink(&fetched, target.join("services").join(fetched.file_name().expect("a name")))
            .expect("a link");
        Self { target }
    }

    fn xtask(&self, arguments: &[&str]) -> Command {
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask.args(arguments).env("CARGO_TARGET_DIR", &self.target);
        for kind in Kind::ALL {
            xtask.env_remove(kind.variable());
        }
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

    /// `services run` of a command that says its servers' addresses and then never ends.
    fn run_for_ever(&self) -> (Child, Servers) {
        let script = r#"echo "$POSTRIDER_TEST_POSTGRES $POSTRIDER_TEST_MYSQL POSTRIDER_TEST_KAFKA=$POSTRIDER_TEST_KAFKA POSTRIDER_TEST_PGBOUNCER=$POSTRIDER_TEST_PGBOUNCER"; exec tail -f "$1" >&2"#;
        let marker = self.target.join("marker");
        fs::write(&marker, "").expect("a file");
        let mut run = self.xtask(&["services", "run", "--", "sh", "-c", script, "sh"]);
        let mut run = run.arg(marker).stdout(Stdio::piped()).spawn().expect("xtask runs");
        let mut line = String::new();
        BufReader::new(run.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let servers = Servers::at(&line);
        (run, servers)
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
    /// The PostgreSQL whose address stands in `text`.
    fn postgres_at(text: &str) -> Self {
        let port = number_after(text, "postgres://postgres@127.0.0.1:");
        let process = find(&format!(" -p {port} "));
        let mut words = process.command.split(' ').skip_while(|word| *word != "-D");
        let data = PathBuf::from(words.nth(1).expect("a data folder"));
        Self { port, folder: data.parent().expect("its folder").to_owned(), process }
    }

    /// The MariaDB whose address stands in `text`.
    fn mysql_at(text: &str) -> Self {
        let port = number_after(text, "mysql://root@127.0.0.1:");
        let process = find(&format!(" --port={port} "));
        let mut words = process.command.split(' ').filter_map(|word| word.strip_prefix("--datadir="));
        let data = PathBuf::from(words.next().expect("a data folder"));
        Self { port, folder: data.parent().expect("its folder").to_owned(), process }
    }

    /// The broker whose address stands in `text`.
    fn kafka_at(text: &str) -> Self {
        let port = number_after(text, "POSTRIDER_TEST_KAFKA=127.0.0.1:");
        let listens = format!("\nlisteners=PLAINTEXT://127.0.0.1:{port},");
        let mut brokers =
            process::list().into_iter().filter(|process| process.command.contains(" kafka.Kafka "));
        let found = brokers.find_map(|process| {
            let properties = PathBuf::from(process.command.trim_end().rsplit(' ').next()?);
            let is_it = fs::read_to_string(&properties).is_ok_and(|text| text.contains(&listens));
            is_it.then(|| Self { port, folder: properties.parent().expect("its folder").to_owned(), process })
        });
        found.expect("a broker on that port")
    }

    /// The pooler whose address stands in `text`.
    fn pgbouncer_at(text: &str) -> Self {
        let port = number_after(text, "POSTRIDER_TEST_PGBOUNCER=postgres://postgres@127.0.0.1:");
        let listens = format!("\nlisten_port = {port}\n");
        let found = process::list().into_iter().find_map(|process| {
            let settings = PathBuf::from(process.command.trim_end().rsplit(' ').next()?);
            let is_it = settings.ends_with("pgbouncer.ini")
                && fs::read_to_string(&settings).is_ok_and(|text| text.contains(&listens));
            is_it.then(|| Self { port, folder: settings.parent().expect("its folder").to_owned(), process })
        });
        found.expect("a pooler on that port")
    }

    fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// Whether nothing is left of it. What answers on its port by now may be somebody else's server.
    fn is_gone(&self) -> bool {
        !self.folder.exists() && !process::is_running(self.process.pid, &self.folder)
    }
}

/// One server of each kind.
#[derive(Debug)]
struct Servers([Server; 4]);

impl Servers {
    /// Those whose addresses stand in `text`.
    fn at(text: &str) -> Self {
        Self([
            Server::postgres_at(text),
            Server::mysql_at(text),
            Server::kafka_at(text),
            Server::pgbouncer_at(text),
        ])
    }

    fn answer(&self) -> bool {
        self.0.iter().all(Server::answers)
    }

    fn are_gone(&self) -> bool {
        self.0.iter().all(Server::is_gone)
    }
}

fn number_after(text: &str, prefix: &str) -> u16 {
    let (_, rest) = text.split_once(prefix).expect("an address");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a port")
}

fn find(part_of_its_command: &str) -> Process {
    let mut processes = process::list().into_iter();
    processes.find(|process| process.command.contains(part_of_its_command)).expect("a server")
}

#[test]
fn services_come_up_once_and_go_down_without_a_trace() {
    let sandbox = Sandbox::new("up-down");
    assert_eq!(sandbox.answer(&["services", "status"]), NOTHING_STARTED);

    let exports = sandbox.answer(&["services", "up"]);
    assert!(exports.contains("\nexport POSTRIDER_TEST_POSTGRES_BIN=/"), "{exports}");
    assert!(exports.contains("\nexport POSTRIDER_TEST_KAFKA=127.0.0.1:"), "{exports}");
    let servers = Servers::at(&exports);
    assert!(servers.answer());
    assert!(!servers.0.iter().any(|server| server.folder.starts_with(xtask::workspace::root())));
    assert_eq!(sandbox.answer(&["services", "up"]), exports, "what runs is used again");
    let status = sandbox.answer(&["services", "status"]);
    for (line, server) in status.lines().zip(&servers.0) {
        let process = format!("process {}", server.process.pid);
        assert!(line.contains(&process) && line.ends_with(": running"), "{status}");
    }

    sandbox.answer(&["services", "down"]);
    assert!(process::wait_until(SOON, || servers.are_gone()), "{servers:?}");
    assert_eq!(sandbox.answer(&["services", "status"]), NOTHING_STARTED);
}

#[test]
fn services_come_up_without_kafka_when_asked_to() {
    let sandbox = Sandbox::new("without");
    let exports = sandbox.answer(&["services", "up", "--no-kafka"]);
    assert!(!exports.contains("POSTRIDER_TEST_KAFKA"), "{exports}");
    let status = sandbox.answer(&["services", "status"]);
    assert!(
        status.matches(": running\n").count() == 3 && status.contains("Kafka: not started\n"),
        "{status}"
    );

    let script = r#"echo "<$POSTRIDER_TEST_POSTGRES$POSTRIDER_TEST_KAFKA>""#;
    let said = sandbox.answer(&["services", "run", "--no-kafka", "--", "sh", "-c", script]);
    assert!(said.ends_with("/postgres>\n"), "{said}");
}

#[test]
fn a_service_whose_process_died_is_reported_as_dead_and_replaced() {
    let sandbox = Sandbox::new("dead");
    let dead = Servers::at(&sandbox.answer(&["services", "up"]));
    for server in &dead.0 {
        process::signal("KILL", &[server.process.pid.into()]);
        assert!(process::wait_until(SOON, || !process::is_running(server.process.pid, &server.folder)));
    }
    let status = sandbox.answer(&["services", "status"]);
    assert!(status.lines().all(|line| line.ends_with(": dead")), "{status}");

    let heirs = Servers::at(&sandbox.answer(&["services", "up"]));
    assert!(heirs.answer());
    for (heir, dead) in heirs.0.iter().zip(&dead.0) {
        assert_ne!(heir.folder, dead.folder);
        assert!(!dead.folder.exists());
    }
    sandbox.answer(&["services", "down"]);
    assert!(process::wait_until(SOON, || heirs.are_gone()), "{heirs:?}");
}

#[test]
fn a_process_that_took_over_the_id_of_a_service_is_not_touched() {
    let sandbox = Sandbox::new("stranger");
    let state = sandbox.target.join("services");
    for name in ["postgres", "mysql", "kafka", "pgbouncer"] {
        let folder = std::env::temp_dir().join(format!("postrider-stranger-{name}-{}", std::process::id()));
        let text = format!("pid={}\nport=1\nfolder={}\n", std::process::id(), folder.display());
        fs::write(state.join(name), text).expect("a file");
    }

    let status = sandbox.answer(&["services", "status"]);
    assert!(status.lines().all(|line| line.ends_with(": dead")), "{status}");
    sandbox.answer(&["services", "down"]);
    assert_eq!(sandbox.answer(&["services", "status"]), NOTHING_STARTED);
}

#[test]
fn a_given_address_is_used_and_nothing_is_started() {
    let sandbox = Sandbox::new("given");
    let (postgres, kafka) = ("postgres://somebody@db.example/test", "kafka.example:9092");
    let (mysql, pooler) = ("mysql://somebody@db.example/test", "postgres://somebody@pooler.example/test");
    let mut up = sandbox.xtask(&["services", "up"]);
    up.env("POSTRIDER_TEST_POSTGRES", postgres).env("POSTRIDER_TEST_KAFKA", kafka);
    up.env("POSTRIDER_TEST_MYSQL", mysql).env("POSTRIDER_TEST_PGBOUNCER", pooler);
    let up = up.output().expect("xtask runs");
    let exports = String::from_utf8_lossy(&up.stdout);
    assert!([postgres, mysql, kafka, pooler].iter().all(|address| exports.contains(address)), "{exports}");
    assert_eq!(sandbox.answer(&["services", "status"]), NOTHING_STARTED);
}

#[test]
fn a_pooler_is_in_front_of_the_postgresql_that_the_tests_get() {
    let sandbox = Sandbox::new("pooler");
    // The port of the PostgreSQL that a pooler at the address in `exports` leads to.
    let behind = |exports: &str| {
        let folder = Server::pgbouncer_at(exports).folder;
        let settings = fs::read_to_string(folder.join("pgbouncer.ini")).expect("its settings");
        number_after(&settings, "* = host=127.0.0.1 port=")
    };
    let first = sandbox.answer(&["services", "up", "--no-kafka"]);
    let own = Server::postgres_at(&first);
    assert_eq!(behind(&first), own.port);

    // Another PostgreSQL is named, in a shell that has the variables of the first run.
    let other = Cluster::create(&[]).expect("a PostgreSQL");
    let pooler = format!(
        "postgres://postgres@127.0.0.1:{}/postgres",
        number_after(&first, "POSTRIDER_TEST_PGBOUNCER=postgres://postgres@127.0.0.1:")
    );
    let mut up = sandbox.xtask(&["services", "up", "--no-kafka"]);
    up.env("POSTRIDER_TEST_POSTGRES", other.url("postgres")).env("POSTRIDER_TEST_PGBOUNCER", pooler);
    let up = up.output().expect("xtask runs");
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    assert_eq!(behind(&String::from_utf8_lossy(&up.stdout)), other.port());

    // It is not named any more, and the first one still runs.
    let script = r#""$POSTRIDER_TEST_POSTGRES_BIN/psql" -qAt -c "show port" "$POSTRIDER_TEST_PGBOUNCER""#;
    let said = sandbox.answer(&["services", "run", "--no-kafka", "--", "sh", "-c", script]);
    assert_eq!(said.trim(), own.port.to_string(), "the pooler of one command");
    let again = sandbox.answer(&["services", "up", "--no-kafka"]);
    assert_eq!(Server::postgres_at(&again).port, own.port);
    assert_eq!(behind(&again), own.port, "the pooler that stays");
}

#[test]
fn a_command_gets_servers_that_end_with_it() {
    let sandbox = Sandbox::new("run");
    let script = r#"
        echo "$POSTRIDER_TEST_POSTGRES $POSTRIDER_TEST_MYSQL POSTRIDER_TEST_KAFKA=$POSTRIDER_TEST_KAFKA"
        echo "POSTRIDER_TEST_PGBOUNCER=$POSTRIDER_TEST_PGBOUNCER"
        "$POSTRIDER_TEST_POSTGRES_BIN/psql" -qAt -c "select 'behind'" "$POSTRIDER_TEST_PGBOUNCER"
        "$POSTRIDER_TEST_POSTGRES_BIN/pg_isready" -d "$POSTRIDER_TEST_POSTGRES" && exit 7
    "#;
    let run = sandbox.output(&["services", "run", "--", "sh", "-c", script]);
    assert_eq!(run.status.code(), Some(7), "the command's own exit code: {run:?}");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains("\nbehind\n"), "PgBouncer passes on to PostgreSQL: {said}");
    for prefix in [
        "postgres://postgres@127.0.0.1:",
        "mysql://root@127.0.0.1:",
        "POSTRIDER_TEST_KAFKA=127.0.0.1:",
        "POSTRIDER_TEST_PGBOUNCER=postgres://postgres@127.0.0.1:",
    ] {
        let port = number_after(&said, prefix);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the server is gone with the command");
    }
}

#[test]
fn an_interrupted_command_is_ended_and_its_servers_stopped() {
    for signal in ["INT", "TERM"] {
        let sandbox = Sandbox::new(&format!("interrupted-{signal}"));
        let (mut run, servers) = sandbox.run_for_ever();
        assert!(servers.answer());
        assert!(process::wait_until(SOON, || sandbox.command_runs()));
        process::signal(signal, &[run.id().into()]);
        assert_eq!(run.wait().expect("an end").code(), Some(130));
        assert!(process::wait_until(SOON, || servers.are_gone()), "{servers:?}");
        assert!(!sandbox.command_runs());
    }
}

#[test]
fn servers_and_their_command_do_not_outlive_a_killed_xtask() {
    let sandbox = Sandbox::new("killed");
    let (mut run, servers) = sandbox.run_for_ever();
    assert!(process::wait_until(SOON, || sandbox.command_runs()));
    run.kill().expect("killed");
    run.wait().expect("an end");
    assert!(process::wait_until(SOON, || servers.are_gone()), "{servers:?}");
    assert!(process::wait_until(SOON, || !sandbox.command_runs()));
}

#[test]
fn an_unknown_command_prints_the_usage_and_exits_with_2() {
    let sandbox = Sandbox::new("usage");
    for arguments in [
        &["servces"][..],
        &[],
        &["services"],
        &["services", "up", "--no-services"],
        &["services", "run", "--no-kafka", "true"],
        &["test", "--fast"],
        &["ci", "--no-kafka", "--", "-p", "xtask"],
        &["bench", "log", "--slow"],
    ] {
        let output = sandbox.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("Usage: cargo xtask"));
    }
    assert!(sandbox.answer(&["help"]).starts_with("Usage: cargo xtask"));
}
