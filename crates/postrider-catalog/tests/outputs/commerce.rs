//! A catalog with what Umbra's has not: topics, two versions of an event, types inside types, names that need care.

use std::collections::BTreeMap;

use postrider_catalog::{CatalogFile, EventEntry, FORMAT, PayloadSchema, SubscriberEntry};
use schemars::JsonSchema;
use serde_json::Value;

/// An order was paid.
#[allow(dead_code)]
#[derive(JsonSchema)]
struct OrderPaid {
    /// The order.
    order_id: i64,
    /// What was paid.
    amount: Money,
    payment: Payment,
    lines: Vec<Line>,
    /// Who gets it, if not the customer.
    recipient: Option<Address>,
    notes: BTreeMap<String, String>,
    place: (f64, f64),
}

/// An amount.
#[allow(dead_code)]
#[derive(JsonSchema)]
struct Money {
    /// In the smallest unit.
    amount: u64,
    currency: Currency,
}

#[allow(dead_code)]
#[derive(JsonSchema)]
enum Currency {
    /// The won.
    Krw,
    /// The euro.
    Eur,
}

#[allow(dead_code)]
#[derive(JsonSchema)]
#[serde(tag = "kind")]
enum Payment {
    Card { last_digits: String },
    Transfer { bank: String, reference: Option<String> },
}

#[allow(dead_code)]
#[derive(JsonSchema)]
struct Line {
    product_id: u64,
    /// The price of all pieces | without tax <net>.
    price: Money,
    parts: Vec<Line>,
}

#[allow(dead_code)]
#[derive(JsonSchema)]
#[schemars(rename = "Address/주소 <new>")]
struct Address {
    street: String,
}

#[allow(dead_code)]
#[derive(JsonSchema)]
struct OfProduct {
    product_id: u64,
}

fn schema<T: JsonSchema>() -> Option<PayloadSchema> {
    let writes: Value = schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .into();
    Some(PayloadSchema { writes, reads: None })
}

fn event(name: &str, version: u32, aggregate: &str, payload: Option<PayloadSchema>) -> EventEntry {
    EventEntry {
        name: name.to_owned(),
        version,
        stream: "commerce".to_owned(),
        aggregate: aggregate.to_owned(),
        ordering_key: "aggregate".to_owned(),
        sequenced: false,
        summary: Some(format!("{aggregate}: <b>see</b> {{the}} | \"order\".")),
        publishers: vec!["commerce-api".to_owned()],
        upcast_from: (1..version).collect(),
        payload,
    }
}

/// The catalog.
pub(crate) fn commerce() -> CatalogFile {
    let consumer = |name: &str, types: &str, topic: &str| SubscriberEntry {
        name: name.to_owned(),
        streams: Vec::new(),
        types: vec![types.to_owned()],
        handlers: BTreeMap::new(),
        destination: None,
        topics: vec![topic.to_owned()],
        topics_by_type: BTreeMap::new(),
    };
    let relay = SubscriberEntry {
        destination: Some("kafka".to_owned()),
        types: Vec::new(),
        ..consumer("to-kafka", "*", "{domain}-events")
    };
    CatalogFile {
        format: FORMAT,
        system: "commerce".to_owned(),
        events: vec![
            event("loopers.order.paid.v1", 1, "Order", schema::<OfProduct>()),
            event("loopers.order.paid.v1", 2, "Order", schema::<OrderPaid>()),
            event("loopers.like.created.v1", 1, "Product", schema::<OfProduct>()),
            event("loopers.like.canceled.v1", 1, "Product", schema::<OfProduct>()),
            event("loopers.product.viewed.v1", 1, "Product", schema::<OfProduct>()),
            event("loopers.stock.depleted.v1", 1, "Stock", None),
        ],
        subscribers: vec![
            consumer("ProductLikeEventConsumer", "loopers.like.*", "like-events"),
            consumer("ProductOrderEventConsumer", "loopers.order.*", "order-events"),
            consumer("ProductStockEventConsumer", "loopers.stock.*", "stock-events"),
            consumer("ProductViewEventConsumer", "loopers.product.*", "product-events"),
            relay,
        ],
    }
}
