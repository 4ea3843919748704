//! What the story starts: a broker and a database that go away, and the processes of the shop on them.

use std::path::Path;
use std::process::Command;

use sqlx::{AssertSqlSafe, PgPool};
use story::Story;
use story::testkit::postgres::Database;
use story::testkit::{Folder, Logged, until, until_true};
use xtask::kafka::{Broker, Options};

use crate::adapters::consumers::{LIKES, SALES, STOCK, VIEWS};
use crate::adapters::postgres::migrate;
use crate::processes::settings::{TOPICS, relay_with};

/// The four consumers.
pub const CONSUMERS: [&str; 4] = [LIKES, SALES, VIEWS, STOCK];

/// How many events the relay is not done with.
const OPEN: &str =
    "select count(*) from outbox where id > coalesce((select last_processed_id from outbox_cursor), 0)";

/// Everything that runs. It goes away with this.
#[derive(Debug)]
pub struct Stage {
    /// The broker, to be killed.
    pub broker: Broker,
    /// The database.
    pub pool: PgPool,
    /// The two relays, by name.
    pub relays: Vec<(&'static str, Logged)>,
    /// The consumers, by name.
    pub consumers: Vec<(&'static str, Logged)>,
    /// The address of the API.
    pub api: String,
    /// The address of the cache.
    pub cache: String,
    servers: Vec<Logged>,
    folder: Folder,
    database: Database,
}

impl Stage {
    /// Starts all of it. It panics where the story can't begin.
    pub async fn start() -> Self {
        let mut broker = Broker::create(&Options::new()).unwrap_or_else(|error| panic!("{error}"));
        broker.start().unwrap_or_else(|error| panic!("{error}"));
        let topics = story::topics::parse(TOPICS).unwrap_or_else(|error| panic!("{error}"));
        story::topics::create(broker.port(), &topics, "");
        let database = Database::new().await;
        let pool = PgPool::connect_with(database.options()).await;
        let pool = pool.unwrap_or_else(|error| panic!("the database can't be reached: {error}"));
        migrate(&pool).await.unwrap_or_else(|error| panic!("{error}"));
        let (api, cache) = (String::new(), String::new());
        let (relays, consumers, servers) = (Vec::new(), Vec::new(), Vec::new());
        let folder = Folder::new();
        let mut stage = Self { broker, pool, relays, consumers, api, cache, servers, folder, database };
        stage.cache = stage.serve("stub-cache").await;
        stage.api = stage.serve("api").await;
        for name in ["relay-1", "relay-2"] {
            let relay = stage.relay(name);
            stage.relays.push((name, relay));
        }
        for name in CONSUMERS {
            let consumer = stage.consumer(name).await;
            stage.consumers.push((name, consumer));
        }
        stage
    }

    /// The file of a relay: the document's values. Only its lease is shorter, so that the story need not wait for it.
    pub fn relay_file(&self, name: &str) -> String {
        let named = format!("[relay]\nname = \"{name}\"");
        let text = relay_with(&[
            ("[relay]", &named),
            ("lease = \"15s\"", "lease = \"5s\""),
            ("send_timeout = \"5s\"", "send_timeout = \"2s\""),
            ("longest_pause = \"10s\"", "longest_pause = \"1s\""),
        ]);
        self.folder.file(&format!("{name}.toml"), &text).display().to_string()
    }

    /// Where the files and the logs of the processes are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a relay.
    pub fn relay(&self, name: &str) -> Logged {
        let file = self.relay_file(name);
        let mut command = story::process::postrider();
        command.args(["relay", "--config", &file]);
        Logged::start(self.told(&mut command), self.folder.path(), name)
    }

    /// Starts a consumer, and waits until it has partitions.
    pub async fn consumer(&self, name: &str) -> Logged {
        let mut command = story::process::own();
        command.args(["consumer", name]).env("SESSION_TIMEOUT_MS", "6000");
        let consumer = Logged::start(self.told(&mut command), self.folder.path(), name);
        until_true(&format!("{name} has partitions"), || consumer.out().contains("consuming")).await;
        consumer
    }

    async fn serve(&mut self, name: &str) -> String {
        let mut command = story::process::own();
        command.arg(name);
        let server = Logged::start(self.told(&mut command), self.folder.path(), name);
        let mut url = None;
        until_true(&format!("{name} listens"), || {
            let out = server.out();
            url = out.lines().find_map(|line| line.strip_prefix("listening on ")).map(ToOwned::to_owned);
            url.is_some()
        })
        .await;
        self.servers.push(server);
        url.unwrap_or_default()
    }

    fn told<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("DATABASE_URL", self.database.url()).env("KAFKA_BROKERS", self.broker.bootstrap());
        command.env("CACHE_URL", &self.cache).env("POSTRIDER_HTTP_LISTEN", "127.0.0.1:0")
    }

    /// What `postrider` says to these arguments.
    pub fn postrider(&self, arguments: &[&str]) -> String {
        let file = self.relay_file("operator");
        let mut command = story::process::postrider();
        command.args(arguments).args(["--config", &file]);
        match self.told(&mut command).output() {
            Ok(output) => [output.stdout, output.stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .concat(),
            Err(error) => format!("postrider does not run: {error}"),
        }
    }

    /// A command for whoever explores what was kept.
    pub fn command(&self, what: &str) -> String {
        command(&self.database.url(), &self.broker.bootstrap(), &self.relay_file("operator"), what)
    }

    /// How many dead letters a topic has that were not put back; nothing if that can't be found out.
    pub fn letters(&self, topic: &str) -> Option<usize> {
        let listed = self.postrider(&["dead-letters", "list", "--topic", topic, "--json"]);
        serde_json::from_str::<serde_json::Value>(&listed).ok()?.as_array().map(Vec::len)
    }

    /// A number of the database.
    pub async fn number(&self, sql: &str) -> i64 {
        let number = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&self.pool).await;
        number.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        let run = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await;
        run.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// A promise: a number comes to be this.
    pub async fn comes_to(&self, story: &mut Story, promise: &str, sql: &str, wanted: i64) {
        story.comes_to(promise, async || self.number(sql).await, wanted).await;
    }

    /// Waits until the relay is done with everything.
    pub async fn until_sent(&self) {
        until("everything is sent", async || self.number(OPEN).await == 0).await;
    }

    /// A promise: the relay comes to be done with everything.
    pub async fn all_is_sent(&self, story: &mut Story) {
        self.comes_to(story, "events that are not sent yet", OPEN, 0).await;
    }
}

/// A line for a shell. The program is named by its path: it is in no folder that a shell looks into.
fn command(database: &str, brokers: &str, file: &str, what: &str) -> String {
    let postrider = story::process::postrider_path();
    let postrider = postrider.display();
    format!("DATABASE_URL='{database}' KAFKA_BROKERS={brokers} {postrider} {what} --config {file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_shown_names_a_program_that_is_there() {
        let line = command("postgres://shop", "127.0.0.1:9092", "shop.toml", "dead list");
        let program = line.split(' ').find(|word| word.ends_with("/postrider")).expect("a path");
        assert!(Path::new(program).is_file(), "{line}");
        assert!(line.starts_with("DATABASE_URL='postgres://shop' KAFKA_BROKERS=127.0.0.1:9092 "), "{line}");
        assert!(line.ends_with("/postrider dead list --config shop.toml"), "{line}");
    }
}
