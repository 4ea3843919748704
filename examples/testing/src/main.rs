//! An application and its tests. The tests are the point: see `tests.rs` beside this file.
//!
//! The application is made so that tests can take its parts: `relay` gets the destination from outside, and everything works on
//! any database that it is given.

use postrider::sqlite::{Outbox, Tx};
use postrider::store::{Lines, Sink};
use postrider::{CloudEvents, Event, Failure, Received, Relay};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
    amount: i64,
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(stream = "parcels", aggregate = "Order", id = order)]
struct ParcelPacked {
    order: i64,
}

/// Pays an order: the change and the event are one transaction.
async fn pay(outbox: &Outbox, order: i64, amount: i64) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = outbox.begin().await?;
    sqlx::query("insert into payments (order_id, amount) values ($1, $2)")
        .bind(order)
        .bind(amount)
        .execute(&mut *tx)
        .await?;
    outbox.record(&mut tx, &OrderPaid { order, amount }).await?;
    if amount <= 0 {
        return Err(format!("the amount must be greater than 0, and is {amount}").into());
    }
    Ok(tx.commit().await?)
}

/// Packs a parcel for a paid order. The parcel, and the event that it is packed, are committed with the mark that the payment is
/// handled.
async fn pack(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    sqlx::query("insert into parcels (order_id) values ($1)").bind(event.order).execute(&mut *tx).await?;
    tx.record(&ParcelPacked { order: event.order }).await?;
    Ok(())
}

/// The relay of the application. Packed parcels are announced to the carrier.
fn relay(outbox: &Outbox, carrier: impl Sink) -> Relay<Outbox> {
    Relay::new(outbox)
        .subscribe("packing", |s| s.on(pack))
        .subscribe("carrier", |s| s.streams(["parcels"]).sink(carrier))
}

/// Creates the tables of the application.
async fn create_tables(db: &SqlitePool) -> sqlx::Result<()> {
    let tables = "create table if not exists payments (order_id integer not null, amount integer not null);
        create table if not exists parcels (order_id integer not null)";
    sqlx::raw_sql(tables).execute(db).await.map(drop)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteConnectOptions::new().filename("shop.db").create_if_missing(true);
    let db = SqlitePool::connect_with(file).await?;
    create_tables(&db).await?;
    let outbox = Outbox::migrated(&db).await?;

    pay(&outbox, 7, 25).await?;
    // The carrier is stdout here: a line for each event.
    relay(&outbox, Lines::stdout(CloudEvents::default())).run().await?;
    Ok(())
}

#[cfg(test)]
mod tests;
