//! A database of its own, relays in processes of their own, and a server that hears what they say.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postrider_testkit::postgres::Database;
use postrider_testkit::{Folder, Logged, PATIENCE};
use sqlx::PgPool;

use crate::ear::Ear;

/// What must never be seen.
pub(crate) const SECRETS: [&str; 4] = ["planted-hook", "planted-key", "planted-token", "planted-payload"];

/// A database of its own on the server of the tests, and a folder; both go away.
pub(crate) struct Fixture {
    pub(crate) ear: Ear,
    pub(crate) pool: PgPool,
    folder: Folder,
    url: String,
    _database: Database,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await;
        let url = database.url();
        let pool = PgPool::connect(&url).await.expect("connected");
        let fixture = Self { ear: Ear::open().await, pool, folder: Folder::new(), url, _database: database };
        let (code, said) = fixture.run(&["migrate"]).await;
        assert_eq!(code, Some(0), "{said}");
        fixture
    }

    /// The settings: a subscription to an endpoint, people to be told, and these alerts.
    pub(crate) fn settings(&self, alerts: &str) {
        let mut text = String::new();
        writeln!(
            text,
            "[relay]\nlease = \"2s\"\nalerts_every = \"1s\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"mail\"\nsink = \"mail\"\norder = \"none\"\n\
             retry = {{ every = \"200ms\", max_attempts = 100000 }}\n\
             [sink.mail]\ntype = \"http\"\nurl = \"{}\"\nformat = \"structured\"\n\
             statuses = {{ 422 = \"reject\", 503 = \"retry\" }}\n\
             [notify.slack]\ntype = \"slack\"\nurl = \"{}\"\n\
             [notify.pager]\ntype = \"pagerduty\"\nurl = \"{}\"\nkey = \"planted-key\"\n\
             [notify.own]\ntype = \"webhook\"\nurl = \"{}\"\ntoken = \"planted-token\"\n{alerts}",
            self.ear.url("/mail"),
            self.ear.url("/planted-hook"),
            self.ear.url("/pager"),
            self.ear.url("/own"),
        )
        .expect("text");
        std::fs::write(self.config(), text).expect("the settings");
    }

    /// A database in a file: its path and its address.
    pub(crate) fn file(&self, name: &str) -> (String, String) {
        let path = self.folder.path().join(name).display().to_string();
        let url = format!("sqlite:{path}");
        (path, url)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("p.toml")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", &self.url).stdin(Stdio::null());
        if self.config().exists() {
            command.env("POSTRIDER_CONFIG", self.config());
        }
        command
    }

    /// Runs a command to its end: its exit code, and what it said.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command(arguments);
        let output =
            tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("run");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{text}");
        assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "a secret is shown: {text}");
        (output.status.code(), text.into_owned())
    }

    /// Starts `postrider relay`, or another command that stays.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = self.command(arguments);
        command.args(["--set", &format!("relay.name={name}")]);
        Process { name: name.to_owned(), logged: Logged::start(&mut command, self.folder.path(), name) }
    }

    /// Records events in one transaction, each of an aggregate of its own; their ids.
    pub(crate) async fn record(&self, many: i32) -> Vec<String> {
        let sql = "select postrider.record('orders', 'OrderPaid', 'Order', n::text, '{\"secret\": \"planted-payload\"}')::text \
                   from generate_series(1, $1) as n";
        sqlx::query_scalar(sql).bind(many).fetch_all(&self.pool).await.expect("recorded")
    }

    /// Who speaks now.
    pub(crate) async fn speaker(&self) -> Option<String> {
        let sql = "select owner from postrider.duty where name = 'alerts' and lease_until > now()";
        let owner: Option<Option<String>> =
            sqlx::query_scalar(sql).fetch_optional(&self.pool).await.expect("asked");
        owner.flatten()
    }

    /// Waits until the alerts were looked after so many times more.
    pub(crate) async fn rounds(&self, many: u32) {
        let sql = "select lease_until::text from postrider.duty where name = 'alerts'";
        let mut last = String::new();
        // The first may have begun before.
        for _ in 0..=many {
            let end = Instant::now() + PATIENCE;
            loop {
                let until: Option<String> =
                    sqlx::query_scalar(sql).fetch_optional(&self.pool).await.expect("asked");
                match until {
                    Some(until) if until != last => {
                        last = until;
                        break;
                    }
                    _ => {}
                }
                assert!(Instant::now() < end, "nobody looks after alerts");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    pub(crate) async fn end(self) {
        self.pool.close().await;
    }
}

/// A command in a process of its own; it is killed with the test.
pub(crate) struct Process {
    pub(crate) name: String,
    logged: Logged,
}

impl Process {
    /// What it said; no secret is ever in it.
    pub(crate) fn log(&self) -> String {
        let log = self.logged.log();
        assert!(!SECRETS.iter().any(|secret| log.contains(secret)), "a secret is shown: {log}");
        log
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.logged.signal(signal);
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self) {
        self.signal("TERM");
        let code = self.logged.exit_code();
        assert_eq!(code, Some(0), "{}", self.log());
    }
}
