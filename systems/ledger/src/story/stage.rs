//! What the story and the tests are acted on: databases, topics and stubs of their own, and the processes of the system.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sqlx::MySqlPool;
use story::testkit::mysql::Database;
use story::testkit::{Folder, Logged, Program, unique, until};
use story::{Stub, topics};

use crate::adapters::persistence::MySqlLedger;
use crate::adapters::schema;

/// The settings of the relay, as they are deployed.
pub const SETTINGS: &str = include_str!("../../ledger.toml");
const TOPICS: &str = include_str!("../../topics.txt");

/// How events are spread over topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicOption {
    /// One topic for all.
    A,
    /// One topic per type.
    B,
}

/// Databases, topics and stubs. They end with it, and so do the processes that it started.
#[derive(Debug)]
pub struct Stage {
    /// Settings and log files.
    pub folder: Folder,
    /// The ledger, as the API has it.
    pub ledger: MySqlLedger,
    /// The database of the consumers.
    pub reading: MySqlPool,
    /// Slack.
    pub slack: Stub,
    /// PagerDuty.
    pub pagerduty: Stub,
    /// The address of the ledger's database.
    pub url: String,
    /// The brokers that relays are told; a proxy may stand before them.
    pub relay_brokers: String,
    /// What the names of topics and groups begin with.
    pub prefix: String,
    brokers: String,
    option: TopicOption,
    read_url: String,
    program: PathBuf,
    // Last: they can be dropped when nobody is connected.
    _databases: [Database; 2],
}

impl Stage {
    /// Sets it up: two databases of its own on the server of the tests, and topics on these brokers. `program` is the binary `ledger`.
    pub async fn new(program: PathBuf, brokers: &str, option: TopicOption) -> Self {
        let stage = Self::without_topics(program, brokers, option).await;
        stage.create_topics();
        stage
    }

    /// The same without topics, for brokers that are a mock: nobody can ask it to create any.
    pub async fn without_topics(program: PathBuf, brokers: &str, option: TopicOption) -> Self {
        let databases = [Database::new().await, Database::new().await];
        let [url, read_url] = [databases[0].url(), databases[1].url()];
        let pool = schema::connect(&url).await.expect("a connection");
        let outbox = schema::migrate(&pool).await.expect("the tables of the ledger");
        let reading = schema::connect(&read_url).await.expect("a connection");
        schema::migrate_consumers(&reading).await.expect("the tables of the consumers");
        Self {
            folder: Folder::new(),
            ledger: MySqlLedger::new(pool, outbox),
            reading,
            slack: Stub::start().await,
            pagerduty: Stub::start().await,
            url,
            relay_brokers: brokers.to_owned(),
            prefix: format!("{}.", unique("l")),
            brokers: brokers.to_owned(),
            option,
            read_url,
            program,
            _databases: databases,
        }
    }

    fn create_topics(&self) {
        let port = self.brokers.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.expect("the broker is host:port");
        let wanted = self.topics();
        let mut all = topics::parse(TOPICS).expect("topics.txt");
        all.retain(|topic| {
            let name = format!("{}{}", self.prefix, topic.name);
            wanted.iter().any(|wanted| *wanted == name.trim_end_matches(".DLT"))
        });
        topics::create(port, &all, &self.prefix);
    }

    /// The topics that events go to.
    pub fn topics(&self) -> Vec<String> {
        let names: &[&str] = match self.option {
            TopicOption::A => &["ledger-events"],
            TopicOption::B => &["ledger-posted-events", "ledger-reversed-events"],
        };
        names.iter().map(|name| format!("{}{name}", self.prefix)).collect()
    }

    /// The setting `sink.kafka.topic`.
    pub fn topic_setting(&self) -> String {
        let template = match self.option {
            TopicOption::A => "ledger-events",
            TopicOption::B => "{event_type:kebab}-events",
        };
        format!("{}{template}", self.prefix)
    }

    /// Writes the settings with some lines changed, and says where they are.
    pub fn settings(&self, name: &str, changes: &[(&str, &str)]) -> PathBuf {
        let change = |text: String, (from, to): &(&str, &str)| {
            assert!(text.contains(from), "ledger.toml has no {from:?}");
            text.replace(from, to)
        };
        let text = changes.iter().fold(SETTINGS.to_owned(), change);
        self.folder.file(&format!("{name}.toml"), &text)
    }

    /// `postrider` with the settings of the ledger, and short times.
    pub fn postrider(&self, settings: &Path, arguments: &[&str]) -> Command {
        let mut command = story::process::postrider();
        command.args(arguments).arg("--config").arg(settings);
        let short = [
            "relay.lease=5s",
            "sink.kafka.send_timeout=2s",
            "relay.alerts_every=1s",
            "relay.figures_every=1s",
        ];
        for setting in short {
            command.args(["--set", setting]);
        }
        command.args(["--set", &format!("sink.kafka.topic={}", self.topic_setting())]);
        command.env("DATABASE_URL", &self.url).env("KAFKA", &self.relay_brokers).env("PAGERDUTY_KEY", "key");
        command.env("SLACK_URL", self.slack.url()).env("PAGERDUTY_URL", self.pagerduty.url());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command of an operator to its end: what it printed. It must succeed.
    pub fn operate(&self, arguments: &[&str]) -> String {
        let settings = self.settings("operator", &[]);
        let output = self.postrider(&settings, arguments).output().expect("postrider runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "postrider {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Starts a relay.
    pub fn relay(&self, name: &str) -> Logged {
        self.relay_with(name, &[])
    }

    /// Starts a relay with some lines of its settings changed.
    pub fn relay_with(&self, name: &str, changes: &[(&str, &str)]) -> Logged {
        let settings = self.settings(name, changes);
        let mut command = self.postrider(&settings, &["relay"]);
        command.args(["--set", &format!("relay.name={name}")]);
        Logged::start(&mut command, self.folder.path(), name)
    }

    fn own(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(subcommand).env("DATABASE_URL", &self.url).env("READ_DATABASE_URL", &self.read_url);
        command.env("KAFKA", &self.brokers).env("TOPICS", self.topics().join(","));
        command.env("GROUP_PREFIX", &self.prefix).stdin(Stdio::null());
        command
    }

    /// Starts a consumer, and waits until it consumes.
    pub async fn consumer(&self, subcommand: &str, environment: &[(&str, &str)]) -> Logged {
        let mut command = self.own(subcommand);
        command.envs(environment.iter().copied());
        let logged = Logged::start(&mut command, self.folder.path(), subcommand);
        until("the consumer consumes", async || logged.out().contains("consuming")).await;
        logged
    }

    /// Starts a process that serves HTTP, and says where.
    pub async fn serving(&self, subcommand: &str) -> (Program, String) {
        let mut program = Program::start(subcommand, &mut self.own(subcommand));
        let address = program.line("listening on ").await;
        (program, address)
    }

    /// A number from the ledger's database.
    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.ledger.pool()).await.expect(sql)
    }

    /// A number from the database of the consumers.
    pub async fn read_number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.reading).await.expect(sql)
    }

    /// Waits until nothing is pending.
    pub async fn all_processed(&self) {
        until("everything is published", async || {
            self.number("select count(*) from outbox_event where status = 'PENDING'").await == 0
        })
        .await;
    }

    /// The balances of the ledger, by account.
    pub async fn balances(&self) -> Vec<(i64, i64)> {
        let sql = "select account_id, amount from balances order by account_id";
        sqlx::query_as(sql).fetch_all(self.ledger.pool()).await.expect("balances")
    }

    /// The read model, by account.
    pub async fn read_model(&self) -> Vec<(i64, i64)> {
        let sql = "select account_id, amount from account_balance_view order by account_id";
        sqlx::query_as(sql).fetch_all(&self.reading).await.expect("the read model")
    }

    /// Waits until the alerts were looked at so many times more.
    pub async fn rounds(&self, many: u32) {
        let sql = "select coalesce(max(lease_until), 0) from postrider_duty where name = 'alerts'";
        let mut last = 0;
        // The first may have begun before.
        for _ in 0..=many {
            until("somebody looks after the alerts", async || {
                let before = std::mem::replace(&mut last, self.number(sql).await);
                last != before
            })
            .await;
        }
    }

    /// Sets the times at which batches were delivered so long into the past, as if that time had gone by.
    pub async fn turn_back(&self, seconds: i64) {
        let sql = "update postrider_settled_batch set settled_at = settled_at - ? * 1000000";
        sqlx::query(sql).bind(seconds).execute(self.ledger.pool()).await.expect(sql);
    }

    /// Waits until the read model is what the ledger has.
    pub async fn read_model_is_level(&self) {
        until("the read model equals the balances", async || {
            self.read_model().await == self.balances().await
        })
        .await;
    }
}
