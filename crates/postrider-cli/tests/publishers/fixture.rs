//! A database of a test's own, publishers beside it and a relay on it; all of it goes away, however the test ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use postrider_testkit::postgres::{Database, execute};
use postrider_testkit::{Folder, Logged};
use sqlx::{Connection, PgConnection};

const PATIENCE: Duration = Duration::from_secs(120);

/// An event as it arrived: its order, its payment, and which attempt it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IncomingEvent {
    pub(crate) order: u64,
    pub(crate) payment: u64,
    pub(crate) attempt: u64,
}

impl IncomingEvent {
    /// What a CloudEvent's data says.
    pub(crate) fn of(data: &serde_json::Value) -> Self {
        let number = |name: &str| data[name].as_u64().unwrap_or_else(|| panic!("no {name} in {data}"));
        Self { order: number("order"), payment: number("payment"), attempt: number("attempt") }
    }
}

/// A folder, and a database on the server of the tests.
pub(crate) struct Fixture {
    pub(crate) folder: Folder,
    pub(crate) url: String,
    _database: Option<Database>,
}

impl Fixture {
    /// On PostgreSQL, with the schema and the shop's table.
    pub(crate) async fn postgres() -> Self {
        let database = Database::new().await;
        let (url, options) = (database.url(), database.options());
        let fixture = Self { folder: Folder::new(), url, _database: Some(database) };
        fixture.migrate();
        let shop = std::fs::read_to_string(example("shop.sql")).expect("the shop's table");
        execute(&options, shop).await;
        fixture
    }

    /// On SQLite, with the schema.
    pub(crate) fn sqlite() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", folder.path().join("shop.db").display());
        let fixture = Self { folder, url, _database: None };
        fixture.migrate();
        fixture
    }

    fn migrate(&self) {
        let mut migrate = Command::new(env!("CARGO_BIN_EXE_postrider"));
        let output = migrate.args(["migrate", "--store", &self.url]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts a relay to that sink, as the settings file has it.
    pub(crate) fn relay(&self, sink: &str) -> Running {
        let config = self.folder.path().join("postrider.toml");
        let text = format!(
            "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"shop\"\nsink = \"to\"\nbatch = 50\n[sink.to]\n{sink}\n"
        );
        std::fs::write(&config, text).expect("the settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        Running::start(command, self.folder.path(), "relay")
    }

    /// The address of the database as Java's drivers have it.
    pub(crate) fn jdbc(&self) -> String {
        let url = reqwest::Url::parse(&self.url).expect("an address");
        let (host, port) = (url.host_str().expect("a host"), url.port().unwrap_or(5432));
        let password = url.password().map(|password| format!("&password={password}")).unwrap_or_default();
        format!("jdbc:postgresql://{host}:{port}{}?user={}{password}", url.path(), url.username())
    }

    /// Starts a publisher.
    pub(crate) fn publisher(&self, name: &str, mut command: Command) -> Running {
        // Java has addresses of its own.
        if !command.get_envs().any(|(variable, _)| variable == "DATABASE_URL") {
            command.env("DATABASE_URL", &self.url);
        }
        Running::start(command, self.folder.path(), name)
    }

    /// How many payments each order has: what was committed, in the shop's own words.
    pub(crate) async fn payments(&self) -> Vec<(u64, u64)> {
        let sql = "select id::bigint, payments::bigint from orders order by id";
        let mut connection = PgConnection::connect(&self.url).await.expect("connected");
        let rows: Vec<(i64, i64)> = sqlx::query_as(sql).fetch_all(&mut connection).await.expect("the orders");
        rows.into_iter().map(|(id, payments)| (id as u64, payments as u64)).collect()
    }
}

/// A file of the examples that the documents quote.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/publishers").join(path)
}

/// A process that is killed with the test. What it writes goes to files.
pub(crate) struct Running(Logged);

impl Running {
    fn start(mut command: Command, folder: &Path, name: &str) -> Self {
        Self(Logged::start(&mut command, folder, name))
    }

    /// What it wrote so far.
    pub(crate) fn out(&self) -> String {
        self.0.out()
    }

    /// Waits until it has ended well; what it said.
    pub(crate) fn ended(&mut self) -> String {
        let code = self.0.exit_code();
        let said = self.said();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    pub(crate) fn said(&self) -> String {
        self.0.log()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.0.signal("TERM");
        self.ended();
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
