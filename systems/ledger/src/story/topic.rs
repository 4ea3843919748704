//! A topic as anybody sees it: its records, duplicates and all.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its key: the account.
    pub key: String,
    /// The id of its event.
    pub event_id: String,
    /// The type of its event.
    pub event_type: String,
    /// The number of its event within the account.
    pub sequence: i64,
    /// Its value.
    pub value: String,
}

/// All records that are in a topic now, each partition in its order.
pub fn records(brokers: &str, topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "look")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let patience = Duration::from_secs(20);
    let metadata = consumer.fetch_metadata(Some(topic), patience).expect("the topic");
    let partitions = metadata.topics()[0].partitions().len() as i32;
    let (mut list, mut left) = (TopicPartitionList::new(), 0);
    for partition in 0..partitions {
        let (low, high) = consumer.fetch_watermarks(topic, partition, patience).expect("its ends");
        left += high - low;
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&list).expect("assigned");
    let (mut found, end) = (Vec::new(), Instant::now() + patience);
    while left > 0 {
        assert!(Instant::now() < end, "{left} records of {topic} can't be read");
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(200)) {
            found.push(record(&message));
            left -= 1;
        }
    }
    found
}

fn record(message: &impl Message) -> Record {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let header = |name: &str| {
        let headers = message.headers()?;
        headers.iter().find(|header| header.key == name).map(|header| text(header.value))
    };
    Record {
        partition: message.partition(),
        key: text(message.key()),
        event_id: header("ce_id").unwrap_or_default(),
        event_type: header("ce_type").unwrap_or_default(),
        sequence: header("ce_sequence").and_then(|number| number.parse().ok()).unwrap_or_default(),
        value: text(message.payload()),
    }
}
