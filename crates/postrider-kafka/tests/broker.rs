//! The sink on a real broker.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use postrider::store::{EventState, OutboxSource, State, StateQuery};
use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, Relay, Retry, Running, Uuid};
use postrider_kafka::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers as _, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use xtask::kafka::broker::Broker;
use xtask::kafka::options::Options;

const PARTITIONS: i32 = 4;
const KEYS: i64 = 20;

fn broker(topics: &[(&str, u16)]) -> Broker {
    let broker = Broker::create(&Options::default()).expect("a broker starts");
    broker.create_topics(topics).expect("topics");
    broker
}

async fn record(outbox: &Outbox, stream: &str, key: i64, version: i64) -> Uuid {
    let event = NewEvent::of(stream, "OrderPaid", "Order", key.to_string(), &version).expect("an event");
    outbox.record_alone(&event).await.expect("recorded")
}

async fn relay(outbox: &Outbox, sink: Kafka) -> Running {
    Relay::new(outbox)
        .subscribe("kafka", |s| {
            s.sink(sink)
                .batch(500)
                .retry(Retry::fixed(Duration::from_millis(200)))
                .longest_pause(Duration::from_millis(500))
        })
        .start()
        .await
        .expect("started")
}

async fn state(relay: &Running, event_id: Uuid) -> EventState {
    let query = StateQuery { event_id: Some(event_id), ..StateQuery::default() };
    relay.store().states(&query).await.expect("states").pop().expect("a state")
}

/// Waits until nothing has gone through for a few tries: at each one that fails the lease is extended.
async fn until_refused(relay: &Running) {
    let end = Instant::now() + Duration::from_secs(60);
    let query = StateQuery { state: Some(State::Processing), limit: 1, ..StateQuery::default() };
    let mut leases = HashSet::new();
    while leases.len() < 3 {
        assert!(Instant::now() < end, "it is tried again and again");
        let first = relay.store().states(&query).await.expect("states").pop();
        leases.extend(first.and_then(|first| Some((first.id, first.lease_until?))));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A record as a consumer sees it.
struct Seen {
    key: String,
    version: i64,
    headers: HashMap<String, String>,
}

/// Everything in a topic, each partition in its order.
fn consume(bootstrap: &str, topic: &str, wanted: usize) -> Vec<Seen> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "look")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&list).expect("assigned");
    let mut seen = Vec::new();
    let (end, mut quiet) = (Instant::now() + Duration::from_secs(30), 0);
    while Instant::now() < end && quiet < 5 {
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                let text =
                    |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
                let headers = message.headers().map(|headers| {
                    headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
                });
                seen.push(Seen {
                    key: text(message.key()),
                    version: text(message.payload()).parse().expect("a version"),
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

/// Every version of every key is there, and each came first after the one before it.
fn assert_whole(seen: &[Seen], versions: i64) {
    let mut firsts: HashMap<&str, Vec<i64>> = HashMap::new();
    for record in seen {
        let firsts = firsts.entry(&record.key).or_default();
        if !firsts.contains(&record.version) {
            firsts.push(record.version);
        }
    }
    assert_eq!(firsts.len() as i64, KEYS);
    let wanted: Vec<i64> = (1..=versions).collect();
    for (key, versions) in firsts {
        assert_eq!(versions, wanted, "key {key}: nothing lost, in order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_as_cloud_events_and_a_missing_topic_or_a_large_message_holds_up_no_other() {
    let broker = broker(&[("orders", PARTITIONS as u16)]);
    let outbox = Outbox::builder().source("/shop").build();
    let sink = Kafka::builder(&broker.bootstrap()).connect().await.expect("connected");
    let relay = relay(&outbox, sink).await;
    let held = record(&outbox, "payments", 99, 1).await;
    let large =
        NewEvent::of("orders", "OrderPaid", "Order", "large", &"x".repeat(1_040_000)).expect("an event");
    let large = outbox.record_alone(&large).await.expect("recorded");
    let mut events = Vec::new();
    for version in 1..=50 {
        for key in 0..KEYS {
            events.push(record(&outbox, "orders", key, version).await);
        }
    }
    for event in events {
        relay.delivered("kafka", event, Duration::from_secs(30)).await.expect("delivered");
    }
    let waiting = state(&relay, held).await;
    assert_eq!((waiting.state, waiting.attempts), (State::Retrying, 0), "it loses no attempt");
    assert!(waiting.error_message.is_some_and(|message| message.contains("the topic payments of OrderPaid")));
    let dead = state(&relay, large).await;
    assert_eq!(dead.state, State::Dead, "{dead:?}");
    broker.create_topic("payments", PARTITIONS as u16).expect("a topic");
    relay.delivered("kafka", held, Duration::from_secs(30)).await.expect("the topic was found");
    relay.stop().await.expect("stopped");
    let seen = consume(&broker.bootstrap(), "orders", 50 * KEYS as usize);
    assert_eq!(seen.len(), 50 * KEYS as usize, "each once");
    assert_whole(&seen, 50);
    for (name, value) in [
        ("ce_specversion", "1.0"),
        ("ce_type", "OrderPaid"),
        ("ce_source", "/shop"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(seen[0].headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(seen[0].headers.get("ce_subject"), Some(&seen[0].key));
    assert!(seen.iter().all(|record| record.headers.len() == 7), "{:?}", seen[0].headers.keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_and_one_that_stands_still_lose_and_reorder_nothing() {
    let mut broker = broker(&[("orders", PARTITIONS as u16)]);
    let outbox = Outbox::new();
    let sink =
        Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(2)).build().expect("a sink");
    let relay = relay(&outbox, sink).await;
    let mut version = 0;
    let mut more = async |count: i64| {
        for _ in 0..count {
            version += 1;
            for key in 0..KEYS {
                record(&outbox, "orders", key, version).await;
            }
        }
        version
    };
    more(300).await;
    broker.kill().expect("killed");
    more(300).await;
    until_refused(&relay).await;
    let rows = relay.store().figures("kafka").await.expect("figures");
    assert!(rows.iter().map(postrider::store::Figures::undelivered).sum::<u64>() > 0, "nothing goes through");
    assert_eq!(
        rows.iter().map(|each| each.retrying + each.dead + each.attempts).sum::<u64>(),
        0,
        "no rows, no attempts"
    );
    broker.start().expect("started again");
    until_quiet(&relay, "kafka").await.expect("caught up");
    broker.pause().expect("it stands still");
    more(100).await;
    until_refused(&relay).await;
    let rows = relay.store().figures("kafka").await.expect("figures");
    let trouble = rows.iter().map(|each| each.retrying + each.dead + each.attempts).sum::<u64>();
    assert_eq!(trouble, 0, "a timeout is an outage: no rows, no attempts");
    broker.resume().expect("it goes on");
    let last = more(100).await;
    until_quiet(&relay, "kafka").await.expect("caught up");
    relay.stop().await.expect("stopped");
    let seen = consume(&broker.bootstrap(), "orders", (last * KEYS) as usize);
    assert_whole(&seen, last);
    let repeated = seen.len() as i64 - last * KEYS;
    assert!(repeated <= 3 * 2 * 500, "{repeated} came again: more than was in flight");
}
