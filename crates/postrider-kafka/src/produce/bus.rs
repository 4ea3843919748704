//! The bus that an application publishes through, straight to Kafka.

use async_trait::async_trait;
use postrider_core::{EventBus, Limits, OffsetDateTime, Recordable, Recorded, Result, Uuid};

use crate::client::config::KafkaBuilder;
use crate::client::invalid::invalid;
use crate::produce::receipt_producer::{OutgoingRecord, ReceiptProducer};
use crate::produce::record;
use crate::produce::topic::Topics;

/// Publishes events straight to Kafka, behind the same trait as an outbox.
///
/// **It loses the transaction.** An event is sent at once: it is published also when the caller's transaction is rolled back
/// later, and it is lost, with an error, when the brokers can't be reached, though the change beside it may commit. What
/// must not happen without the other belongs into an outbox. No number within a key is given, because nobody counts.
///
/// *Guarantees*: when [`publish`](EventBus::publish) returns well, the event is in its topic, on all in-sync replicas, written
/// as the [sink](crate::Kafka) with the same settings writes it: handlers behind a [`Consumer`](crate::Consumer) can't tell.
/// *On failure*: one sentence; the event may be in its topic all the same.
pub struct KafkaBus {
    settings: KafkaBuilder,
    topics: Topics,
    post: ReceiptProducer,
}

impl KafkaBus {
    /// A bus with the settings of a sink: topics, format, properties.
    pub fn new(settings: KafkaBuilder) -> Result<Self> {
        let topics = settings.checked()?;
        let post = ReceiptProducer::new(settings.client())?;
        Ok(Self { settings, topics, post })
    }

    /// The same, once the brokers have answered.
    pub async fn connect(settings: KafkaBuilder) -> Result<Self> {
        settings.clone().connect().await?;
        Self::new(settings)
    }

    async fn send(&self, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        let (event, now) = (event.to_new_event()?.into_owned(), OffsetDateTime::now_utc());
        event.check(&Limits::default())?;
        let event = Recorded {
            id: 0,
            event_id: event.event_id,
            stream: event.stream.into(),
            event_type: event.event_type.into(),
            aggregate_type: event.aggregate_type.into(),
            aggregate_id: event.aggregate_id,
            ordering_key: event.ordering_key,
            sequence: None,
            payload: event.payload,
            headers: event.headers,
            occurred_at: event.occurred_at.unwrap_or(now),
            recorded_at: now,
            max_attempts: event.max_attempts,
        };
        let topic = self.topics.of(&event);
        let topic = topic.map_err(|name| invalid(&format!("{name:?} can't be the name of a topic")))?;
        let (format, events) = (self.settings.format, &self.settings.events);
        let value = format.value(events, &event);
        let parcel = OutgoingRecord {
            topic: &topic,
            partition: None,
            key: Some(record::key(&event).as_bytes()),
            value: Some(&value),
            headers: format.headers(events, &event),
        };
        self.post.send(parcel).await?;
        Ok(event.event_id)
    }
}

#[async_trait]
impl<Within: ?Sized + Send> EventBus<Within> for KafkaBus {
    async fn publish(&self, _within: &mut Within, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        self.send(event).await
    }
}
