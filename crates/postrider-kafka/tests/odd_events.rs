//! Events that are odd, among others that are not, on a real broker: each fails or is taken by itself.

#[path = "support/events.rs"]
mod events;

use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{delivery, event};
use postrider::store::{Outcome, Sink};
use postrider::{Headers, OffsetDateTime, Order, Payload, Recorded};
use postrider_kafka::{Format, Kafka, KafkaBuilder};
use xtask::kafka::{Broker, Options};

const CENTURIES: Duration = Duration::from_secs(300 * 365 * 24 * 60 * 60);

fn broker() -> Broker {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 2).expect("a topic");
    broker
}

fn sink(broker: &Broker) -> KafkaBuilder {
    Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(10))
}

/// Delivers an odd event between two others, as often as it takes until something is known of each.
async fn among_others(sink: &Kafka, odd: Recorded, name: &str) -> Outcome {
    let events = [event("before", 1), odd, event("behind", 3)];
    let mut known: [Option<Outcome>; 3] = [None, None, None];
    let end = Instant::now() + Duration::from_secs(60);
    while known.iter().any(Option::is_none) {
        assert!(Instant::now() < end, "{name}: it counts as an outage: {known:?}");
        let open: Vec<usize> = (0..3).filter(|index| known[*index].is_none()).collect();
        let left: Vec<Recorded> = open.iter().map(|index| events[*index].clone()).collect();
        let delivery = delivery(&left, Order::Key);
        // Whether the brokers count as away or not: what counts is what becomes of each.
        let _ = sink.deliver(Arc::clone(&delivery)).await;
        for (index, outcome) in open.into_iter().zip(delivery.take_outcomes()) {
            known[index] = outcome;
        }
    }
    let [before, odd, behind] = known.map(|outcome| outcome.expect("an outcome"));
    assert!(before.is_delivered() && behind.is_delivered(), "{name}: {before:?} {behind:?}");
    odd
}

/// What is to become of an odd event.
#[derive(Debug, Clone, Copy)]
enum Becomes {
    Delivered,
    Rejected(&'static str),
}

fn odd_events() -> Vec<(&'static str, Recorded, Becomes)> {
    use Becomes::{Delivered, Rejected};
    let headers: Vec<String> = (0..33_000).map(|n| format!("\"h{n}\":\"v\"")).collect();
    let many =
        Recorded { headers: Headers::from_json(format!("{{{}}}", headers.join(","))), ..event("a", 2) };
    let mut names = event("a", 2);
    for name in ["", " ", "\0", "a\0b", "\u{202e}ä", "ce_id", "content-type", "\r\n", "\u{10ffff}"] {
        names.headers.set(name, "\0\r\n\u{feff}");
    }
    let long = event(&"k".repeat(5_000_000), 2);
    let nowhere = Recorded { stream: "no topic\0/..".into(), ..event("a", 2) };
    let endless = Recorded { stream: "x".repeat(300_000).into(), ..event("a", 2) };
    let future = Recorded { occurred_at: OffsetDateTime::now_utc() + CENTURIES, ..event("a", 2) };
    let past = Recorded { occurred_at: OffsetDateTime::UNIX_EPOCH - CENTURIES, ..event("a", 2) };
    let payload = Payload::Bytes { content_type: String::new(), bytes: Vec::new() };
    vec![
        ("33,000 headers", many, Delivered),
        ("odd names of headers", names, Delivered),
        ("a key of 5 MB", long, Rejected("kafka_messagesizetoolarge")),
        ("a name that no topic has", nowhere, Rejected("topic_name")),
        ("an endless name", endless, Rejected("topic_name")),
        ("a time in three hundred years", future, Delivered),
        ("a time before 1970", past, Delivered),
        ("nothing at all", Recorded { payload, ..event("", 2) }, Delivered),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_event_is_delivered_or_fails_alone() {
    let broker = broker();
    for format in [Format::Binary, Format::Structured, Format::Payload] {
        let sink = sink(&broker).format(format).build().expect("a sink");
        for (name, odd, becomes) in odd_events() {
            let name = format!("{format:?}, {name}");
            match (among_others(&sink, odd, &name).await, becomes) {
                (Outcome::Delivered, Becomes::Delivered) => {}
                (Outcome::Reject { failure }, Becomes::Rejected(code)) => {
                    assert_eq!(failure.code, code, "{name}");
                    assert!(failure.message.len() < 500, "{name}: {} bytes", failure.message.len());
                }
                (outcome, _) => panic!("{name}: {outcome:?}, but {becomes:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_too_large_for_the_clients_queue_fails_alone() {
    let broker = broker();
    let sink = sink(&broker).property("queue.buffering.max.kbytes", "64").build().expect("a sink");
    let large = Recorded { payload: Payload::Json(format!("\"{}\"", "x".repeat(100_000))), ..event("a", 2) };
    let Outcome::Reject { failure } = among_others(&sink, large, "large").await else { panic!("rejected") };
    assert_eq!(failure.code, "kafka_messagesizetoolarge");
}
