//! Reads a topic of dead letters from its position, or from the oldest letter, to the end as it is when it begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Error, ErrorKind, Result};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::client::invalid::invalid;
use crate::client::offsets::{self, patiently};
use crate::consume::arrived::{Arrived, TOPIC};
use crate::dead_letter::record;

/// How long to wait for an answer of the brokers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At the position of the group: behind what it has requeued.
    Position,
    /// At the oldest letter.
    Oldest,
    /// At this letter, and it ends there.
    At(i32, i64),
}

/// A partition of letters that are to be read: from where to where.
struct Span {
    next: i64,
    end: i64,
}

/// Reads the letters that are there when it begins, once.
pub(crate) struct TopicReader {
    consumer: BaseConsumer,
    topic: String,
    original: String,
    begin: Begin,
    spans: Option<HashMap<i32, Span>>,
}

fn away(error: KafkaError) -> Error {
    let message = format!("the dead letters can't be read: {error}");
    Error::new(ErrorKind::Unreachable, "dead letters", message)
}

impl TopicReader {
    /// Of the letters of `original` in `topic`.
    pub(crate) fn new(consumer: BaseConsumer, topic: String, original: &str, begin: Begin) -> Self {
        Self { consumer, topic, original: original.to_owned(), begin, spans: None }
    }

    /// The partitions of the topic.
    fn partitions(&self) -> Result<TopicPartitionList> {
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
        Ok(list)
    }

    /// Up to where the group has requeued, by partition.
    pub(crate) fn requeued(&self) -> Result<HashMap<i32, i64>> {
        let committed = offsets::committed(&self.consumer, &self.partitions()?, PATIENCE).map_err(away)?;
        let offset = |offset| if let Offset::Offset(offset) = offset { offset } else { 0 };
        Ok(committed.elements().iter().map(|each| (each.partition(), offset(each.offset()))).collect())
    }

    /// Finds out what is to be read: from where it begins to the end as it is now.
    fn spans(&self) -> Result<HashMap<i32, Span>> {
        let from = match self.begin {
            Begin::Position => self.requeued()?,
            Begin::Oldest | Begin::At(..) => {
                self.partitions()?.elements().iter().map(|each| (each.partition(), 0)).collect()
            }
        };
        self.assign(from)
    }

    fn assign(&self, begin: HashMap<i32, i64>) -> Result<HashMap<i32, Span>> {
        let (mut spans, mut from) = (HashMap::new(), TopicPartitionList::new());
        for (partition, offset) in begin {
            let (low, high) =
                self.consumer.fetch_watermarks(&self.topic, partition, PATIENCE).map_err(away)?;
            let (next, end) = match self.begin {
                Begin::At(wanted, at) if wanted == partition && (low..high).contains(&at) => (at, at + 1),
                Begin::At(..) => continue,
                Begin::Position | Begin::Oldest => (offset.max(low), high),
            };
            if next < end {
                spans.insert(partition, Span { next, end });
                from.add_partition_offset(&self.topic, partition, Offset::Offset(next)).map_err(away)?;
            }
        }
        self.consumer.assign(&from).map_err(away)?;
        Ok(spans)
    }

    /// The next letters of a group, or of any, up to `most`; nothing at the end.
    pub(crate) fn next(&mut self, group: Option<&str>, most: usize) -> Result<Option<Vec<Arrived>>> {
        let spans = match self.spans.take() {
            Some(spans) => spans,
            None => self.spans()?,
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
            let is_of_group = group.is_none_or(|group| letter.text(record::GROUP) == Some(group));
            if is_of_group && letter.text(TOPIC) == Some(&self.original) {
                letters.push(letter);
            }
        }
        let ended = spans.values().all(|span| span.next >= span.end);
        Ok(if letters.is_empty() && ended { None } else { Some(letters) })
    }

    /// What was read so far is put back.
    pub(crate) fn commit(&self) -> Result<()> {
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
