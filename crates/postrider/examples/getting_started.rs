//! A shop that takes a payment, and writes a receipt for it: the example of `docs/getting-started.md`.

use std::time::Duration;

use postrider::sqlite::{Outbox, Tx};
use postrider::{Event, Failure, Received, Relay, Uuid};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
}

/// Changes the order and records the event: both, or neither.
async fn pay(outbox: &Outbox, order: i64) -> Result<Uuid, Box<dyn std::error::Error>> {
    let mut tx = outbox.begin().await?;
    let pay = "insert into orders (id, payments) values ($1, 1)
        on conflict (id) do update set payments = payments + 1";
    sqlx::query(pay).bind(order).execute(&mut *tx).await?;
    let event_id = outbox.record(&mut tx, &OrderPaid { order }).await?;
    tx.commit().await?;
    Ok(event_id)
}

/// Writes a receipt in the transaction that marks the event as handled: once, whatever happens.
async fn receipt(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    sqlx::query("insert into receipts values ($1)").bind(event.order).execute(&mut *tx).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteConnectOptions::new().filename("shop.db").create_if_missing(true);
    let db = SqlitePool::connect_with(file).await?;
    let tables = "create table if not exists orders (id integer primary key, payments integer not null);
        create table if not exists receipts (order_id integer not null)";
    sqlx::raw_sql(tables).execute(&db).await?;

    let outbox = Outbox::migrated(&db).await?;
    let relay = Relay::new(&outbox).subscribe("receipts", |s| s.on(receipt)).start().await?;

    let event_id = pay(&outbox, 7).await?;
    relay.delivered("receipts", event_id, Duration::from_secs(10)).await?;
    let (receipts,): (i64,) = sqlx::query_as("select count(*) from receipts").fetch_one(&db).await?;
    println!("receipts written: {receipts}");

    relay.stop().await?;
    Ok(())
}
