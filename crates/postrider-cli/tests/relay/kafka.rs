//! A relay to Kafka.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use xtask::kafka::{Broker, Options};

use crate::in_order;
use crate::support::{Fixture, RelayProcess, until_true};

/// All there is in a topic: key and number of each event.
fn topic(brokers: &str, topic: &str) -> Vec<(String, u64)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "look")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&list).expect("assigned");
    let (_, high) = consumer.fetch_watermarks(topic, 0, Duration::from_secs(10)).expect("its end");
    let mut seen = Vec::new();
    while (seen.len() as i64) < high {
        let message = consumer.poll(Duration::from_secs(10)).expect("a record in time").expect("a record");
        let key = String::from_utf8_lossy(message.key().expect("a key")).into_owned();
        let event: serde_json::Value =
            serde_json::from_slice(message.payload().expect("a value")).expect("JSON");
        seen.push((key, event["number"].as_u64().expect("a number")));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_to_kafka_delivers_in_order_and_a_sigterm_repeats_nothing() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 1).expect("a topic");
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = format!(
        "[relay]\nlease = \"5s\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"kafka\"\nbatch = 50\n\
         [sink.kafka]\ntype = \"kafka\"\nbrokers = \"{}\"\n",
        broker.bootstrap()
    );
    let mut first = RelayProcess::with(fixture.folder.path(), &fixture.url, "first", &settings);
    fixture.record(0, 200).await;
    until_true("some are delivered", || topic(&broker.bootstrap(), "orders").len() > 50).await;
    first.signal("TERM");
    assert_eq!(first.ended(), Some(0), "{}", first.log());
    fixture.record(200, 250).await;
    let _second = RelayProcess::with(fixture.folder.path(), &fixture.url, "second", &settings);
    until_true("all are delivered", || topic(&broker.bootstrap(), "orders").len() >= 250).await;
    let seen = topic(&broker.bootstrap(), "orders");
    assert_eq!((in_order(&seen), seen.len()), (250, 250), "none is lost and none came twice");
}
