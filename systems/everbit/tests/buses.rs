//! The bus is a setting: the outbox, Kafka, or both one after the other. The handlers are the same.

mod support;

use everbit::adapters::bus::Kind;
use everbit::adapters::settings::Settings;
use everbit::adapters::store::PostgresDesk;
use everbit::adapters::workers::{Services, Workers};
use everbit::application::{Desk, EventBus, Trading};
use everbit::domain::KillSwitchChanged;
use everbit::story::ticker::TickerReceived;
use postrider_testkit::{Program, address, unique, until};
use support::{World, about, signal};

const TOPICS: &str = include_str!("../topics.txt");

/// The topics of topics.txt on the broker of the tests, behind a prefix of their own.
fn prefix() -> String {
    let topics = story::topics::parse(TOPICS).expect("topics");
    let compacted = topics.iter().find(|topic| topic.name == "everbit.system.event").expect("a topic");
    assert!(compacted.settings.contains(&("cleanup.policy".to_owned(), "compact".to_owned())));
    let streams: Vec<_> = topics.into_iter().filter(|topic| !topic.name.ends_with(".DLT")).collect();
    assert_eq!(
        streams.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(),
        everbit::domain::streams::ALL
    );
    let kafka = address::kafka();
    let port = kafka.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("host:port");
    let prefix = unique("everbit-");
    story::topics::create(port, &streams, &prefix);
    prefix
}

impl World {
    fn with_kafka(&self, prefix: &str) -> Settings {
        let topic_prefix = prefix.to_owned();
        Settings { bus: Kind::Kafka, brokers: address::kafka(), topic_prefix, ..self.settings.clone() }
    }

    /// A signal through this desk ends as an order and a notice, whatever is in between.
    async fn trade(&self, desk: &PostgresDesk) {
        let before = (self.requests().await, self.pushes().await.len());
        let intent =
            Trading::new(desk.clone()).take(&signal(), everbit::adapters::now()).await.expect("taken");
        let sql = format!(
            "select count(*) from order_attempt where order_intent_id = '{intent}' and status = 'ACKED'"
        );
        until("it is acknowledged", async || self.database.count(&sql).await == 1).await;
        until("the owner is told", async || self.pushes().await.len() == before.1 + 1).await;
        assert_eq!(self.requests().await, before.0 + 1);
    }
}

/// E15: the same handlers behind the outbox, and a transaction that rolls back publishes nothing.
#[tokio::test]
async fn the_outbox_is_a_bus() {
    let world = World::new().await;
    let workers = world.workers().await;
    let mut work = world.desk.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    world.trade(&world.desk).await;
    workers.stop().await.expect("stopped");
    assert_eq!(world.database.count("select count(*) from operation_log").await, 0);
}

/// E15, E18: the same handlers behind Kafka alone. It is another promise: what is rolled back was published all the same.
#[tokio::test]
async fn kafka_is_a_bus_without_the_transaction() {
    let world = World::new().await;
    let settings = world.with_kafka(&prefix());
    let desk = PostgresDesk::open(world.pool(), &settings).await.expect("a desk");
    let services = Services::new(&desk, &settings);
    let workers = Workers::start(&desk.outbox, &services, &settings).await.expect("consumers");
    let mut work = desk.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    until("it was published", async || world.database.count("select count(*) from operation_log").await == 1)
        .await;
    world.trade(&desk).await;
    assert_eq!(world.database.count("select count(*) from outbox_event").await, 0, "nothing is recorded");
    let mut work = desk.begin().await.expect("a transaction");
    let refusal = work.publish(&TickerReceived { price: 1 }, &about()).await.expect_err("market data");
    assert!(refusal.to_string().contains("\"everbit.market.ticker\" is not allowed"), "{refusal}");
    drop(work);
    workers.stop().await.expect("stopped");
}

/// E15: the third way keeps the transaction and has Kafka: outbox, the program with kafka.toml, consumers.
#[tokio::test]
async fn the_outbox_before_kafka_keeps_the_transaction() {
    let world = World::new().await;
    let prefix = prefix();
    let settings = world.with_kafka(&prefix);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/kafka.toml");
    let mut command = story::process::postrider();
    command.args(["relay", "--config", file, "--set", "http.listen=off"]);
    command.args(["--set", &format!("sink.kafka.topic={prefix}{{stream}}")]);
    command.env("DATABASE_URL", world.database.url()).env("EVERBIT_BROKERS", address::kafka());
    let relay = Program::start("postrider relay", &mut command);
    // The services publish into the outbox, and the consumers read from Kafka.
    let services = Services::new(&world.desk, &settings);
    let workers = Workers::start(&world.desk.outbox, &services, &settings).await.expect("consumers");
    let mut work = world.desk.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    world.trade(&world.desk).await;
    assert_eq!(world.database.count("select count(*) from operation_log").await, 0, "it was rolled back");
    workers.stop().await.expect("stopped");
    assert_eq!(relay.stop().await, Some(0));
}
