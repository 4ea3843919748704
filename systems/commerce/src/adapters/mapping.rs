//! From a fact of the domain to an event of the log: its type, its aggregate, its source and its payload. The topic is no part of it:
//! the relay makes it of the type.

use postrider::{NewEvent, Payload};

use crate::adapters::payload;
use crate::domain::DomainEvent;

/// Who publishes.
pub const SOURCE: &str = "commerce-api";

/// An order was paid.
pub const ORDER_PAID: &str = "loopers.order.paid.v1";
/// A user likes a product.
pub const LIKE_CREATED: &str = "loopers.like.created.v1";
/// A user does not like a product any more.
pub const LIKE_CANCELED: &str = "loopers.like.canceled.v1";
/// A user looked at a product.
pub const PRODUCT_VIEWED: &str = "loopers.product.viewed.v1";
/// The last piece of a product was sold.
pub const STOCK_DEPLETED: &str = "loopers.stock.depleted.v1";

/// How a fact is written down. Another format is another function; the domain stays as it is.
pub type Encoding = fn(&DomainEvent) -> postrider::Result<NewEvent>;

/// The event of a fact, with a payload in JSON.
pub fn json(fact: &DomainEvent) -> postrider::Result<NewEvent> {
    Ok(event(fact, json_payload(fact)?))
}

/// The event of a fact, with this payload.
pub fn event(fact: &DomainEvent, payload: Payload) -> NewEvent {
    let (stream, event_type, aggregate_type, aggregate_id) = named(fact);
    let mut event = NewEvent::new(stream, event_type, aggregate_type, aggregate_id.to_string(), payload);
    event.headers.set_source(SOURCE);
    event.headers.set_schema_version(1);
    event
}

/// Stream, type, and aggregate. The aggregate's id is the key of the record in Kafka: what happens to one product stays in order.
fn named(fact: &DomainEvent) -> (&'static str, &'static str, &'static str, i64) {
    match fact {
        DomainEvent::OrderPaid(fact) => ("order", ORDER_PAID, "Order", fact.order_id),
        DomainEvent::LikeCreated(fact) => ("like", LIKE_CREATED, "Product", fact.product_id),
        DomainEvent::LikeCanceled(fact) => ("like", LIKE_CANCELED, "Product", fact.product_id),
        DomainEvent::ProductViewed(fact) => ("product", PRODUCT_VIEWED, "Product", fact.product_id),
        DomainEvent::StockDepleted(fact) => ("stock", STOCK_DEPLETED, "Stock", fact.product_id),
    }
}

fn json_payload(fact: &DomainEvent) -> postrider::Result<Payload> {
    match fact {
        DomainEvent::OrderPaid(fact) => Payload::json(&payload::OrderPaid {
            order_id: fact.order_id,
            payment_id: fact.payment_id,
            amount: fact.amount,
        }),
        DomainEvent::LikeCreated(fact) => {
            Payload::json(&payload::Like { user_id: fact.user_id, product_id: fact.product_id })
        }
        DomainEvent::LikeCanceled(fact) => {
            Payload::json(&payload::Like { user_id: fact.user_id, product_id: fact.product_id })
        }
        DomainEvent::ProductViewed(fact) => {
            Payload::json(&payload::ProductViewed { product_id: fact.product_id, user_id: fact.user_id })
        }
        DomainEvent::StockDepleted(fact) => {
            Payload::json(&payload::StockDepleted { product_id: fact.product_id })
        }
    }
}
