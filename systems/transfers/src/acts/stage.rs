//! A stage: a database, topics, the processes of the system on them, and somebody who is told when something is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use story::testkit::postgres::Database;
use story::testkit::{Folder, Logged, Program, unique, until};
use story::{Stub, process, topics};

use super::client::Client;
use crate::adapters::{kafka, postgres};
use crate::processes::fraud;

/// The settings of the relays.
pub const SETTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transfers.toml");
const TOPICS: &str = include_str!("../../topics.txt");

/// Everything that the processes need, and the processes' logs.
#[derive(Debug)]
pub struct Stage {
    /// The database.
    pub db: PgPool,
    /// The brokers.
    pub brokers: String,
    /// The topic of the transfers.
    pub topic: String,
    /// What operations was told.
    pub operations: Stub,
    /// The address of the database.
    pub url: String,
    program: PathBuf,
    folder: Folder,
    _database: Option<Database>,
}

impl Stage {
    /// A stage with a database of its own on the PostgreSQL of the tests. `program` is the program of this system, `port` the broker's.
    pub async fn new(program: &Path, port: u16) -> Self {
        let database = Database::new().await;
        Self::on(program, database.url(), Some(database), port).await
    }

    /// A stage on a database that is there.
    pub async fn on(program: &Path, url: String, database: Option<Database>, port: u16) -> Self {
        let prefix = format!("{}.", unique("t"));
        let wanted = topics::parse(TOPICS).unwrap_or_else(|sentence| panic!("topics.txt: {sentence}"));
        topics::create(port, &wanted, &prefix);
        let db = PgPoolOptions::new().max_connections(40).connect(&url).await;
        let db = db.unwrap_or_else(|error| panic!("no connection to the database: {error}"));
        postgres::migrate(&db)
            .await
            .unwrap_or_else(|error| panic!("the database can't be migrated: {error}"));
        Self {
            db,
            brokers: format!("127.0.0.1:{port}"),
            topic: format!("{prefix}transfers"),
            operations: Stub::start().await,
            url,
            program: program.to_owned(),
            folder: Folder::new(),
            _database: database,
        }
    }

    fn environment(&self, mut command: Command) -> Command {
        command.env("DATABASE_URL", &self.url).env("KAFKA_BROKERS", &self.brokers).env("TOPIC", &self.topic);
        command.env("OPERATIONS_URL", self.operations.url());
        command
    }

    fn own(&self, subcommand: &str) -> Command {
        let mut command = self.environment(Command::new(&self.program));
        command.arg(subcommand);
        command
    }

    fn postrider_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.environment(process::postrider());
        command.args(arguments).args(["--config", SETTINGS]);
        command
    }

    /// Starts the transaction service.
    pub async fn api(&self) -> (Program, Client) {
        let mut program = Program::start("the transaction service", &mut self.own("api"));
        let url = program.line("listening on ").await;
        (program, Client::new(url))
    }

    /// Starts a relay server, with the settings of the file, a short lease and these besides.
    pub fn relay(&self, name: &str, settings: &[&str]) -> Logged {
        let mut command = self.postrider_command(&["relay"]);
        let (name_is, topic) = (format!("relay.name={name}"), format!("sink.kafka.topic={}", self.topic));
        let usual = [name_is.as_str(), &topic, "relay.lease=3s", "relay.alerts_every=1s", "http.listen=off"];
        let name_of = |setting: &str| setting.split('=').next().map(str::to_owned);
        let is_usual = |usual: &&&str| !settings.iter().any(|own| name_of(own) == name_of(usual));
        for setting in usual.iter().filter(is_usual).chain(settings) {
            command.args(["--set", setting]);
        }
        Logged::start(&mut command, self.folder.path(), name)
    }

    /// Starts fraud detection, with its log as JSON.
    pub fn fraud(&self, name: &str) -> Logged {
        self.fraud_of(name, fraud::GROUP)
    }

    /// The same in another group.
    pub fn fraud_of(&self, name: &str, group: &str) -> Logged {
        self.fraud_with(name, group, &[])
    }

    /// The same with these variables.
    pub fn fraud_with(&self, name: &str, group: &str, variables: &[(&str, &str)]) -> Logged {
        let mut command = self.own("fraud");
        command.env("LOG_JSON", "1").env("GROUP", group).envs(variables.iter().copied());
        Logged::start(&mut command, self.folder.path(), name)
    }

    /// Runs `postrider` with the settings of the relays: its exit code, and what it said.
    pub async fn postrider(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.postrider_command(arguments);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = match run.await {
            Ok(Ok(output)) => output,
            other => panic!("postrider does not run: {other:?}"),
        };
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// How an operator asks for something here.
    pub fn shown(&self, arguments: &str) -> String {
        format!(
            "DATABASE_URL={} KAFKA_BROKERS={} OPERATIONS_URL={} {} {arguments} --config {SETTINGS}",
            self.url,
            self.brokers,
            self.operations.url(),
            process::postrider_path().display()
        )
    }

    /// Runs SQL as somebody who turns the clock: no trigger keeps him from changing times.
    pub async fn turn(&self, sql: &str) {
        let sql =
            format!("set session_replication_role = replica; {sql}; set session_replication_role = origin");
        let run = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&self.db).await;
        run.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// A number from the database.
    pub async fn number(&self, sql: &str) -> i64 {
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.db).await;
        query.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// How many transfers there are.
    pub async fn transfers(&self) -> i64 {
        self.number("select count(*) from transactions").await
    }

    /// How many of the transfers fraud detection has analysed, and how many risk logs there are at all.
    pub async fn analysed(&self) -> (i64, i64) {
        let of_transfers =
            "select count(distinct t.id) from transactions t join fds.risk_log r on r.transaction_id = t.id";
        (self.number(of_transfers).await, self.number("select count(*) from fds.risk_log").await)
    }

    /// How many events have this status in the document's table.
    pub async fn in_status(&self, status: &str) -> i64 {
        self.number(&format!("select count(*) from transfer_events where status = '{status}'")).await
    }

    /// Waits until fraud detection has analysed every transfer.
    pub async fn until_analysed(&self) {
        until("fraud detection has analysed every transfer", async || {
            let logs = "select (select count(*) from transactions) - (select count(*) from fds.risk_log)";
            self.number(logs).await <= 0
        })
        .await;
    }

    /// Waits until every lane is held, by so many relays.
    pub async fn until_shared_by(&self, relays: i64) {
        until("the lanes are shared", async || {
            let held = "select case when count(lease_owner) = 3 then count(distinct lease_owner) else 0 end
                from postrider.lane where lease_until > clock_timestamp()";
            self.number(held).await == relays
        })
        .await;
    }

    /// How many records the topic has, repetitions included.
    pub async fn records(&self) -> i64 {
        let (brokers, topic) = (self.brokers.clone(), self.topic.clone());
        let counted = tokio::task::spawn_blocking(move || kafka::records(&brokers, &topic)).await;
        match counted {
            Ok(Ok(count)) => count,
            other => panic!("the topic can't be counted: {other:?}"),
        }
    }
}

/// What the processes said last, when something went wrong.
impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let entries = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        for path in
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log"))
        {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("{}:\n{}", path.display(), lines[lines.len().saturating_sub(20)..].join("\n"));
        }
    }
}
