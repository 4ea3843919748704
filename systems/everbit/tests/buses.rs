//! The bus is a setting: the outbox, Kafka, or both one after the other. The handlers are the same.

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use everbit::adapters::bus::Kind;
use everbit::adapters::settings::Settings;
use everbit::adapters::store::PostgresTransactions;
use everbit::adapters::workers::{Services, Workers};
use everbit::application::{EventBus, Trading, Transactions, Work};
use everbit::domain::{CreateOrderAttempt, KillSwitchChanged, RunBacktest, Status};
use everbit::story::ticker::TickerReceived;
use postrider_testkit::{Folder, Program, address, unique, until};
use rdkafka::mocking::MockCluster;
use rdkafka::types::RDKafkaApiKey;
use rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID as FENCED;
use serde_json::Value;
use support::{World, about, signal};
use uuid::Uuid;

const TOPICS: &str = include_str!("../topics.txt");

/// The topics of topics.txt, also those of dead letters, on the broker of the tests, behind a prefix of their own.
fn prefix() -> String {
    let topics = story::topics::parse(TOPICS).expect("topics");
    let compacted = topics.iter().find(|topic| topic.name == "everbit.system.event").expect("a topic");
    assert!(compacted.settings.contains(&("cleanup.policy".to_owned(), "compact".to_owned())));
    let (letters, streams): (Vec<&str>, Vec<&str>) =
        topics.iter().map(|topic| topic.name.as_str()).partition(|name| name.ends_with(".DLT"));
    assert_eq!(streams, everbit::domain::streams::ALL);
    assert_eq!(letters, everbit::domain::streams::WORKERS.map(|(_, stream)| format!("{stream}.DLT")));
    let kafka = address::kafka();
    let port = kafka.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("host:port");
    let prefix = unique("everbit-");
    story::topics::create(port, &topics, &prefix);
    prefix
}

impl World {
    fn with_kafka(&self, prefix: &str) -> Settings {
        let topic_prefix = prefix.to_owned();
        Settings { bus: Kind::Kafka, brokers: address::kafka(), topic_prefix, ..self.settings.clone() }
    }

    /// Starts a worker behind Kafka as a process of its own, which tries again soon.
    async fn kafka_worker(&self, settings: &Settings) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everbit"));
        command.arg("worker").env("DATABASE_URL", self.database.url()).env("LOG_JSON", "1");
        command.env("EVERBIT_BUS", "kafka").env("EVERBIT_BROKERS", &settings.brokers);
        command.env("EVERBIT_TOPIC_PREFIX", &settings.topic_prefix).env("EXCHANGE_URL", &settings.exchange);
        command
            .env("PUSH_URL", &settings.push)
            .env("EVERBIT_COMMAND_RETRY", "base=200ms, max=1s")
            .env("EVERBIT_RETRY", "base=200ms, max=1s")
            .env("EVERBIT_KAFKA_ATTEMPTS", settings.kafka_attempts.to_string());
        let mut worker = Program::start("everbit worker", &mut command);
        worker.line("listening on ").await;
        worker
    }

    /// A signal through this transactions ends as an order and a notice, whatever is in between.
    async fn trade(&self, transactions: &PostgresTransactions) {
        let before = (self.requests().await, self.pushes().await.len());
        let intent = Trading::new(transactions.clone())
            .take(&signal(), everbit::adapters::now())
            .await
            .expect("taken");
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
    let mut work = world.transactions.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    world.trade(&world.transactions).await;
    workers.stop().await.expect("stopped");
    assert_eq!(world.database.count("select count(*) from operation_log").await, 0);
}

/// E15, E18: the same handlers behind Kafka alone. It is another promise: what is rolled back was published all the same.
#[tokio::test]
async fn kafka_is_a_bus_without_the_transaction() {
    let world = World::new().await;
    let settings = world.with_kafka(&prefix());
    let transactions = PostgresTransactions::open(world.pool(), &settings).await.expect("a transactions");
    let services = Services::new(&transactions, &settings);
    let workers = Workers::start(&transactions.outbox, &services, &settings).await.expect("consumers");
    let mut work = transactions.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    until("it was published", async || world.database.count("select count(*) from operation_log").await == 1)
        .await;
    world.trade(&transactions).await;
    assert_eq!(world.database.count("select count(*) from outbox_event").await, 0, "nothing is recorded");
    let mut work = transactions.begin().await.expect("a transaction");
    let refusal = work.publish(&TickerReceived { price: 1 }, &about()).await.expect_err("market data");
    assert!(refusal.to_string().contains("\"everbit.market.ticker\" is not allowed"), "{refusal}");
    drop(work);
    workers.stop().await.expect("stopped");
}

/// A worker whose consumer has ended does not live on as if all were well: its process fails with a sentence, and whoever runs it starts
/// another one.
#[tokio::test]
async fn a_worker_whose_consumer_has_ended_ends_with_a_failure() {
    let world = World::new().await;
    let mock = MockCluster::new(1).expect("a mock");
    for topic in story::topics::parse(TOPICS).expect("topics") {
        mock.create_topic(&topic.name, 1, 1).expect("a topic");
    }
    let settings = Settings { bus: Kind::Kafka, brokers: mock.bootstrap_servers(), ..world.settings.clone() };
    let mut worker = world.kafka_worker(&settings).await;
    mock.request_errors(RDKafkaApiKey::Heartbeat, &[FENCED; 100]);
    let code = worker.exit_code().await;
    let said = worker.errors().text();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("everbit: consume: the consumer has stopped because of a fatal error"), "{said}");
}

/// E15: behind Kafka a command may be faster than the commit of what it is about. Then it is tried again until that is there: no order and
/// no backtest is lost.
#[tokio::test]
async fn a_command_that_is_faster_than_its_commit_is_tried_until_its_intent_is_there() {
    let world = World::new().await;
    // So many tries that a busy machine makes no dead letter of it.
    let settings = Settings { kafka_attempts: 30, ..world.with_kafka(&prefix()) };
    let transactions = PostgresTransactions::open(world.pool(), &settings).await.expect("a transactions");
    let worker = world.kafka_worker(&settings).await;
    let signal = signal();
    let mut order = transactions.begin().await.expect("a transaction");
    assert!(order.open_intent(&signal, 1).await.expect("written"));
    let command = CreateOrderAttempt { order_intent_id: signal.intent_id(), attempt_no: 1 };
    order.publish(&command, &signal.about).await.expect("sent");
    until("the order was faster", async || was_retried(&worker, signal.intent_id())).await;
    order.commit().await.expect("committed");
    until("the order is acknowledged", async || world.status(&command).await == Some(Status::Acked)).await;
    let (mut backtest, job_id) = (transactions.begin().await.expect("a transaction"), Uuid::new_v4());
    backtest.open_job(job_id, "KRW-BTC", 1).await.expect("written");
    backtest.publish(&RunBacktest { job_id, market: "KRW-BTC".to_owned() }, &about()).await.expect("sent");
    until("the backtest was faster", async || was_retried(&worker, job_id)).await;
    backtest.commit().await.expect("committed");
    let finished = "select count(*) from backtest_job where status = 'FINISHED'";
    until("the backtest is finished", async || world.database.count(finished).await == 1).await;
    assert_eq!(world.requests().await, 1);
    assert_eq!(worker.stop().await, Some(0));
}

/// Whether the worker has tried what this is about, and will try it again.
fn was_retried(worker: &Program, id: Uuid) -> bool {
    let (errors, id) = (worker.errors().text(), id.to_string());
    errors.lines().any(|line| line.contains("\"outcome\":\"retry\"") && line.contains(&id))
}

/// E15: behind Kafka a command whose transaction was rolled back has its tries, and is a dead letter that says why; the next one goes on.
#[tokio::test]
async fn a_command_that_was_rolled_back_is_a_dead_letter_that_says_why() {
    let world = World::new().await;
    let settings = world.with_kafka(&prefix());
    let transactions = PostgresTransactions::open(world.pool(), &settings).await.expect("a transactions");
    let worker = world.kafka_worker(&settings).await;
    let signal = signal();
    let mut work = transactions.begin().await.expect("a transaction");
    assert!(work.open_intent(&signal, 1).await.expect("written"));
    let command = CreateOrderAttempt { order_intent_id: signal.intent_id(), attempt_no: 1 };
    work.publish(&command, &signal.about).await.expect("sent");
    drop(work);
    let topic = format!("{}everbit.trade.command", settings.topic_prefix);
    let letters = || {
        let mut list = story::process::postrider();
        list.args(["dead-letters", "list", "--json", "--topic", &topic, "--brokers", &settings.brokers]);
        let output = list.output().expect("postrider runs");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    until("it is a dead letter", async || letters()[0].is_object()).await;
    let letter = letters();
    let wanted = format!(
        "there is no intent {}: its transaction was rolled back, or is not committed yet",
        signal.intent_id()
    );
    assert_eq!(
        (&letter[0]["error"], &letter[0]["error_code"]),
        (&wanted.into(), &"missing".into()),
        "{letter}"
    );
    assert_eq!(letter[0]["attempts"], 6, "{letter}");
    world.trade(&transactions).await;
    assert_eq!(worker.stop().await, Some(0));
}

/// The script makes every topic with its settings; on one broker without `min.insync.replicas=2`, which would let nobody publish. It runs
/// with a stand-in for Kafka's own program.
#[test]
fn the_script_leaves_out_what_one_broker_cannot_have() {
    let bin = Folder::new();
    let program = bin.file("kafka-topics.sh", "#!/bin/sh\necho \"$@\" >> \"$ASKED\"\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let asked = |replicas: &[&str]| {
        let asked = bin.path().join(format!("asked-{}", replicas.len()));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/topics.sh");
        let mut script = Command::new("sh")
            .arg(script)
            .arg("kafka:9092")
            .args(replicas)
            .env("PATH", &path)
            .env("ASKED", &asked)
            .spawn()
            .expect("it runs");
        assert!(script.wait().expect("it ends").success());
        std::fs::read_to_string(asked).expect("what it asked for")
    };
    let (three, one) = (asked(&[]), asked(&["1"]));
    for topic in story::topics::parse(TOPICS).expect("topics") {
        let of = |asked: &str| {
            let name = format!("--topic {} ", topic.name);
            asked.lines().find(|line| line.contains(&name)).unwrap_or_default().to_owned()
        };
        let partitions = format!("--partitions {} ", topic.partitions);
        assert!(of(&three).contains(&(partitions.clone() + "--replication-factor 3")), "{three}");
        assert!(of(&three).contains("--config min.insync.replicas=2"), "{three}");
        assert!(of(&one).contains(&(partitions + "--replication-factor 1")), "{one}");
    }
    assert!(!one.contains("min.insync.replicas"), "{one}");
    assert!(one.contains("--config cleanup.policy=compact"), "{one}");
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
    let services = Services::new(&world.transactions, &settings);
    let workers = Workers::start(&world.transactions.outbox, &services, &settings).await.expect("consumers");
    let mut work = world.transactions.begin().await.expect("a transaction");
    work.publish(&KillSwitchChanged { engaged: true }, &about()).await.expect("published");
    drop(work);
    world.trade(&world.transactions).await;
    assert_eq!(world.database.count("select count(*) from operation_log").await, 0, "it was rolled back");
    workers.stop().await.expect("stopped");
    assert_eq!(relay.stop().await, Some(0));
}
