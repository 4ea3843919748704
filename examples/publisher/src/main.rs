//! An application that only records: the relay is the program `postrider relay`, on another machine.
//!
//! The application needs no connection to the destination, no thread and no queue. Its role in the database needs one right:
//! `select postrider.grant_record('app')`.

use postrider::Event;
use postrider::postgres::Outbox;
use serde::Serialize;
use sqlx::PgPool;

/// An event that is only recorded needs no `Deserialize`.
#[derive(Serialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
}

/// Pays an order. The change and the event are in the application's own transaction: both are committed, or neither.
async fn pay(db: &PgPool, outbox: &Outbox, order: i64) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = db.begin().await?;
    let change = "insert into orders (id, payments) values ($1, 1)
        on conflict (id) do update set payments = orders.payments + 1 returning payments";
    let payments: i64 = sqlx::query_scalar(change).bind(order).fetch_one(&mut *tx).await?;
    let event_id = outbox.record(&mut tx, &OrderPaid { order }).await?;
    if payments > 1 {
        // `tx` is dropped here, which rolls back: the second payment is not stored, and its event never existed.
        return Err(format!("order {order} must not be paid twice").into());
    }
    tx.commit().await?;
    println!("order {order} is paid, event {event_id}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let order = std::env::args().nth(1).ok_or("usage: example-publisher ORDER")?.parse()?;
    let address =
        std::env::var("DATABASE_URL").map_err(|_| "DATABASE_URL must name a PostgreSQL database")?;
    let db = PgPool::connect(&address).await?;
    let table = "create table if not exists orders (id bigint primary key, payments bigint not null)";
    sqlx::raw_sql(table).execute(&db).await?;

    // `connect` checks Postrider's schema and changes nothing: `postrider migrate` has created it, with the relay's role.
    let outbox = Outbox::connect(&db).await?;
    pay(&db, &outbox, order).await
}
