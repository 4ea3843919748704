//! A destination of one's own: a sink that publishes to NATS JetStream. The sink is in `sink.rs`; here is how to use it.
//!
//! A sink only delivers and reports. The relay does the rest: leases, order, retries, dead letters, pauses while NATS is away.

mod sink;

use async_nats::jetstream::{self, stream::Config};
use postrider::sqlite::Outbox;
use postrider::{Event, Relay};
use serde::Serialize;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use sink::Nats;

#[derive(Serialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
    payment: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = SqliteConnectOptions::new().filename("shop.db").create_if_missing(true);
    let db = SqlitePool::connect_with(file).await?;
    let outbox = Outbox::migrated(&db).await?;

    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let jetstream = jetstream::new(async_nats::connect(url).await?);
    let orders =
        Config { name: "orders".to_owned(), subjects: vec!["orders".to_owned()], ..Config::default() };
    jetstream.get_or_create_stream(orders).await?;

    let relay = Relay::new(&outbox).subscribe("to-nats", |s| s.sink(Nats(jetstream))).start().await?;

    // A payment every second, until Ctrl-C. Stop the NATS server and start it again: nothing is lost.
    let ended = postrider::asked_to_end();
    tokio::pin!(ended);
    for payment in 1.. {
        let mut tx = outbox.begin().await?;
        outbox.record(&mut tx, &OrderPaid { order: 7, payment }).await?;
        tx.commit().await?;
        println!("recorded payment {payment}");
        if tokio::time::timeout(std::time::Duration::from_secs(1), &mut ended).await.is_ok() {
            break;
        }
    }
    relay.stop().await?;
    println!("stopped");
    Ok(())
}
