//! Everything that the story needs, started.

use serde_json::Value;
use story::testkit::{Logged, Program, until};
use story::{Story, process};
use tokio::task::block_in_place;
use xtask::kafka::{Broker, Options};

use super::bank::Bank;
use super::proxy::Proxy;
use super::stage::{Stage, TopicOption};

/// The largest record that the broker takes, in bytes.
pub const LARGEST: u32 = 48_000;

/// The processes of the system, a broker of their own, and the way to it.
#[derive(Debug)]
pub struct Scene {
    /// The broker.
    pub broker: Broker,
    /// The way of the relays to the broker.
    pub proxy: Proxy,
    /// Databases, topics and stubs.
    pub stage: Stage,
    /// The relays that run.
    pub relays: Vec<Logged>,
    /// The clients of the API.
    pub bank: Bank,
    positions: String,
    _programs: [Program; 2],
    _consumers: [Logged; 3],
}

impl Scene {
    /// Starts everything.
    pub async fn set(story: &Story) -> Self {
        let program = std::env::current_exe().expect("this program");
        // Found before anything is started: it says what to do when it is missing.
        process::postrider_path();
        let options = Options::new().message_max_bytes(LARGEST);
        let broker = block_in_place(|| Broker::create(&options)).expect("a broker");
        let proxy = Proxy::to(broker.port()).await;
        let mut stage = Stage::new(program, &broker.bootstrap(), TopicOption::A).await;
        stage.relay_brokers = proxy.bootstrap();
        let (api, url) = stage.serving("api").await;
        let (stub, positions) = stage.serving("stub-positions").await;
        let consumers = [
            stage.consumer("read-model", &[]).await,
            stage.consumer("positions", &[("POSITIONS_URL", &positions)]).await,
            stage.consumer("audit", &[]).await,
        ];
        let relays = vec![stage.relay("relay-1"), stage.relay("relay-2")];
        let bank = Bank::new(&url);
        story.tell("MariaDB, Kafka, the API, two relays and three consumers run; the topics were made by the script's list");
        bank.deposit(1, 1000).await;
        until("the first posting is everywhere", async || {
            stage.read_number("select count(*) from audit_feed").await == 1
                && stage.read_model().await == [(1, 1000)]
        })
        .await;
        story.tell("the first posting has gone all the way");
        Self { broker, proxy, stage, relays, bank, positions, _programs: [api, stub], _consumers: consumers }
    }

    /// Loses the effect of one event, so that the story has something to find.
    pub async fn lose_an_effect(&self) {
        let one = "delete from audit_feed order by transaction_id limit 1";
        sqlx::query(one).execute(&self.stage.reading).await.expect("lost");
    }

    /// How many legs the position system was told of.
    pub async fn triggered(&self) -> i64 {
        let answer = process::client().get(format!("{}/count", self.positions)).send().await;
        let answer: Value = answer.expect("the stub answers").json().await.expect("JSON");
        answer["triggered"].as_i64().unwrap_or_default()
    }

    /// What is of use while everything is kept.
    pub fn addresses(&self, story: &mut Story) {
        let topic = self.stage.topic_setting();
        let own = format!("topic = \"{topic}\"");
        let settings = self.stage.settings("ledger", &[("topic = \"ledger-events\"", &own)]);
        let environment = [
            ("DATABASE_URL", self.stage.url.as_str()),
            ("KAFKA", &self.stage.relay_brokers),
            ("SLACK_URL", self.stage.slack.url()),
            ("PAGERDUTY_URL", self.stage.pagerduty.url()),
            ("PAGERDUTY_KEY", "key"),
        ];
        let environment = environment.map(|(name, value)| format!("{name}={value}"));
        story.address("the API", self.bank.url());
        story.address("the ledger", &self.stage.url);
        story.address("the topic", format!("{topic} on {}", self.broker.bootstrap()));
        story.address("for the commands below", format!("export {}", environment.join(" ")));
        let postrider = process::postrider_path();
        for command in ["status", "events", "dead list", "relays", "alerts check"] {
            let line = format!("{} {command} --config {}", postrider.display(), settings.display());
            story.address(command, line);
        }
    }
}
