//! What a record looks like to those who read it.

use commerce::processes::settings::RELAY;

use crate::world::{TOPICS, World, depleted, liked, paid, unliked, viewed};

/// C2, C3, C10: CloudEvents with the document's values, in the topic that the type's domain names, keyed by the aggregate's id.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_a_cloud_event_in_the_topic_of_its_domain_with_its_aggregate_as_key() {
    let world = World::new(&TOPICS).await;
    let table = [
        (paid(123), "order-events", "loopers.order.paid.v1", "Order", "123"),
        (liked(7, 9), "like-events", "loopers.like.created.v1", "Product", "7"),
        (viewed(7, 9), "product-events", "loopers.product.viewed.v1", "Product", "7"),
        (depleted(7), "stock-events", "loopers.stock.depleted.v1", "Stock", "7"),
        (unliked(7, 9), "like-events", "loopers.like.canceled.v1", "Product", "7"),
    ];
    let mut ids = Vec::new();
    for (fact, ..) in &table {
        ids.push(world.publish(fact.clone()).await.to_string());
    }
    let _relay = world.relay("one", &[]);
    world.until_sent().await;
    for ((_, topic, event_type, aggregate_type, key), id) in table.iter().zip(ids) {
        let records = world.topic(topic).records();
        let record = records.iter().find(|record| record.id() == id).expect(event_type);
        let event = record.json();
        assert_eq!(record.key, *key, "{event}");
        assert_eq!((&event["type"], &event["subject"]), (&(*event_type).into(), &(*key).into()), "{event}");
        assert_eq!(event["aggregatetype"], *aggregate_type, "{event}");
        assert_eq!(
            (&event["source"], &event["specversion"]),
            (&"commerce-api".into(), &"1.0".into()),
            "{event}"
        );
        let time = event["time"].as_str().expect("a time");
        assert!(time.len() >= 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z'), "ISO 8601: {time}");
        assert!(event["data"].is_object() && event.get("correlationid").is_none(), "{event}");
    }
    assert_eq!(world.topic("like-events").count(), 2, "the two types of a domain share a topic");
}

/// C2: an envelope with exactly the document's field names, for those who have such consumers.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_can_have_exactly_the_documents_fields() {
    let world = World::new(&["order-events"]).await;
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("envelope.toml");
    let file = std::fs::read_to_string(file).expect("the file");
    let (_, fields) = file.split_once("[sink.kafka.envelope]").expect("the envelope");
    let envelope = format!("[sink.kafka.envelope]{fields}\n[retention]");
    assert!(RELAY.contains("[retention]"));
    let changes = [
        ("format = \"structured\"", "format = \"envelope\""),
        ("attributes = [\"aggregatetype\"]\n", ""),
        ("[retention]", envelope.as_str()),
    ];
    let id = world.publish(paid(123)).await.to_string();
    let _relay = world.relay("one", &changes);
    world.until_sent().await;
    let record = world.topic("order-events").records().pop().expect("a record");
    let names: Vec<&str> = ["id", "type", "source", "aggregateType", "aggregateId", "time", "payload"].into();
    let event = record.json();
    let mut found: Vec<&String> = event.as_object().expect("an object").keys().collect();
    let mut wanted = names.clone();
    found.sort();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!((&event["id"], &event["aggregateId"]), (&id.into(), &"123".into()));
    assert_eq!(event["payload"]["orderId"], 123);
    assert_eq!(record.headers["content-type"], "application/json");
}
