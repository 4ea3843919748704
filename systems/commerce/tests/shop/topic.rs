//! What is in a topic, as any consumer sees it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use postrider_testkit::PATIENCE;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::Value;

/// A record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) partition: i32,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Record {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.value).unwrap_or_else(|error| panic!("{error}: {}", self.value))
    }

    /// The event's id.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().expect("an id").to_owned()
    }
}

/// A topic, for whoever looks into it.
pub(crate) struct Topic {
    consumer: BaseConsumer,
    name: String,
}

impl Topic {
    pub(crate) fn new(brokers: &str, name: &str) -> Self {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", "look")
            .set("enable.auto.commit", "false")
            .set("reconnect.backoff.max.ms", "500")
            .create()
            .expect("a consumer");
        Self { consumer, name: name.to_owned() }
    }

    /// Where each partition ends; nothing while a broker is away.
    fn ends(&self) -> Option<Vec<i64>> {
        let metadata = self.consumer.fetch_metadata(Some(&self.name), Duration::from_secs(3)).ok()?;
        let partitions = metadata.topics().first()?.partitions().len() as i32;
        let end = |partition| self.consumer.fetch_watermarks(&self.name, partition, Duration::from_secs(3));
        (0..partitions).map(|partition| end(partition).ok().map(|(_, end)| end)).collect()
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> i64 {
        self.ends().map_or(0, |ends| ends.iter().sum())
    }

    /// Everything that is in it now, each partition in its order.
    pub(crate) fn records(&self) -> Vec<Record> {
        let deadline = Instant::now() + PATIENCE;
        let ends = loop {
            if let Some(ends) = self.ends() {
                break ends;
            }
            assert!(Instant::now() < deadline, "{} can't be read", self.name);
        };
        let mut list = TopicPartitionList::new();
        for partition in 0..ends.len() as i32 {
            list.add_partition_offset(&self.name, partition, Offset::Beginning).expect("an offset");
        }
        self.consumer.assign(&list).expect("assigned");
        let mut next = vec![0; ends.len()];
        let mut records = Vec::new();
        while next.iter().zip(&ends).any(|(next, end)| next < end) {
            assert!(Instant::now() < deadline, "{}: {next:?} of {ends:?} were read", self.name);
            let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(500)) else { continue };
            next[message.partition() as usize] = message.offset() + 1;
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
            records.push(Record {
                partition: message.partition(),
                key: text(message.key()),
                value: text(message.payload()),
                headers: headers.map(|each| (each.key.to_owned(), text(each.value))).collect(),
            });
        }
        records
    }
}

/// Where a group stands in each partition of a topic; -1 where it has no position.
pub(crate) fn committed(brokers: &str, group: &str, topic: &str) -> Vec<i64> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", group)
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, 2);
    let Ok(offsets) = consumer.committed_offsets(list, Duration::from_secs(5)) else { return vec![-1; 3] };
    let offset = |offset: Offset| if let Offset::Offset(offset) = offset { offset } else { -1 };
    offsets.elements().iter().map(|each| offset(each.offset())).collect()
}
