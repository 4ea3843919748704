//! Values of records that are not the event's payload: envelopes and tombstones.

mod support;

use postrider::store::OutboxSource;
use postrider::testing::Outbox;
use postrider::{Envelope, Failure, NewEvent, Received, Relay, Uuid};
use postrider_kafka::{Format, Kafka, KafkaBuilder};
use support::{PATIENCE, Seen, consumer, records, topics, until};

/// Records two events of a setting, and delivers them to its topic.
async fn deliver(sink: KafkaBuilder, topic: &str) -> [Uuid; 2] {
    let outbox = Outbox::new();
    let event = |kind: &str| NewEvent::of("settings", kind, "Setting", "theme", &"dark").expect("an event");
    let ids = [
        outbox.record_alone(&event("SettingChanged")).await.expect("recorded"),
        outbox.record_alone(&event("SettingRemoved")).await.expect("recorded"),
    ];
    let sink = sink.topic(topic).connect().await.expect("connected");
    let relay = Relay::new(&outbox).subscribe("kafka", |s| s.sink(sink)).start().await.expect("started");
    relay.delivered("kafka", ids[1], PATIENCE).await.expect("delivered");
    relay.stop().await.expect("stopped");
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_an_envelope_has_the_fields_of_the_user() {
    let brokers = topics(&[("enveloped", 1)]);
    let meta = Envelope::builder().field("of", "{aggregate_type} {aggregate_id}").constant("v", &1);
    let envelope =
        Envelope::builder().field("eventId", "{id}").field("data", "{payload}").object("meta", meta);
    let envelope = envelope.build().expect("an envelope");
    let ids = deliver(Kafka::builder(&brokers).envelope(envelope), "enveloped").await;
    let written = records(&brokers, "enveloped", 2);
    for (record, id) in written.iter().zip(ids) {
        let value = format!(r#"{{"eventId":"{id}","data":"dark","meta":{{"of":"Setting theme","v":1}}}}"#);
        assert_eq!((&*record.key, &*record.value), ("theme", &*value));
        assert_eq!(record.headers["content-type"], "application/json");
    }
    assert_eq!(written.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_has_no_value_in_any_format_and_a_handler_gets_it_as_null() {
    let formats = [("binary", Format::Binary), ("structured", Format::Structured), ("bare", Format::Payload)];
    let brokers = topics(&formats.map(|(name, _)| (name, 1)));
    for (topic, format) in formats {
        let sink = Kafka::builder(&brokers).format(format).tombstone_of("SettingRemoved");
        let ids = deliver(sink, topic).await;
        let [changed, removed] = records(&brokers, topic, 2).try_into().expect("two records");
        assert_eq!((changed.is_tombstone, removed.is_tombstone), (false, true), "{topic}");
        assert_eq!((&*changed.key, &*removed.key), ("theme", "theme"));
        let (seen, changes) = (Seen::<Uuid>::default(), Seen::<Uuid>::default());
        let (removals, told) = (seen.clone(), changes.clone());
        let running = consumer(&Outbox::new(), &brokers, topic, topic)
            .on_type("SettingRemoved", move |event: Received<()>| {
                removals.push(event.event().event_id);
                async { Ok::<(), Failure>(()) }
            })
            .on_type("SettingChanged", move |event: Received<String>| {
                told.push(event.event().event_id);
                async { Ok::<(), Failure>(()) }
            })
            .start()
            .await
            .expect("started");
        until("both are handled", async || seen.len() + changes.len() == 2).await;
        running.stop().await.expect("stopped");
        assert_eq!((seen.all(), changes.all()), (vec![ids[1]], vec![ids[0]]), "{topic}");
    }
}
