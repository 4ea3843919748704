//! Lists, reads and requeues dead letters.

use std::collections::{BTreeMap, HashMap};

use postrider_core::{Error, ErrorKind, Result};
use rdkafka::consumer::BaseConsumer;

use crate::client::blocking::blocking;
use crate::client::config::KafkaBuilder;
use crate::client::invalid::{invalid, refused};
use crate::client::locked_properties::{OF_LETTERS, broken};
use crate::client::security::{Security, security_methods};
use crate::consume::arrived::Arrived;
use crate::dead_letter::address::Address;
use crate::dead_letter::letter::DeadLetter;
use crate::dead_letter::record;
use crate::dead_letter::topic_reader::{Begin, TopicReader};
use crate::produce::receipt_producer::ReceiptProducer;

const OP: &str = "dead letters";

/// How many letters are put back at a time.
const CHUNK: usize = 500;

/// Up to where groups have requeued, by group and partition.
type Requeued = HashMap<String, HashMap<i32, i64>>;

/// Lists and requeues the dead letters of a consumer group.
///
/// It remembers what it has requeued as the committed offsets of the group `{group}.dead-letters`. It skips the letters of other
/// groups in the same topic.
///
/// ```no_run
/// use postrider_kafka::DeadLetters;
///
/// # async fn example() -> postrider::Result<()> {
/// let letters = DeadLetters::new("broker:9092", "billing");
/// for letter in letters.list("orders", 100).await? {
///     println!("{}:{} failed after {} attempts: {}", letter.partition, letter.offset, letter.attempts, letter.error);
/// }
/// let count = letters.requeue("orders").await?;
/// println!("requeued {count}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeadLetters {
    brokers: String,
    group: String,
    address: Address,
    security: Security,
    properties: BTreeMap<String, String>,
}

impl DeadLetters {
    /// The default dead-letter topic; `{topic}` stands for the topic of the record.
    pub const TOPIC: &str = "{topic}.DLT";

    /// The dead letters of a group on these brokers.
    pub fn new(brokers: &str, group: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            group: group.to_owned(),
            address: Address::default(),
            security: Security::default(),
            properties: BTreeMap::new(),
        }
    }

    /// The dead-letter topic, as set in the consumer: see [`Consumer::dead_letters`](crate::Consumer::dead_letters).
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.address = Address::new(pattern);
        self
    }

    security_methods!();

    /// Sets a property of librdkafka; it overrides the other settings. One that would break a promise is refused when letters are
    /// listed or requeued.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// The letters of a topic that were not requeued yet: the oldest of each partition first, and at most `limit`. Changes
    /// nothing, and shows no payload.
    pub async fn list(&self, topic: &str, limit: usize) -> Result<Vec<DeadLetter>> {
        self.settings()?.connect().await?;
        let (mut reader, group) = (self.reader(topic, Begin::Position)?, self.group.clone());
        blocking(OP, move || {
            let mut letters = Vec::new();
            while letters.len() < limit {
                let Some(chunk) = reader.next(Some(&group), limit - letters.len())? else { break };
                letters.extend(chunk.iter().map(|letter| DeadLetter::of(letter, false)));
            }
            Ok(letters)
        })
        .await
    }

    /// All letters of a topic that `wanted` accepts, of every group and including those that were requeued: the oldest of each
    /// partition first, and at most `limit`. Changes nothing, and shows no payload.
    pub async fn list_all(
        &self,
        topic: &str,
        limit: usize,
        wanted: impl Fn(&DeadLetter) -> bool + Send + 'static,
    ) -> Result<Vec<DeadLetter>> {
        self.settings()?.connect().await?;
        let mut reader = self.reader(topic, Begin::Oldest)?;
        let (tool, topic) = (self.clone(), topic.to_owned());
        blocking(OP, move || {
            let (mut letters, mut requeued) = (Vec::new(), HashMap::new());
            while letters.len() < limit {
                let Some(chunk) = reader.next(None, CHUNK)? else { break };
                for letter in &chunk {
                    let letter = tool.seen(letter, &topic, &mut requeued)?;
                    letters.extend(Some(letter).filter(&wanted));
                }
            }
            letters.truncate(limit);
            Ok(letters)
        })
        .await
    }

    /// The letter at this partition and offset of the dead-letter topic, with the bytes of its value; `None` if there is none.
    /// Changes nothing.
    pub async fn read(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Result<Option<(DeadLetter, Option<Vec<u8>>)>> {
        self.settings()?.connect().await?;
        let mut reader = self.reader(topic, Begin::At(partition, offset))?;
        let (tool, topic) = (self.clone(), topic.to_owned());
        blocking(OP, move || {
            while let Some(chunk) = reader.next(None, 1)? {
                if let Some(letter) = chunk.into_iter().next() {
                    let seen = tool.seen(&letter, &topic, &mut HashMap::new())?;
                    return Ok(Some((seen, letter.value)));
                }
            }
            Ok(None)
        })
        .await
    }

    /// A letter as people see it. What its group has requeued is asked once a group.
    fn seen(&self, letter: &Arrived, topic: &str, requeued: &mut Requeued) -> Result<DeadLetter> {
        let group = letter.text(record::GROUP).unwrap_or_default().to_owned();
        if !requeued.contains_key(&group) {
            let of = Self { group: group.clone(), ..self.clone() };
            requeued.insert(group.clone(), of.reader(topic, Begin::Position)?.requeued()?);
        }
        let until = requeued.get(&group).and_then(|of| of.get(&letter.partition)).copied();
        Ok(DeadLetter::of(letter, until.is_some_and(|until| letter.offset < until)))
    }

    /// Writes the present letters of a topic back to the topic that they came from, and returns how many there were.
    /// They are for this group alone: other groups of Postrider skip them, consumers of other programs see them again.
    ///
    /// *Guarantees*: a letter counts as requeued only when its record is on all in-sync replicas; letters of a key keep their
    /// order. *On failure*: the rest stay letters, and some of the last 500 may be requeued twice.
    pub async fn requeue(&self, topic: &str) -> Result<usize> {
        self.requeue_some(topic, usize::MAX).await
    }

    /// The same with `most` letters at most, the oldest of each partition first. The others stay letters.
    pub async fn requeue_some(&self, topic: &str, most: usize) -> Result<usize> {
        let settings = self.settings()?;
        settings.clone().connect().await?;
        let receipt_producer = ReceiptProducer::new(settings.client())?;
        if !receipt_producer.has(topic).await? {
            let message =
                format!("the topic {topic} does not exist; create it before its dead letters are requeued");
            return Err(Error::new(ErrorKind::NotFound, "requeue", message));
        }
        let mut reader = self.reader(topic, Begin::Position)?;
        let mut count = 0;
        while count < most {
            let (group, many) = (self.group.clone(), CHUNK.min(most - count));
            let (back, chunk) =
                blocking(OP, move || reader.next(Some(&group), many).map(|chunk| (reader, chunk))).await?;
            reader = back;
            let Some(chunk) = chunk else { break };
            // One after the other: of a queue that is full nobody knows who comes first.
            for letter in &chunk {
                receipt_producer.send(record::revived(letter, topic, &self.group)).await?;
            }
            count += chunk.len();
            reader = blocking(OP, move || reader.commit().map(|()| reader)).await?;
        }
        Ok(count)
    }

    /// The settings of the producer that puts letters back. *On failure*: a property that would break a promise is set.
    fn settings(&self) -> Result<KafkaBuilder> {
        if let Some(sentence) = broken(&self.properties, OF_LETTERS) {
            return Err(invalid(&sentence));
        }
        Ok(KafkaBuilder::for_letters(&self.brokers, &self.security, &self.properties))
    }

    fn reader(&self, topic: &str, begin: Begin) -> Result<TopicReader> {
        self.address.check([topic].into_iter())?;
        let mut config = rdkafka::ClientConfig::new();
        let group = format!("{}.dead-letters", self.group);
        for (name, value) in [
            ("bootstrap.servers", self.brokers.as_str()),
            ("client.id", "postrider"),
            ("group.id", &group),
            ("enable.auto.commit", "false"),
            ("enable.partition.eof", "true"),
            // What retention takes while letters are read is passed over, and nothing else.
            ("auto.offset.reset", "earliest"),
            ("allow.auto.create.topics", "false"),
        ] {
            config.set(name, value);
        }
        for (name, value) in self.security.properties() {
            config.set(name, value);
        }
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        let consumer: BaseConsumer = config.create().map_err(|error| refused(&error))?;
        Ok(TopicReader::new(consumer, self.address.of(topic), topic, begin))
    }
}
