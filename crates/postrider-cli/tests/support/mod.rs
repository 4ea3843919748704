//! What the tests of the binary share: a database and a folder that go away, the binary as a child process, a relay.

#![allow(dead_code, unreachable_pub)]

pub mod log;

use std::path::Path;
use std::process::{Command, Stdio};

pub use postrider_testkit::postgres::Database;
pub use postrider_testkit::{Folder, until_true};
use postrider_testkit::{Logged, http};
use sqlx::PgPool;

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
        let url = database.url();
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
        RelayProcess::start(self.folder.path(), &self.url, name)
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
pub struct RelayProcess(Logged);

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("relay").current_dir(folder).env_clear().env("POSTRIDER_STORE_URL", url);
        Self(Logged::start(&mut command, folder, name))
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
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", url);
        Self(Logged::start(&mut command, folder, name))
    }

    /// A relay to its standard output that says all there is to say after its reader has gone away.
    pub fn unheard(folder: &Path, url: &str) -> Self {
        let text = "[log]\nlevel = \"trace\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
        let config = folder.join("unheard.toml");
        std::fs::write(&config, text).expect("the settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", url);
        Self(Logged::start_unheard(&mut command, folder, "unheard"))
    }

    /// What it wrote: key and number of each event.
    pub fn lines(&self) -> Vec<(String, u64)> {
        let text = self.0.out();
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
        self.0.log()
    }

    pub fn signal(&self, signal: &str) {
        self.0.signal(signal);
    }

    /// The most memory that it ever had resident, in megabytes.
    pub fn most_memory(&self) -> f64 {
        self.0.process.most_memory()
    }

    /// Waits until it has ended, and returns its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.0.exit_code()
    }

    /// The address that its endpoints answer on.
    pub fn address(&self) -> Option<String> {
        let log = self.log();
        let rest = log.split("address=").nth(1)?;
        Some(rest.split_whitespace().next()?.to_owned())
    }

    pub fn get(&self, path: &str) -> Option<String> {
        http::get(&self.address()?, path)
    }
}
