//! Topics that are missing, locked, deleted or too small.

use std::collections::HashMap;
use std::time::Duration;

use postrider::store::{OutboxSource, State};
use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, Received, Relay};
use postrider_kafka::{Consumer, Kafka};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::metadata::MetadataTopic;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Topic, assert_whole};
use crate::{state, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_may_not_be_written_holds_its_events_and_no_others_until_it_may() {
    let broker = Broker::create(&Options::new().acls()).expect("a broker starts");
    broker.create_topics(&[("orders", 1), ("payments", 1)]).expect("topics");
    broker.forbid_writes("payments").expect("forbidden");
    let outbox = Outbox::new();
    let record = async |stream: &str, number: i64| {
        let event = NewEvent::of(stream, "OrderPaid", "Order", stream, &number).expect("an event");
        outbox.record_alone(&event).await.expect("recorded")
    };
    let sink = Kafka::builder(&broker.bootstrap()).connect().await.expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("kafka", |s| s.sink(sink).longest_pause(Duration::from_millis(200)))
        .start()
        .await
        .expect("started");
    let mut held = Vec::new();
    for number in 1..=50 {
        held.push(record("payments", number).await);
        let free = record("orders", number).await;
        relay.delivered("kafka", free, Duration::from_secs(30)).await.expect("orders go on");
    }
    until("the first is held", async || state(&**relay.store(), held[0]).await.error_code.is_some()).await;
    let first = state(&**relay.store(), held[0]).await;
    assert_eq!((first.state, first.attempts), (State::Retrying, 0), "it loses no attempt: {first:?}");
    let message = first.error_message.expect("a sentence");
    assert!(message.contains("the topic payments of OrderPaid can't be written to"), "{message}");
    broker.permit_writes("payments").expect("permitted");
    until_quiet(&relay, "kafka").await.expect("caught up");
    relay.stop().await.expect("stopped");
    for name in ["orders", "payments"] {
        let arrivals = Topic::new(&broker.bootstrap(), name, 1).arrivals();
        assert_eq!(assert_whole(&arrivals, &HashMap::from([(name.to_owned(), 50)])), 0, "each once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_deleted_holds_its_events_and_no_others_until_it_is_there_again() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topics(&[("orders", 1), ("payments", 1)]).expect("topics");
    let outbox = Outbox::new();
    let record = async |stream: &str, number: i64| {
        let event = NewEvent::of(stream, "OrderPaid", "Order", stream, &number).expect("an event");
        outbox.record_alone(&event).await.expect("recorded")
    };
    let sink = Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(2));
    let sink = sink.connect().await.expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("kafka", |s| s.sink(sink).longest_pause(Duration::from_millis(200)))
        .start()
        .await
        .expect("started");
    let before = record("payments", 0).await;
    relay.delivered("kafka", before, Duration::from_secs(30)).await.expect("the topic is there");
    broker.delete_topic("payments").expect("deleted");
    let held = record("payments", 1).await;
    for number in 1..=20 {
        let free = record("orders", number).await;
        relay.delivered("kafka", free, Duration::from_secs(30)).await.expect("orders go on");
    }
    until("it is held", async || state(&**relay.store(), held).await.error_code.is_some()).await;
    let first = state(&**relay.store(), held).await;
    assert_eq!((first.state, first.attempts), (State::Retrying, 0), "it loses no attempt: {first:?}");
    assert!(
        first.error_message.is_some_and(|message| message.contains("payments of OrderPaid does not exist"))
    );
    broker.create_topic("payments", 1).expect("a topic");
    until_quiet(&relay, "kafka").await.expect("caught up");
    relay.stop().await.expect("stopped");
    for (name, wanted) in [("orders", 20), ("payments", 1)] {
        let arrivals = Topic::new(&broker.bootstrap(), name, 1).arrivals();
        assert_eq!(assert_whole(&arrivals, &HashMap::from([(name.to_owned(), wanted)])), 0, "each once");
    }
}

/// The brokers judge a whole request: many small events may be too large for a topic where none of them is alone.
#[tokio::test(flavor = "multi_thread")]
async fn small_events_that_are_too_large_together_all_arrive_and_a_large_one_alone_is_dead() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topics_with(&[("orders", 1)], &[("max.message.bytes", "65536")]).expect("a topic");
    let outbox = Outbox::new();
    let mut wanted = HashMap::new();
    let mut last = HashMap::new();
    let (mut all, mut large) = (Vec::new(), None);
    for number in 0..300_i64 {
        let key = format!("key {}", number % 10);
        if number == 150 {
            let event = NewEvent::of("orders", "OrderPaid", "Order", "large", &"x".repeat(100_000));
            large = Some(outbox.record_alone(&event.expect("an event")).await.expect("recorded"));
        }
        let version = last.entry(key.clone()).or_insert(0_i64);
        *version += 1;
        wanted.insert(key.clone(), *version);
        let event = NewEvent::of("orders", "OrderPaid", "Order", &key, &*version).expect("an event");
        let event = event.with_header("padding", "x".repeat(1000));
        all.push(outbox.record_alone(&event).await.expect("recorded"));
    }
    let sink = Kafka::builder(&broker.bootstrap()).connect().await.expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("kafka", |s| s.sink(sink).longest_pause(Duration::from_millis(200)))
        .start()
        .await
        .expect("started");
    until_quiet(&relay, "kafka").await.expect("all went somewhere");
    let dead = state(&**relay.store(), large.expect("the large one")).await;
    assert_eq!((dead.state, dead.attempts), (State::Dead, 1), "{dead:?}");
    for event in all {
        let small = state(&**relay.store(), event).await;
        assert_eq!((small.state, small.attempts <= 1), (State::Done, true), "{small:?}");
    }
    relay.stop().await.expect("stopped");
    let arrivals = Topic::new(&broker.bootstrap(), "orders", 1).arrivals();
    assert_eq!(assert_whole(&arrivals, &wanted), 0, "each once, in order");
}

/// C4: also where the brokers would make a topic for whoever asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn no_topic_is_created_where_the_brokers_would() {
    let broker = Broker::create(&Options::new().property("auto.create.topics.enable", "true"));
    let broker = broker.expect("a broker starts");
    broker.create_topic("orders", 1).expect("a topic");
    let outbox = Outbox::new();
    let record = async |stream: &str| {
        let event = NewEvent::of(stream, "OrderPaid", "Order", stream, &1).expect("an event");
        outbox.record_alone(&event).await.expect("recorded")
    };
    let (missing, free) = (record("payments").await, record("orders").await);
    let sink = Kafka::builder(&broker.bootstrap()).connect().await.expect("a sink");
    let relay = Relay::new(&outbox).subscribe("kafka", |s| s.sink(sink)).start().await.expect("started");
    relay.delivered("kafka", free, Duration::from_secs(30)).await.expect("orders go on");
    until("it is held", async || state(&**relay.store(), missing).await.error_code.is_some()).await;
    let refused = Consumer::new(&outbox, &broker.bootstrap(), "billing")
        .topics(["payments"])
        .on_other(async |_: Received<i64>| {})
        .start()
        .await;
    let sentence = refused.expect_err("refused").to_string();
    assert!(sentence.contains("the topic payments does not exist; create it"), "{sentence}");
    relay.stop().await.expect("stopped");
    let client: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("a client");
    let metadata = client.fetch_metadata(None, Duration::from_secs(10)).expect("metadata");
    let names: Vec<&str> = metadata.topics().iter().map(MetadataTopic::name).collect();
    assert!(names.contains(&"orders") && !names.contains(&"payments"), "{names:?}");
}
