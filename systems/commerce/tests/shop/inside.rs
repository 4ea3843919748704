//! The inside of the shop: what it names, what it publishes, and how little a change of format costs.

use std::path::Path;

use commerce::adapters::avro::{CONTENT_TYPE, avro};
use commerce::adapters::mapping;
use commerce::adapters::postgres::PgUnits;
use commerce::application::orders;
use commerce::domain::{DomainEvent, Line};
use postrider::Payload;
use serde_json::Value;
use story::imports::{OUTSIDE, lines_naming, naming};

use crate::world::{World, depleted, liked, paid, unliked, viewed};

/// What the inside must not name beside what no system's may.
const ALSO: [&str; 5] = ["serde", "serde_json", "uuid", "adapters", "processes"];

/// C1: domain and application name ports of their own alone: no Kafka, no JSON, no database.
#[test]
fn the_domain_and_the_application_name_nothing_of_the_outside() {
    let words = [OUTSIDE, &ALSO[..]].concat();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for folder in ["domain", "application"] {
        assert_eq!(naming(&source.join(folder), &words), Vec::<String>::new());
    }
    for planted in [
        "use serde::Serialize;",
        "use crate::adapters::mapping;",
        "use crate::{adapters::mapping, domain::Line};",
        "    processes::settings,",
        "use crate::{domain::Line, adapters};",
        "use postrider::Event;",
    ] {
        assert_eq!(lines_naming(planted, &words).len(), 1, "{planted}");
    }
    let names_adapters = naming(&source.join("adapters"), &words);
    assert!(names_adapters.len() > 10, "the check finds what is there");
}

/// C1, C2, C10: the five events of the document with their fields, types and aggregates; the domain structs have none of these names.
#[test]
fn each_fact_has_its_type_its_aggregate_and_its_fields() {
    let table: [(DomainEvent, &str, &str, &str, &[&str]); 5] = [
        (paid(123), "loopers.order.paid.v1", "Order", "123", &["amount", "orderId", "paymentId"]),
        (liked(7, 9), "loopers.like.created.v1", "Product", "7", &["productId", "userId"]),
        (unliked(7, 9), "loopers.like.canceled.v1", "Product", "7", &["productId", "userId"]),
        (viewed(7, 9), "loopers.product.viewed.v1", "Product", "7", &["productId", "userId"]),
        (depleted(7), "loopers.stock.depleted.v1", "Stock", "7", &["productId"]),
    ];
    for (fact, event_type, aggregate_type, aggregate_id, fields) in table {
        let event = mapping::json(&fact).expect("an event");
        assert_eq!(event.event_type, event_type);
        assert_eq!(
            (event.aggregate_type.as_str(), event.aggregate_id.as_str()),
            (aggregate_type, aggregate_id)
        );
        assert_eq!(event.headers.source(), Some("commerce-api"), "{event_type}");
        assert_eq!(event.ordering_key, None, "the aggregate's id is the key of the record");
        let payload: Value = event.payload.decode().expect("JSON");
        let mut names: Vec<&str> =
            payload.as_object().expect("an object").keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, fields, "{event_type}");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/domain/event.rs");
    let text = std::fs::read_to_string(source).expect("the file");
    for word in ["loopers", "-events", "rename", "Serialize", "topic"] {
        assert!(!text.contains(word), "the domain must not know {word}");
    }
}

/// C1: the same service with another encoding records the same event as Avro, and nothing of the domain changes for it.
#[tokio::test]
async fn another_format_is_another_mapping_and_the_domain_stays_as_it_is() {
    let world = World::new(&[]).await;
    let units = PgUnits::new(world.outbox.clone(), avro);
    let product = world.product(5).await;
    let order =
        orders::place(&units, 1, &[Line { product_id: product, quantity: 2 }]).await.expect("an order");
    let paid = orders::pay(&units, order).await.expect("paid");
    let sql = "select event_type, content_type, content from postrider.event";
    let row: (String, String, Vec<u8>) = sqlx::query_as(sql).fetch_one(&world.pool).await.expect("one event");
    assert_eq!((row.0.as_str(), row.1.as_str()), (mapping::ORDER_PAID, CONTENT_TYPE));
    // Small numbers are one byte each, doubled; 2000 is 4000 in two bytes.
    assert_eq!(row.2, [(order * 2) as u8, (paid.payment_id * 2) as u8, 0xa0, 0x1f]);
    let Payload::Bytes { bytes, .. } = avro(&crate::world::paid(-1)).expect("an event").payload else {
        panic!("no bytes")
    };
    assert_eq!(bytes, [1, 1, 0xd0, 0x0f]);
}
