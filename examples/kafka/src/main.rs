//! Kafka, both ways: a shop records payments, a relay sends them to a topic, and a consumer handles them.
//!
//! Usually these are two services: the shop with its relay, and billing with its consumer. Here they share a process, and each
//! has a database of its own.

use postrider::kafka::{Consumer, Kafka};
use postrider::sqlite::{Outbox, Tx};
use postrider::{Event, Failure, Received, Relay};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
    payment: i64,
}

/// The shop: changes the order and records the event, in one transaction. Kafka may be away meanwhile.
async fn pay(shop: &Outbox, order: i64) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = shop.begin().await?;
    let change = "insert into orders (id, payments) values ($1, 1)
        on conflict (id) do update set payments = payments + 1 returning payments";
    let payment = sqlx::query_scalar(change).bind(order).fetch_one(&mut *tx).await?;
    shop.record(&mut tx, &OrderPaid { order, payment }).await?;
    Ok(tx.commit().await?)
}

/// Billing: Kafka may bring a record twice, but the `Tx` marks the event in the inbox of billing's own database, so there is one
/// invoice for each payment.
async fn invoice(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    sqlx::query("insert into invoices (order_id, payment) values ($1, $2)")
        .bind(event.order)
        .bind(event.payment)
        .execute(&mut *tx)
        .await?;
    println!("invoice for payment {} of order {}", event.payment, event.order);
    Ok(())
}

/// Opens a database with these tables, and Postrider's beside them.
async fn open(file: &str, tables: &'static str) -> Result<Outbox, Box<dyn std::error::Error>> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let db = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(tables).execute(&db).await?;
    Ok(Outbox::migrated(&db).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let brokers = std::env::var("KAFKA_BROKERS").unwrap_or_else(|_| "127.0.0.1:9092".to_owned());
    let topic = std::env::var("TOPIC").unwrap_or_else(|_| "orders".to_owned());
    let orders = "create table if not exists orders (id integer primary key, payments integer not null)";
    let invoices =
        "create table if not exists invoices (order_id integer not null, payment integer not null)";
    let shop = open("shop.db", orders).await?;
    let billing = open("billing.db", invoices).await?;

    // To Kafka. The key of a record is the order, so the payments of an order stay in their order, in one partition.
    let kafka = Kafka::builder(&brokers).topic(&topic).connect().await?;
    let relay = Relay::new(&shop).subscribe("to-kafka", |s| s.sink(kafka)).start().await?;

    // From Kafka. The group commits an offset only when the records up to it are handled.
    let consumer = Consumer::new(&billing, &brokers, "billing").topics([&topic]).on(invoice).start().await?;

    for order in [7, 8, 7] {
        pay(&shop, order).await?;
    }
    println!("recorded 3 payments; press Ctrl-C to end");

    postrider::asked_to_end().await;
    consumer.stop().await?;
    relay.stop().await?;
    println!("stopped");
    Ok(())
}
