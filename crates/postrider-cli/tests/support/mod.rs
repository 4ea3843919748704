//! What the tests of the binary share: a database and a folder that go away, the binary as a child process, a relay.

#![allow(dead_code, unreachable_pub)]

pub mod log;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgPool};

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The server of the tests.
pub fn server() -> String {
    std::env::var("POSTRIDER_TEST_POSTGRES")
        .expect("POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask test`")
}

/// A database of its own on the server of the tests; it goes away, also when the test fails.
pub struct Database {
    name: String,
    /// Its address.
    pub url: String,
}

impl Database {
    pub async fn new() -> Self {
        let name = format!("cli_{}", postrider::Uuid::new_v4().simple());
        execute(format!("create database {name}")).await;
        let server = server();
        let (base, _) = server.rsplit_once('/').expect("an address with a database");
        let url = format!("{base}/{name}");
        Self { name, url }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("drop database {} with (force)", self.name);
        // A runtime of its own: this one may be ending.
        let dropping = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(execute(drop));
        });
        let _ = dropping.join();
    }
}

/// Runs a statement on the server of the tests.
pub async fn execute(statement: String) {
    let pool = PgPool::connect(&server()).await.expect("the server of the tests");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&pool).await.expect("executed");
    pool.close().await;
}

/// A folder that goes away.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("postrider-{}", postrider::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    /// Writes a file into it.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The binary, with nothing in its environment but the address of a database.
pub fn postrider(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", url).stdin(Stdio::null());
    command
}

/// A database and a folder; both go away.
pub struct Fixture {
    pub folder: Folder,
    pub pool: PgPool,
    pub url: String,
    database: Database,
}

impl Fixture {
    pub async fn new() -> Self {
        let database = Database::new().await;
        let url = database.url.clone();
        let pool = PgPool::connect(&url).await.expect("connected");
        Self { folder: Folder::new(), pool, url, database }
    }

    /// Runs a command to its end: its exit code, and what it said.
    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = postrider(&self.url, arguments).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{text}");
        (output.status.code(), text.into_owned())
    }

    /// Starts a relay to stdout, which is a file.
    pub fn relay(&self, name: &str) -> RelayProcess {
        RelayProcess::start(&self.folder.0, &self.url, name)
    }

    /// Records events, as any language does.
    pub async fn record(&self, from: u32, to: u32) {
        for number in from..to {
            let sql = "select postrider.record('orders', 'OrderPaid', 'Order', $1, $2::json)";
            let query = sqlx::query(sql).bind((number % 7).to_string());
            query.bind(format!("{{\"number\": {number}}}")).execute(&self.pool).await.expect("recorded");
        }
    }
}

/// A relay in a process of its own; it is killed with the test.
pub struct RelayProcess {
    process: Child,
    out: PathBuf,
    log: PathBuf,
}

impl RelayProcess {
    /// A relay with one subscription, `out`, to its standard output.
    pub fn start(folder: &Path, url: &str, name: &str) -> Self {
        let text = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\nbatch = 50\n[sink.out]\ntype = \"stdout\"\n";
        Self::with(folder, url, name, text)
    }

    /// A relay with these settings.
    pub fn with(folder: &Path, url: &str, name: &str, settings: &str) -> Self {
        Self::by(Command::new(env!("CARGO_BIN_EXE_postrider")), folder, url, name, settings)
    }

    /// A relay that is started in a folder and told of no settings.
    pub fn in_folder(folder: &Path, url: &str, name: &str) -> Self {
        let (out, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("relay").current_dir(folder).env_clear().env("POSTRIDER_STORE_URL", url);
        command.stdout(std::fs::File::create(&out).expect("a file")).stdin(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a file"));
        Self { process: command.spawn().expect("it starts"), out, log }
    }

    /// The same, ignoring SIGHUP from the start or not, whatever the tests themselves do.
    pub fn hung_up(ignores: bool, folder: &Path, url: &str, name: &str, settings: &str) -> Self {
        let mut command = Command::new("/usr/bin/env");
        command.arg(if ignores { "--ignore-signal=HUP" } else { "--default-signal=HUP" });
        command.arg(env!("CARGO_BIN_EXE_postrider"));
        Self::by(command, folder, url, name, settings)
    }

    fn by(mut command: Command, folder: &Path, url: &str, name: &str, settings: &str) -> Self {
        let config = folder.join(format!("{name}.toml"));
        std::fs::write(&config, settings).expect("the settings");
        let (out, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", url);
        command.stdout(std::fs::File::create(&out).expect("a file")).stdin(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a file"));
        Self { process: command.spawn().expect("it starts"), out, log }
    }

    /// A relay to its standard output that says all there is to say after its reader has gone away.
    pub fn unheard(folder: &Path, url: &str) -> Self {
        let text = "[log]\nlevel = \"trace\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
        let config = folder.join("unheard.toml");
        std::fs::write(&config, text).expect("the settings");
        let (out, log) = (folder.join("unheard.out"), folder.join("unheard.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", url);
        command.stdout(std::fs::File::create(&out).expect("a file")).stdin(Stdio::null());
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it starts");
        drop(process.stderr.take());
        Self { process, out, log }
    }

    /// What it wrote: key and number of each event.
    pub fn lines(&self) -> Vec<(String, u64)> {
        let text = std::fs::read_to_string(&self.out).unwrap_or_default();
        // A process that was killed may have left half a line.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| {
                let event: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
                assert_eq!(event["specversion"], "1.0", "{line}");
                let key = event["subject"].as_str().expect("a key").to_owned();
                (key, event["data"]["number"].as_u64().expect("a number"))
            })
            .collect()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// The most memory that it ever had resident, in megabytes.
    pub fn most_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))
            .expect("a process on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
        line.trim().trim_end_matches("kB").trim().parse::<f64>().expect("a number") * 1024.0 / 1e6
    }

    pub fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().expect("a process") {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The address that its endpoints answer on.
    pub fn address(&self) -> Option<String> {
        let log = self.log();
        let rest = log.split("address=").nth(1)?;
        Some(rest.split_whitespace().next()?.to_owned())
    }

    pub fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address()?).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until something has come to pass.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
