//! The tool for dead letters: looking at them, and putting them back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, OffsetDateTime, Result, Uuid};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use time::format_description::well_known::Rfc3339;

use crate::client::config::KafkaBuilder;
use crate::client::invalid::{invalid, refused};
use crate::client::locked_properties::{OF_LETTERS, broken};
use crate::client::offsets::{self, patiently};
use crate::client::security::{Security, told_who_we_are};
use crate::consume::arrived::{Arrived, TOPIC};
use crate::dead_letter::address::Address;
use crate::dead_letter::record;
use crate::produce::receipt_producer::ReceiptProducer;

/// How long to wait for an answer of the brokers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many letters are put back at a time.
const CHUNK: usize = 500;

/// A record that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic it was in.
    pub topic: String,
    /// The partition it was in.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Its event, if it is one.
    pub event_id: Option<Uuid>,
    /// The type of its event, if it is one.
    pub event_type: Option<String>,
    /// Its key, if it is text.
    pub key: Option<String>,
    /// Why it was given up.
    pub error: String,
    /// The code of that error, one word.
    pub error_code: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub time: Option<OffsetDateTime>,
}

/// The dead letters of a group.
///
/// It remembers what it has requeued as a consumer does: as the committed offsets of the group `{group}.dead-letters`. It skips
/// the letters of other groups in the same topic.
pub struct DeadLetters {
    brokers: String,
    group: String,
    address: Address,
    security: Security,
    properties: BTreeMap<String, String>,
}

/// A partition of letters that are to be read: from where to where.
struct Span {
    next: i64,
    end: i64,
}

impl DeadLetters {
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

    /// The topic for dead letters, as the consumer has it: see [`Consumer::dead_letters`](crate::Consumer::dead_letters).
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.address = Address::new(pattern);
        self
    }

    told_who_we_are!();

    /// Sets a property of librdkafka; it overrides the other settings. One that would break a promise is refused when letters are
    /// listed or requeued.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// The letters of a topic that were not requeued yet, the oldest of each partition first, `limit` of them at most. Changes
    /// nothing, and shows no payload.
    pub async fn list(&self, topic: &str, limit: usize) -> Result<Vec<DeadLetter>> {
        self.settings()?.connect().await?;
        let (mut reader, group) = (self.reader(topic)?, self.group.clone());
        blocking(move || {
            let mut letters = Vec::new();
            while letters.len() < limit {
                let Some(chunk) = reader.next(&group, limit - letters.len())? else { break };
                letters.extend(chunk.iter().map(DeadLetter::of));
            }
            Ok(letters)
        })
        .await
    }

    /// Writes the letters of a topic that are there now back into the topic that they came from, and returns how many they were.
    /// They are for this group alone: other groups of Postrider skip them, consumers of other programs see them again.
    ///
    /// *Guarantees*: a letter counts as requeued only when its record is on all in-sync replicas; letters of a key keep their
    /// order. *On failure*: the rest stay letters, and some of the last 500 may be requeued twice.
    pub async fn requeue(&self, topic: &str) -> Result<usize> {
        let settings = self.settings()?;
        settings.clone().connect().await?;
        let receipt_producer = ReceiptProducer::new(settings.client())?;
        if !receipt_producer.has(topic).await? {
            let message =
                format!("the topic {topic} does not exist; create it before its dead letters are requeued");
            return Err(Error::new(ErrorKind::NotFound, "requeue", message));
        }
        let mut reader = self.reader(topic)?;
        let mut count = 0;
        loop {
            let group = self.group.clone();
            let (back, chunk) =
                blocking(move || reader.next(&group, CHUNK).map(|chunk| (reader, chunk))).await?;
            reader = back;
            let Some(chunk) = chunk else { return Ok(count) };
            // One after the other: of a queue that is full nobody knows who comes first.
            for letter in &chunk {
                receipt_producer.send(record::revived(letter, topic, &self.group)).await?;
            }
            count += chunk.len();
            reader = blocking(move || reader.commit().map(|()| reader)).await?;
        }
    }

    /// What letters are put back with, once nothing would break a promise. Who can't connect with it is told why.
    fn settings(&self) -> Result<KafkaBuilder> {
        if let Some(sentence) = broken(&self.properties, OF_LETTERS) {
            return Err(invalid(&sentence));
        }
        Ok(KafkaBuilder::for_letters(&self.brokers, &self.security, &self.properties))
    }

    fn reader(&self, topic: &str) -> Result<TopicReader> {
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
        Ok(TopicReader { consumer, topic: self.address.of(topic), original: topic.to_owned(), spans: None })
    }
}

/// Runs what waits for the brokers beside the runtime.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(Error::new(ErrorKind::Corrupt, "dead letters", error.to_string())))
}

/// Reads the letters that are there when it begins, once.
struct TopicReader {
    consumer: BaseConsumer,
    topic: String,
    original: String,
    spans: Option<HashMap<i32, Span>>,
}

impl TopicReader {
    /// Finds out what is to be read: from the position of the group, or the oldest letter, to the end as it is now.
    fn begin(&self) -> Result<HashMap<i32, Span>> {
        let away = |error: KafkaError| {
            Error::new(
                ErrorKind::Unreachable,
                "dead letters",
                format!("the dead letters can't be read: {error}"),
            )
        };
        let metadata = self.consumer.fetch_metadata(None, PATIENCE).map_err(away)?;
        let found =
            metadata.topics().iter().find(|found| found.name() == self.topic && found.error().is_none());
        let Some(found) = found.filter(|found| !found.partitions().is_empty()) else {
            let message = format!("the topic {} for dead letters does not exist", self.topic);
            return Err(Error::new(ErrorKind::NotFound, "dead letters", message));
        };
        let mut list = TopicPartitionList::new();
        for partition in found.partitions() {
            list.add_partition(&self.topic, partition.id());
        }
        let committed = offsets::committed(&self.consumer, &list, PATIENCE).map_err(away)?;
        let (mut spans, mut from) = (HashMap::new(), TopicPartitionList::new());
        for each in committed.elements() {
            let partition = each.partition();
            let (low, end) =
                self.consumer.fetch_watermarks(&self.topic, partition, PATIENCE).map_err(away)?;
            let next = match each.offset() {
                Offset::Offset(offset) => offset.max(low),
                _ => low,
            };
            if next < end {
                spans.insert(partition, Span { next, end });
                from.add_partition_offset(&self.topic, partition, Offset::Offset(next)).map_err(away)?;
            }
        }
        self.consumer.assign(&from).map_err(away)?;
        Ok(spans)
    }

    /// The next letters of a group, up to `most`; nothing at the end.
    fn next(&mut self, group: &str, most: usize) -> Result<Option<Vec<Arrived>>> {
        let spans = match self.spans.take() {
            Some(spans) => spans,
            None => self.begin()?,
        };
        let spans = self.spans.insert(spans);
        let topic: Arc<str> = self.topic.as_str().into();
        let (mut letters, mut heard) = (Vec::new(), Instant::now());
        while letters.len() < most && spans.values().any(|span| span.next < span.end) {
            let message = match self.consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => message,
                // Its last offsets may hold no records.
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    if let Some(span) = spans.get_mut(&partition) {
                        span.next = span.end;
                    }
                    continue;
                }
                other if heard.elapsed() > PATIENCE => {
                    let reason = other
                        .and_then(Result::err)
                        .map_or_else(|| "no answer".to_owned(), |error| error.to_string());
                    let message = format!("the dead letters in {topic} can't be read: {reason}");
                    return Err(Error::new(ErrorKind::Unreachable, "dead letters", message));
                }
                _ => continue,
            };
            heard = Instant::now();
            let Some(span) = spans.get_mut(&message.partition()).filter(|span| message.offset() < span.end)
            else {
                if let Some(span) = spans.get_mut(&message.partition()) {
                    span.next = span.end;
                }
                continue;
            };
            span.next = message.offset() + 1;
            let letter = Arrived::new(Arc::clone(&topic), &message);
            if letter.text(record::GROUP) == Some(group) && letter.text(TOPIC) == Some(&self.original) {
                letters.push(letter);
            }
        }
        let ended = spans.values().all(|span| span.next >= span.end);
        Ok(if letters.is_empty() && ended { None } else { Some(letters) })
    }

    /// What was read so far is put back.
    fn commit(&self) -> Result<()> {
        let mut list = TopicPartitionList::new();
        for (partition, span) in self.spans.iter().flatten() {
            let added = list.add_partition_offset(&self.topic, *partition, Offset::Offset(span.next));
            added.map_err(|error| invalid(&error.to_string()))?;
        }
        patiently(PATIENCE, || self.consumer.commit(&list, CommitMode::Sync)).map_err(|error| {
            let message =
                format!("the position in the dead letters could not be committed, so the last ones may be requeued again: {error}");
            Error::new(ErrorKind::Unreachable, "requeue", message)
        })
    }
}

impl DeadLetter {
    fn of(letter: &Arrived) -> Self {
        let text = |name: &str| letter.text(name).unwrap_or_default().to_owned();
        let event = letter.event().ok();
        Self {
            topic: text(TOPIC),
            partition: text(record::PARTITION).parse().unwrap_or(-1),
            offset: text(record::OFFSET).parse().unwrap_or(-1),
            event_id: event.as_ref().map(|event| event.event_id),
            event_type: event.map(|event| event.event_type.to_string()),
            key: letter.key.as_deref().and_then(|key| std::str::from_utf8(key).ok()).map(ToOwned::to_owned),
            error: text(record::ERROR),
            error_code: text(record::CODE),
            attempts: text(record::ATTEMPTS).parse().unwrap_or(0),
            time: OffsetDateTime::parse(&text(record::TIME), &Rfc3339).ok(),
        }
    }
}
