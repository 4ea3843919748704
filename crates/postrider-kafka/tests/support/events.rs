//! Events as a relay hands them over, and librdkafka's mock to take them.

#![allow(dead_code, unreachable_pub)]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider::store::{Attempt, Delivery, Outcome, Sink, Unavailable};
use postrider::{Headers, OffsetDateTime, Order, Payload, Recorded, Uuid};
use postrider_kafka::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

pub type Mock = MockCluster<'static, rdkafka::producer::DefaultProducerContext>;

/// How long anything may take that is waited for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The version of a key.
pub fn event(key: &str, version: i64) -> Recorded {
    let now = OffsetDateTime::now_utc();
    Recorded {
        id: version,
        event_id: Uuid::now_v7(),
        stream: "orders".into(),
        event_type: "OrderPaid".into(),
        aggregate_type: "Order".into(),
        aggregate_id: key.to_owned(),
        ordering_key: None,
        sequence: None,
        payload: Payload::Json(version.to_string()),
        headers: Headers::new(),
        occurred_at: now,
        recorded_at: now,
        max_attempts: None,
    }
}

pub fn delivery(events: &[Recorded], order: Order) -> Arc<Delivery> {
    let attempts = events.iter().map(|event| Attempt { event: Arc::new(event.clone()), attempt: 1 });
    let mut delivery = Delivery::new("s", attempts.collect());
    delivery.order = order;
    Arc::new(delivery)
}

/// Delivers events once: what the sink says of itself and of each.
pub async fn deliver(sink: &Kafka, events: &[Recorded]) -> (Result<(), Unavailable>, Vec<Option<Outcome>>) {
    let delivery = delivery(events, Order::Key);
    let result = sink.deliver(Arc::clone(&delivery)).await;
    (result, delivery.take_outcomes())
}

/// Delivers events until each is, as a relay does: what was not reported is given again, in the same order.
pub async fn deliver_all(sink: &Kafka, left: Vec<Recorded>, order: Order) {
    deliver_all_and(sink, left, order, |_, _| {}).await;
}

/// The same; `see` is told what the sink says of itself and of each event, each time.
pub async fn deliver_all_and(
    sink: &Kafka,
    mut left: Vec<Recorded>,
    order: Order,
    mut see: impl FnMut(&Result<(), Unavailable>, &[Option<Outcome>]),
) {
    let end = Instant::now() + PATIENCE;
    while !left.is_empty() {
        assert!(Instant::now() < end, "{order}: {} are left", left.len());
        let next = delivery(&left, order);
        let result = sink.deliver(Arc::clone(&next)).await;
        let outcomes = next.take_outcomes();
        see(&result, &outcomes);
        let mut rest = outcomes.iter();
        left.retain(|_| !rest.next().and_then(Option::as_ref).is_some_and(Outcome::is_delivered));
    }
}

pub fn mock(partitions: i32) -> Mock {
    let cluster = MockCluster::new(1).expect("a mock");
    cluster.create_topic("orders", partitions, 1).expect("a topic");
    cluster
}

/// The versions of each key in the topic, in the order of the log.
pub fn versions(mock: &Mock, partitions: i32) -> HashMap<String, Vec<i64>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", mock.bootstrap_servers())
        .set("group.id", "look")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    let mut ends = Vec::new();
    for partition in 0..partitions {
        list.add_partition_offset("orders", partition, Offset::Beginning).expect("an offset");
        ends.push(consumer.fetch_watermarks("orders", partition, PATIENCE).expect("an end").1);
    }
    consumer.assign(&list).expect("assigned");
    let (mut found, mut next) = (HashMap::<String, Vec<i64>>::new(), vec![0; ends.len()]);
    let deadline = Instant::now() + PATIENCE;
    while next.iter().zip(&ends).any(|(next, end)| next < end) {
        assert!(Instant::now() < deadline, "{next:?} of {ends:?} were read");
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
            next[message.partition() as usize] = message.offset() + 1;
            let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
            let version = serde_json::from_slice(message.payload().unwrap_or_default()).expect("a version");
            found.entry(key).or_default().push(version);
        }
    }
    found
}

/// Each version when it came for the first time.
pub fn firsts(versions: &[i64]) -> Vec<i64> {
    let mut known = HashSet::new();
    versions.iter().copied().filter(|version| known.insert(*version)).collect()
}
