//! A relay that stands still with a batch in its producer, until long after another has taken its place.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use postrider::Relay;
use postrider::postgres::PgStore;
use postrider::store::{Delivery, Sink, Unavailable};
use postrider_kafka::Kafka;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Topic, assert_ordered_by_partition};
use crate::fixture::Fixture;
use crate::proxy::Proxy;
use crate::relays::{deliverers, undelivered};
use crate::{PATIENCE, until};

/// What the relay is told: the address of PostgreSQL, the schema, the brokers, its name.
const ARGUMENTS: &str = "POSTRIDER_TEST_FREEZE";
const PARTITIONS: u16 = 4;
const BATCH: u32 = 500;
/// How much a record has beside it. Each has a request of its own, of which the system takes a part while nobody reads, and the
/// rest at once when somebody does: on Linux 30 kB and 26 kB, with the buffers of these tests.
const PADDING: usize = 44_000;

/// A sink that says which deliveries are not over at once: they wait in the producer.
struct Telling(Kafka);

#[async_trait::async_trait]
impl Sink for Telling {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let events = delivery.events.len();
        let mut delivering = self.0.deliver(delivery);
        tokio::select! {
            answer = &mut delivering => return answer,
            () = tokio::time::sleep(Duration::from_millis(300)) => println!("waiting {events}"),
        }
        let answer = delivering.await;
        println!("over {events}");
        answer
    }
}

/// Not a test: the relay that is frozen, and the next holder.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the relay of another test, in a process of its own"]
async fn relay_process() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let [url, schema, brokers, name] = arguments.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{arguments}")
    };
    let outbox = Fixture::reach(url, schema).await;
    let sink = Kafka::builder(brokers)
        .send_timeout(Duration::from_secs(4))
        // Small, so that of a large batch little is in the hands of the system.
        .property("socket.send.buffer.bytes", "16384")
        .property("batch.num.messages", "1")
        .build()
        .expect("a sink");
    let _relay = Relay::new(&outbox)
        .owner(name)
        .lease(Duration::from_secs(10))
        .subscribe("kafka", |s| s.sink(Telling(sink)).batch(BATCH).longest_pause(Duration::from_millis(200)))
        .start()
        .await
        .expect("started");
    std::future::pending::<()>().await;
}

/// A relay in a process of its own. Dropped, it is killed.
struct RelayProcess {
    process: Child,
    said: Receiver<String>,
}

impl RelayProcess {
    fn start(fixture: &Fixture, brokers: &str, name: &str) -> Self {
        let arguments = [&*fixture.url, &*fixture.schema, brokers, name].join(" ");
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "freezes::relay_process", "--ignored", "--nocapture"])
            .env(ARGUMENTS, arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (tell, said) = channel();
        let lines = BufReader::new(process.stdout.take().expect("what it says")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { process, said }
    }

    /// Waits until several events of a batch wait in its producer.
    fn until_it_waits(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left).expect("a batch waits in the producer");
            let waiting = line.split("waiting ").nth(1).and_then(|count| count.trim().parse::<u32>().ok());
            if waiting.is_some_and(|count| count > 1) {
                return;
            }
        }
    }

    /// Whether none of its threads runs any more: one of them takes the signal, and stops the others when it is its turn to run.
    /// Only Linux tells.
    fn stands_still(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.process.id())) else { return true };
        threads.flatten().all(|thread| {
            let status = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // What follows the name in brackets.
            status.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
        })
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A broker, a log, and a relay that has delivered the numbers up to 200.
struct Stage {
    frozen: RelayProcess,
    /// How the one that is frozen reaches the broker.
    way: Proxy,
    topic: Topic,
    fixture: Fixture,
    store: PgStore,
    /// The last to go: the others talk to it.
    broker: Broker,
}

impl Stage {
    async fn new() -> Self {
        let broker = Broker::create(&Options::new()).expect("a broker starts");
        broker.create_topic("orders", PARTITIONS).expect("a topic");
        let topic = Topic::new(&broker.bootstrap(), "orders", PARTITIONS.into());
        let fixture = Fixture::new().await;
        let store = fixture.outbox.store().await.expect("the log");
        let way = Proxy::to(broker.port()).expect("a proxy");
        let frozen = RelayProcess::start(&fixture, &way.bootstrap(), "frozen");
        let stage = Self { frozen, way, topic, fixture, store, broker };
        stage.fixture.record_numbers(1..=200).await;
        until("the first arrive", async || stage.topic.count() >= 200).await;
        stage.until_all_is_delivered().await;
        stage
    }

    async fn deliver(&self, numbers: RangeInclusive<i64>) {
        self.fixture.record_numbers(numbers).await;
        self.until_all_is_delivered().await;
    }

    async fn until_all_is_delivered(&self) {
        until("everything is delivered", async || undelivered(&self.store).await == 0).await;
    }

    /// Stops the relay with the numbers 201 to 300 in its hands, each with so many bytes beside it, as soon as it is so far.
    async fn freeze(&self, bytes: usize, is_so_far: impl Fn() -> bool) {
        // What it said of the first is over.
        self.frozen.said.try_iter().for_each(drop);
        self.fixture.record_padded(201..=300, bytes).await;
        self.frozen.until_it_waits();
        until("it is so far", async || is_so_far()).await;
        self.frozen.signal("-STOP");
        until("it stands still", async || self.frozen.stands_still()).await;
        let over = self.frozen.said.try_iter().find(|line| line.contains("over"));
        assert_eq!(over, None, "it was stopped in the middle of its batch");
    }

    /// Stops it with half a request on the wire; the system passes on what it has of it.
    async fn freeze_in_the_middle_of_a_request(&self) {
        self.way.shut();
        self.freeze(PADDING, || self.way.has_half_a_request()).await;
        self.way.open();
    }

    /// The numbers of each partition, in its order.
    fn partitions(&self) -> BTreeMap<i32, Vec<i64>> {
        let mut partitions: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for arrival in self.topic.arrivals() {
            partitions.entry(arrival.partition).or_default().push(arrival.number());
        }
        partitions
    }

    /// All numbers are there, each of a partition for the first time after those before it.
    fn assert_whole(&self, numbers: usize) {
        let arrivals = self.topic.arrivals();
        let again = assert_ordered_by_partition(&arrivals);
        assert_eq!(arrivals.len() - again, numbers, "nothing is lost");
    }
}

/// What came of the frozen one's batch after so much was there, by partition.
fn late(before: &BTreeMap<i32, Vec<i64>>, after: &BTreeMap<i32, Vec<i64>>) -> BTreeMap<i32, Vec<i64>> {
    let behind = |(partition, numbers): (&i32, &Vec<i64>)| {
        let there = before.get(partition).map_or(0, Vec::len);
        let late = numbers[there..].iter().copied().filter(|number| *number <= 300).collect();
        (*partition, late)
    };
    after.iter().map(behind).collect()
}

/// The broker is away when the relay is stopped, so nothing of its batch is on the wire. It is there again when the relay
/// wakes up: whatever it sent of that batch would be old, and behind what the next holder has sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_relay_had_in_its_producer_is_never_sent() {
    let mut stage = Stage::new().await;
    stage.broker.kill().expect("killed");
    stage.freeze(0, || true).await;
    stage.broker.start().expect("started again");
    let next_holder = RelayProcess::start(&stage.fixture, &stage.broker.bootstrap(), "next");
    stage.until_all_is_delivered().await;
    stage.deliver(301..=400).await;
    let before = stage.partitions();

    stage.frozen.signal("-CONT");
    drop(next_holder);
    // It is awake, knows that it lost its lane, and works again: what it held would have been sent by now.
    stage.deliver(401..=500).await;
    assert_eq!(deliverers(&stage.fixture).await, ["frozen", "next"]);
    let late = late(&before, &stage.partitions());
    assert!(late.values().all(Vec::is_empty), "nothing old came after it woke up: {late:?}");
    stage.assert_whole(500);
}

/// Half a request is on the wire when the relay is stopped. When it wakes, its client writes what the socket takes before it
/// looks at the clock, and so completes that request. It has made no other: nothing else comes.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_relay_had_begun_to_write_comes_late_only_as_a_repetition() {
    let stage = Stage::new().await;
    stage.freeze_in_the_middle_of_a_request().await;
    let next_holder = RelayProcess::start(&stage.fixture, &stage.broker.bootstrap(), "next");
    stage.until_all_is_delivered().await;
    stage.deliver(301..=400).await;
    let before = stage.partitions();
    assert!(stage.way.has_half_a_request(), "half a request is left");

    stage.frozen.signal("-CONT");
    drop(next_holder);
    stage.deliver(401..=500).await;
    assert_eq!(deliverers(&stage.fixture).await, ["frozen", "next"]);
    let late = late(&before, &stage.partitions());
    let count = late.values().map(Vec::len).sum::<usize>();
    assert_eq!(count, 1, "the request that was half written is whole now, and nothing else came: {late:?}");
    for (partition, late) in &late {
        let known: HashSet<&i64> = before[partition].iter().collect();
        assert!(late.iter().all(|number| known.contains(number)), "{partition}: a first arrival in {late:?}");
    }
    stage.assert_whole(500);
}

/// The next holder has the lane and has sent nothing yet when the frozen one wakes up: what that completes arrives for the first
/// time, and nothing newer of its partition is there.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_relay_completes_before_the_next_holder_has_sent_it_is_in_order() {
    let stage = Stage::new().await;
    stage.freeze_in_the_middle_of_a_request().await;
    let way = Proxy::to(stage.broker.port()).expect("a proxy");
    way.shut();
    let next_holder = RelayProcess::start(&stage.fixture, &way.bootstrap(), "next");
    next_holder.until_it_waits();
    let before = stage.partitions();

    stage.frozen.signal("-CONT");
    until("the request that was half written is whole", async || {
        stage.topic.count() > before.values().map(|numbers| numbers.len() as i64).sum()
    })
    .await;
    assert_eq!(stage.fixture.holder().await.as_deref(), Some("next"));
    way.open();
    stage.until_all_is_delivered().await;
    stage.deliver(301..=400).await;
    stage.assert_whole(400);
}
