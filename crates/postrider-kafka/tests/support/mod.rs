//! What the tests of the consumer share: a broker, records, offsets, and what to wait for.

#![allow(dead_code, unreachable_pub)]

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use postrider::testing::Outbox;
use postrider_kafka::{Consumer, RunningConsumer};
pub use postrider_testkit::{PATIENCE, Process, until};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Header, Headers as _, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use xtask::kafka::broker::Broker;
use xtask::kafka::options::Options;

/// A broker for all tests of a file; each has topics of its own.
pub fn broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| Broker::create(&Options::default()).expect("a broker starts"))
}

/// Makes topics on the file's broker, each with its topic for dead letters, and returns its address.
pub fn topics(topics: &[(&str, u16)]) -> String {
    let broker = broker();
    broker.create_topics(topics).expect("topics");
    for (topic, _) in topics {
        broker.create_topic(&format!("{topic}.DLT"), 1).expect("a topic for dead letters");
    }
    broker.bootstrap()
}

/// A consumer on the outbox in memory that notices soon when another is gone.
pub fn consumer(outbox: &Outbox, brokers: &str, group: &str, topic: &str) -> Consumer<Outbox> {
    brisk(Consumer::new(outbox, brokers, group).topics([topic]))
}

/// So many attempts, with a short pause.
pub fn retry(attempts: u32) -> postrider::Retry {
    postrider::Retry::fixed(Duration::from_millis(200)).max_attempts(attempts)
}

/// The same consumer with short times: a test should not wait for long.
pub fn brisk<S: postrider::store::OutboxSource>(consumer: Consumer<S>) -> Consumer<S> {
    consumer
        .property("session.timeout.ms", "6000")
        .property("heartbeat.interval.ms", "500")
        .retry(retry(4))
        .longest_pause(Duration::from_millis(500))
}

/// Waits until a consumer holds so many partitions.
pub async fn until_holding(consumer: &RunningConsumer, partitions: usize) {
    until("the partitions are held", async || consumer.partitions().len() == partitions).await;
}

/// A list that handlers write to.
#[derive(Clone)]
pub struct Seen<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Seen<T> {
    pub fn push(&self, item: T) {
        self.0.lock().expect("a list").push(item);
    }

    pub fn all(&self) -> Vec<T> {
        self.0.lock().expect("a list").clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().expect("a list").len()
    }
}

/// Writes records.
pub struct Feed {
    producer: BaseProducer,
    topic: String,
    pub sent: i64,
}

impl Feed {
    pub fn new(brokers: &str, topic: &str) -> Self {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("linger.ms", "1")
            .set("enable.idempotence", "true")
            .create()
            .expect("a producer");
        Self { producer, topic: topic.to_owned(), sent: 0 }
    }

    /// A record as it is.
    pub fn raw(&mut self, key: &str, value: &str, headers: &[(&str, &str)]) {
        let headers = headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header { key, value: Some(*value) })
        });
        let record = BaseRecord::to(&self.topic).key(key).payload(value).headers(headers);
        self.producer.send(record).map_err(|(error, _)| error).expect("sent");
        self.sent += 1;
    }

    /// An event of the type `Counted`: the number `value` of the key.
    pub fn event(&mut self, key: &str, value: i64) {
        self.event_with(key, value, &[]);
    }

    pub fn event_with(&mut self, key: &str, value: i64, more: &[(&str, &str)]) {
        let id = format!("{key}/{value}");
        let mut headers = vec![
            ("ce_specversion", "1.0"),
            ("ce_id", id.as_str()),
            ("ce_source", "/feed"),
            ("ce_type", "Counted"),
            ("content-type", "application/json"),
        ];
        headers.extend(more);
        self.raw(key, &value.to_string(), &headers);
    }

    /// Waits until all of it is taken.
    pub fn flush(&self) {
        self.producer.flush(PATIENCE).expect("taken");
    }
}

/// The committed offsets of a group, by partition; -1 where there is none.
pub fn committed(brokers: &str, group: &str, topic: &str, partitions: i32) -> Vec<i64> {
    Positions::new(brokers, group, topic, partitions).now()
}

/// Where a group stands, for whoever looks again and again.
pub struct Positions {
    consumer: BaseConsumer,
    list: TopicPartitionList,
}

impl Positions {
    pub fn new(brokers: &str, group: &str, topic: &str, partitions: i32) -> Self {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", group)
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic, 0, partitions - 1);
        Self { consumer, list }
    }

    /// The committed offsets, by partition; -1 where there is none.
    pub fn now(&mut self) -> Vec<i64> {
        let end = Instant::now() + PATIENCE;
        let offsets = loop {
            match self.consumer.committed_offsets(self.list.clone(), PATIENCE) {
                Ok(offsets) => break offsets,
                // The coordinator is still being found.
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
        };
        let mut offsets: Vec<(i32, i64)> = offsets
            .elements()
            .iter()
            .map(|each| match each.offset() {
                Offset::Offset(offset) => (each.partition(), offset),
                _ => (each.partition(), -1),
            })
            .collect();
        offsets.sort_unstable();
        offsets.into_iter().map(|(_, offset)| offset).collect()
    }
}

/// A record as anybody sees it.
#[derive(Debug, Clone)]
pub struct Record {
    pub key: String,
    pub value: String,
    /// Whether it has no value at all.
    pub is_tombstone: bool,
    pub partition: i32,
    pub headers: HashMap<String, String>,
}

/// Everything in a topic of one partition, once there is `wanted` of it.
pub fn records(brokers: &str, topic: &str, wanted: usize) -> Vec<Record> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "look")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&list).expect("assigned");
    let mut seen = Vec::new();
    let (end, mut quiet) = (Instant::now() + PATIENCE, 0);
    while quiet < 3 {
        assert!(Instant::now() < end, "{} of {wanted} records are in {topic}", seen.len());
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let text =
                    |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
                let headers = message.headers().map(|headers| {
                    headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
                });
                seen.push(Record {
                    key: text(message.key()),
                    value: text(message.payload()),
                    is_tombstone: message.payload().is_none(),
                    partition: message.partition(),
                    headers: headers.unwrap_or_default(),
                });
                quiet = 0;
            }
            Some(Err(error)) => panic!("{error}"),
            None if seen.len() >= wanted => quiet += 1,
            None => {}
        }
    }
    seen
}

/// Starts an ignored test of this program as a process, with its task in a variable of the environment.
pub fn process_of_test(name: &str, variable: &str, task: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([name, "--exact", "--ignored", "--nocapture"]).env(variable, task);
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}
