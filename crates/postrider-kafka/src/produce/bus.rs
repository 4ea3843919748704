//! The bus that an application publishes through, straight to Kafka.

use async_trait::async_trait;
use postrider_core::{Allowed, EventBus, Limits, OffsetDateTime, Recordable, Recorded, Result, Uuid};

use crate::client::config::KafkaBuilder;
use crate::client::invalid::invalid;
use crate::produce::receipt_producer::{OutgoingRecord, ReceiptProducer};
use crate::produce::record;
use crate::produce::topic::Topics;

/// Publishes events straight to Kafka, behind the same trait as an outbox.
///
/// **It is not transactional.** An event is sent at once. It stays published if the caller's transaction is rolled back later. If
/// the brokers can't be reached, `publish` fails and the event is lost, although the transaction may still commit. If the
/// event and the change must happen together, use an outbox. Events get no `sequence`.
///
/// *Guarantees*: when [`publish`](EventBus::publish) returns `Ok`, the event is in its topic, on all in-sync replicas, written
/// as the [sink](crate::Kafka) with the same settings writes it. *On failure*: one sentence; the event may still be in its
/// topic.
///
/// ```no_run
/// use postrider::{EventBus, NewEvent};
/// use postrider_kafka::{Kafka, KafkaBus};
///
/// # async fn example() -> postrider::Result<()> {
/// let bus = KafkaBus::connect(Kafka::builder("broker:9092").topic("{stream}-events")).await?;
/// let viewed = NewEvent::of("pages", "PageViewed", "Page", "7", "home")?;
/// bus.publish(&mut (), &viewed).await?;
/// # Ok(())
/// # }
/// ```
pub struct KafkaBus {
    settings: KafkaBuilder,
    topics: Topics,
    receipt_producer: ReceiptProducer,
    allowed: Allowed,
}

impl KafkaBus {
    /// A bus with the settings of a sink: topics, format, properties.
    pub fn new(settings: KafkaBuilder) -> Result<Self> {
        let topics = settings.checked()?;
        let receipt_producer = ReceiptProducer::new(settings.client())?;
        Ok(Self { settings, topics, receipt_producer, allowed: Allowed::default() })
    }

    /// The streams and event types that this publisher may publish; all unless set. Any other event is refused.
    #[must_use]
    pub fn allowed(mut self, allowed: Allowed) -> Self {
        self.allowed = allowed;
        self
    }

    /// The same, once the brokers have answered.
    pub async fn connect(settings: KafkaBuilder) -> Result<Self> {
        settings.clone().connect().await?;
        Self::new(settings)
    }

    async fn send(&self, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        let (event, now) = (event.to_new_event()?.into_owned(), OffsetDateTime::now_utc());
        self.allowed.check(&event)?;
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
        let topic = topic.map_err(|name| invalid(&format!("{name:?} is not a valid topic name")))?;
        let (value, headers) = self.settings.record(&event);
        let record = OutgoingRecord {
            topic: &topic,
            partition: None,
            key: Some(record::key(&event).as_bytes()),
            value: value.as_deref(),
            headers,
        };
        self.receipt_producer.send(record).await?;
        Ok(event.event_id)
    }
}

#[async_trait]
impl<Within: ?Sized + Send> EventBus<Within> for KafkaBus {
    async fn publish(&self, _within: &mut Within, event: &(dyn Recordable + Sync)) -> Result<Uuid> {
        self.send(event).await
    }
}

#[cfg(test)]
mod tests {
    use postrider_core::{ErrorKind, NewEvent};

    use super::*;

    /// E18: what is not allowed is refused before anything is sent: nobody listens there.
    #[tokio::test]
    async fn a_bus_refuses_what_its_publisher_may_not_publish() {
        let bus = KafkaBus::new(KafkaBuilder::new("127.0.0.1:1")).expect("a bus");
        let bus = bus.allowed(Allowed::default().streams(["orders"]));
        let ticker = NewEvent::of("market", "TickerReceived", "Market", "KRW-BTC", &1).expect("JSON");
        let refused = EventBus::<()>::publish(&bus, &mut (), &ticker).await.expect_err("not its stream");
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("the stream \"market\" is not allowed"), "{refused}");
    }
}
