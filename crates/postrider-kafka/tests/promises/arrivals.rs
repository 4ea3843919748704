//! What arrived in a topic, and whether that is what it should be.

use std::collections::HashMap;
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::PATIENCE;

/// A record as any consumer sees it.
pub(crate) struct IncomingEvent {
    pub(crate) partition: i32,
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// The record's own time, in milliseconds since 1970.
    pub(crate) time: Option<i64>,
}

impl IncomingEvent {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
        Self {
            partition: message.partition(),
            key: String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned(),
            value: message.payload().unwrap_or_default().to_vec(),
            headers: headers
                .map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_vec()))
                .collect(),
            time: message.timestamp().to_millis(),
        }
    }

    /// The text of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name)?;
        std::str::from_utf8(&found.1).ok()
    }

    /// The number in the value.
    pub(crate) fn number(&self) -> i64 {
        serde_json::from_slice(&self.value).expect("a number")
    }
}

/// A topic, for whoever looks into it.
pub(crate) struct Topic {
    consumer: BaseConsumer,
    name: &'static str,
    partitions: i32,
}

impl Topic {
    pub(crate) fn new(bootstrap: &str, name: &'static str, partitions: i32) -> Self {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "look")
            .set("reconnect.backoff.max.ms", "500")
            .create()
            .expect("a consumer");
        Self { consumer, name, partitions }
    }

    /// How many records each partition has; nothing while a broker is away.
    fn ends(&self) -> Option<Vec<i64>> {
        let end = |partition| self.consumer.fetch_watermarks(self.name, partition, PATIENCE / 20).ok();
        (0..self.partitions).map(|partition| end(partition).map(|(_, end)| end)).collect()
    }

    /// Whether a topic of one partition had records, and its retention has taken them all.
    pub(crate) fn is_emptied(&self) -> bool {
        let (low, high) = self.consumer.fetch_watermarks(self.name, 0, PATIENCE / 20).unwrap_or_default();
        low == high && high > 0
    }

    /// How many records there are; none while a broker is away.
    pub(crate) fn count(&self) -> i64 {
        self.ends().map_or(0, |ends| ends.iter().sum())
    }

    /// Everything that is in it now, each partition in its order.
    pub(crate) fn arrivals(&self) -> Vec<IncomingEvent> {
        let deadline = Instant::now() + PATIENCE;
        let ends = loop {
            if let Some(ends) = self.ends() {
                break ends;
            }
            assert!(Instant::now() < deadline, "{} can't be read", self.name);
        };
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions {
            list.add_partition_offset(self.name, partition, Offset::Beginning).expect("an offset");
        }
        self.consumer.assign(&list).expect("assigned");
        let mut next = vec![0; ends.len()];
        let mut arrivals = Vec::new();
        while next.iter().zip(&ends).any(|(next, end)| next < end) {
            assert!(Instant::now() < deadline, "{}: {next:?} of {ends:?} were read", self.name);
            // What it says of a broker that comes and goes is no record.
            if let Some(Ok(message)) = self.consumer.poll(PATIENCE / 100) {
                next[message.partition() as usize] = message.offset() + 1;
                arrivals.push(IncomingEvent::of(&message));
            }
        }
        arrivals
    }
}

/// Every number of every key is there, each for the first time after the one before it. Gives how many came again.
pub(crate) fn assert_whole(arrivals: &[IncomingEvent], wanted: &HashMap<String, i64>) -> usize {
    let mut last: HashMap<&str, i64> = HashMap::new();
    let mut again = 0;
    for arrival in arrivals {
        let (number, last) = (arrival.number(), last.entry(&arrival.key).or_default());
        if number <= *last {
            again += 1;
            continue;
        }
        assert_eq!(number, *last + 1, "key {}: something is lost, or came too early", arrival.key);
        *last = number;
    }
    for (key, wanted) in wanted {
        assert_eq!(last.get(key.as_str()), Some(wanted), "key {key} is not complete");
    }
    assert_eq!(last.len(), wanted.len(), "there are keys that nobody wrote");
    again
}

/// In each partition the numbers come for the first time in their order. Gives how many came again.
pub(crate) fn assert_ordered_by_partition(arrivals: &[IncomingEvent]) -> usize {
    let mut known = std::collections::HashSet::new();
    let mut last: HashMap<i32, i64> = HashMap::new();
    for arrival in arrivals.iter().filter(|arrival| known.insert(arrival.number())) {
        let last = last.entry(arrival.partition).or_default();
        assert!(
            arrival.number() > *last,
            "partition {}: {} after {last}",
            arrival.partition,
            arrival.number()
        );
        *last = arrival.number();
    }
    arrivals.len() - known.len()
}
