//! Records that a test writes itself: twice, out of order, or no events at all.

use commerce::adapters::mapping;
use commerce::domain::DomainEvent;
use postrider::Uuid;
use postrider_testkit::PATIENCE;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) struct Feed {
    producer: BaseProducer,
    topic: String,
}

impl Feed {
    pub(crate) fn new(world: &World, topic: &str) -> Self {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", &world.brokers)
            .set("enable.idempotence", "true")
            .create()
            .expect("a producer");
        Self { producer, topic: world.name(topic) }
    }

    /// A record as it is, in the first partition.
    pub(crate) fn raw(&self, key: &str, value: &str, content_type: &str) {
        let headers = OwnedHeaders::new().insert(Header { key: "content-type", value: Some(content_type) });
        let record = BaseRecord::to(&self.topic).partition(0).key(key).payload(value).headers(headers);
        self.producer.send(record).map_err(|(error, _)| error).expect("sent");
    }

    /// An event of this type, as the relay writes it.
    pub(crate) fn event(&self, id: Uuid, event_type: &str, key: &str, data: &Value) {
        let event = json!({
            "specversion": "1.0", "id": id, "type": event_type, "source": "commerce-api", "subject": key,
            "aggregatetype": "Product", "time": "2026-11-18T10:30:00Z", "datacontenttype": "application/json", "data": data,
        });
        self.raw(key, &event.to_string(), "application/cloudevents+json; charset=utf-8");
    }

    /// A fact with this id.
    pub(crate) fn fact(&self, id: Uuid, fact: &DomainEvent) {
        let event = mapping::json(fact).expect("JSON");
        let data: Value = event.payload.decode().expect("JSON");
        self.event(id, &event.event_type, &event.aggregate_id, &data);
    }

    /// Waits until all of it is in the topic.
    pub(crate) fn flush(&self) {
        self.producer.flush(PATIENCE).expect("taken");
    }
}
