//! Relays in processes of their own, that are killed.

use std::process::{Command, Stdio};
use std::time::Duration;

use postrider::{Order, Relay};
use postrider_kafka::Kafka;
use postrider_testkit::Process;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Topic, assert_ordered_by_partition};
use crate::fixture::Fixture;
use crate::until;

const BATCH: u32 = 200;
const PARTITIONS: u16 = 4;

/// What a relay in a process of its own is told: the address of PostgreSQL, the schema, the brokers, its name, the order.
const ARGUMENTS: &str = "POSTRIDER_TEST_RELAY";

/// Starts a relay in a process of its own. Dropped, it is killed.
fn start_relay(fixture: &Fixture, broker: &Broker, name: &str, order: Order) -> Process {
    let arguments = [&fixture.url, &fixture.schema, &broker.bootstrap(), name, order.as_str()].join(" ");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "relays::relay_process", "--ignored", "--nocapture"]).env(ARGUMENTS, arguments);
    Process::start(command.stdout(Stdio::null()))
}

/// Not a test: what such a relay does until it is killed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the relay of other tests, in a process of its own"]
async fn relay_process() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let [url, schema, brokers, name, order] = arguments.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{arguments}")
    };
    let outbox = Fixture::reach(url, schema).await;
    let sink = Kafka::builder(brokers).send_timeout(Duration::from_secs(2));
    let sink = sink.connect().await.expect("a sink");
    let order: Order = order.parse().expect("an order");
    let _relay = Relay::new(&outbox)
        .owner(name)
        .lease(Duration::from_secs(5))
        .subscribe("kafka", |s| s.sink(sink).batch(BATCH).order(order))
        .start()
        .await
        .expect("started");
    std::future::pending::<()>().await;
}

async fn set_up() -> (Broker, Topic, Fixture) {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", PARTITIONS).expect("a topic");
    let topic = Topic::new(&broker.bootstrap(), "orders", PARTITIONS.into());
    (broker, topic, Fixture::new().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_killed_and_started_again_keeps_the_order_of_each_partition() {
    const EVENTS: i64 = 30_000;
    let (broker, topic, fixture) = set_up().await;
    fixture.record_numbers(1..=EVENTS).await;
    let mut killed = 0;
    let mut relay_process = start_relay(&fixture, &broker, "relay_process-0", Order::Key);
    for part in [EVENTS / 10, EVENTS / 3, EVENTS / 2] {
        until("records arrive", async || topic.count() >= part).await;
        relay_process.kill();
        killed += 1;
        relay_process = start_relay(&fixture, &broker, &format!("relay_process-{killed}"), Order::Key);
    }
    let store = fixture.outbox.store().await.expect("the log");
    until("everything is delivered", async || undelivered(&store).await == 0).await;
    let arrivals = topic.arrivals();
    let again = assert_ordered_by_partition(&arrivals);
    assert_eq!((arrivals.len() - again) as i64, EVENTS, "nothing is lost");
    assert!(again <= killed * BATCH as usize, "{again} came again: more than was in flight");
}

/// C9.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_relays_on_a_strict_stream_one_works_and_the_other_takes_over() {
    const EVENTS: i64 = 1500;
    let (broker, topic, fixture) = set_up().await;
    fixture.record_numbers(1..=EVENTS).await;
    let mut relay_processes =
        ["one", "two"].map(|name| (name, Some(start_relay(&fixture, &broker, name, Order::Strict))));
    until("records arrive", async || topic.count() >= EVENTS / 5).await;
    let holder = fixture.holder().await.expect("somebody holds the lane");
    assert_eq!(deliverers(&fixture).await, [holder.as_str()], "one works, the other waits");
    for (name, relay_process) in &mut relay_processes {
        if *name == holder {
            relay_process.take().expect("it runs").kill();
        }
    }
    let store = fixture.outbox.store().await.expect("the log");
    until("everything is delivered", async || undelivered(&store).await == 0).await;
    assert_eq!(deliverers(&fixture).await.len(), 2, "the other took over");
    let arrivals = topic.arrivals();
    let again = assert_ordered_by_partition(&arrivals);
    assert_eq!((arrivals.len() - again) as i64, EVENTS, "nothing is lost");
    assert!(again <= BATCH as usize, "{again} came again: more than was in flight");
}

pub(crate) async fn undelivered(store: &dyn postrider::store::Store) -> u64 {
    let figures = store.figures("kafka").await.expect("figures");
    figures.iter().map(postrider::store::Figures::undelivered).sum()
}

/// Who has delivered something so far.
pub(crate) async fn deliverers(fixture: &Fixture) -> Vec<String> {
    use postrider::store::Inspect as _;
    let store = fixture.outbox.store().await.expect("the log");
    let query = postrider::store::StateQuery { limit: 100_000, ..postrider::store::StateQuery::default() };
    let states = store.states(&query).await.expect("states");
    let names: std::collections::BTreeSet<String> =
        states.into_iter().filter_map(|state| state.delivered_by).collect();
    names.into_iter().collect()
}
