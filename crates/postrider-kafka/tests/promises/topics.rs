//! A topic that may not be written to.

use std::collections::HashMap;
use std::time::Duration;

use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, Relay, Source, State};
use postrider_kafka::Kafka;
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
