//! A database of a test's own, publishers beside it and a relay on it; all of it goes away, however the test ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

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
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    database: Option<(String, String)>,
}

impl Fixture {
    /// On PostgreSQL, with the schema and the shop's table.
    pub(crate) async fn postgres() -> Self {
        let server = std::env::var("POSTRIDER_TEST_POSTGRES")
            .expect("POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask test`");
        let name = format!("publishers_{}", postrider::Uuid::new_v4().simple());
        execute(&server, format!("create database {name}")).await;
        let (base, _) = server.rsplit_once('/').expect("an address with a database");
        let (url, folder) = (format!("{base}/{name}"), folder(&name));
        let ground = Self { folder, url, database: Some((server, name)) };
        ground.migrate();
        let shop = std::fs::read_to_string(example("shop.sql")).expect("the shop's table");
        execute(&ground.url, shop).await;
        ground
    }

    /// On SQLite, with the schema.
    pub(crate) fn sqlite() -> Self {
        let folder = folder(&format!("publishers_{}", postrider::Uuid::new_v4().simple()));
        let url = format!("sqlite:{}", folder.join("shop.db").display());
        let ground = Self { folder, url, database: None };
        ground.migrate();
        ground
    }

    fn migrate(&self) {
        let mut migrate = Command::new(env!("CARGO_BIN_EXE_postrider"));
        let output = migrate.args(["migrate", "--store", &self.url]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts a relay to that sink, as the settings file has it.
    pub(crate) fn relay(&self, sink: &str) -> Running {
        let config = self.folder.join("postrider.toml");
        let text = format!(
            "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"shop\"\nsink = \"to\"\nbatch = 50\n[sink.to]\n{sink}\n"
        );
        std::fs::write(&config, text).expect("the settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        Running::start(command, &self.folder, "relay")
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
        Running::start(command, &self.folder, name)
    }

    /// How many payments each order has: what was committed, in the shop's own words.
    pub(crate) async fn payments(&self) -> Vec<(u64, u64)> {
        let sql = "select id::bigint, payments::bigint from orders order by id";
        let mut connection = PgConnection::connect(&self.url).await.expect("connected");
        let rows: Vec<(i64, i64)> = sqlx::query_as(sql).fetch_all(&mut connection).await.expect("the orders");
        rows.into_iter().map(|(id, payments)| (id as u64, payments as u64)).collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        let Some((server, name)) = self.database.take() else { return };
        // A runtime of its own: the test's may be ending.
        let dropping = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(execute(&server, format!("drop database if exists {name} with (force)")));
        });
        let _ = dropping.join();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

/// A file of the examples that the documents quote.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/publishers").join(path)
}

async fn execute(url: &str, sql: String) {
    let mut connection = PgConnection::connect(url).await.expect("the server of the tests");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("executed");
    connection.close().await.expect("closed");
}

/// A process that is killed with the test. What it writes goes to files.
pub(crate) struct Running {
    process: Child,
    pub(crate) out: PathBuf,
    err: PathBuf,
}

impl Running {
    fn start(mut command: Command, folder: &Path, name: &str) -> Self {
        let (out, err) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        command.stdin(Stdio::null()).stdout(File::create(&out).expect("a file"));
        let process = command.stderr(File::create(&err).expect("a file")).spawn().expect("it starts");
        Self { process, out, err }
    }

    /// Waits until it has ended well; what it said.
    pub(crate) fn ended(&mut self) -> String {
        let status = self.process.wait().expect("it ends");
        let said = self.said();
        assert!(status.success(), "{said}");
        said
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        let status = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        assert!(status.expect("kill").success());
        self.ended();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
