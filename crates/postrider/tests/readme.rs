//! The README's example, as it stands there, is compiled.
#![cfg(feature = "postgres")]

use postrider::postgres::{Outbox, Tx};
use postrider::{Event, Failure, Received, Relay, Retry};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(stream = "orders", aggregate = "Order", id = order)]
struct OrderPaid {
    order: i64,
}

#[derive(Serialize, Deserialize, Event)]
#[event(aggregate = "Licence", id = order)]
struct LicenceGranted {
    order: i64,
}

async fn send_mail(_: i64) -> Result<(), std::io::Error> {
    Ok(())
}

async fn pay(db: &sqlx::PgPool, outbox: &Outbox, order: i64) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = db.begin().await?;
    sqlx::query("update orders set paid = true where id = $1").bind(order).execute(&mut *tx).await?;
    outbox.record(&mut tx, &OrderPaid { order }).await?;
    Ok(tx.commit().await?)
}

async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
    send_mail(event.order).await?;
    Ok(())
}

async fn grant(event: Received<OrderPaid>, mut tx: Tx) -> Result<(), Failure> {
    sqlx::query("insert into licence values ($1)").bind(event.order).execute(&mut *tx).await?;
    Ok(tx.record(&LicenceGranted { order: event.order }).await?)
}

async fn serve(db: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
    let outbox = Outbox::migrated(&db).await?;
    let relay = Relay::new(&outbox)
        .subscribe("receipts", |s| s.on(receipt).retry(Retry::exponential().max_attempts(5)))
        .subscribe("licences", |s| s.on(grant).lanes(2))
        .on_death(|death| async move {
            tracing::error!(event = %death.event.event_id, "given up: {}", death.failure.message);
        })
        .start()
        .await?;
    pay(&db, &outbox, 7).await?;
    relay.stop().await?;
    Ok(())
}

/// The lines of the README's blocks stand above, word for word but for their layout.
#[test]
fn the_readme_says_what_compiles() {
    let squeezed =
        |text: &str| text.split_whitespace().collect::<String>().replace(",)", ")").replace(";}", "}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let (readme, this) =
        (std::fs::read_to_string(path).expect("README.md"), squeezed(include_str!("readme.rs")));
    let blocks = readme.split("```rust\n").skip(1).filter_map(|block| block.split("```").next()).take(2);
    let mut compared = 0;
    for line in blocks.flat_map(str::lines).map(str::trim) {
        let code = squeezed(line);
        if code.is_empty()
            || line.starts_with("//")
            || line.starts_with("use ")
            || line.starts_with("#[derive")
        {
            continue;
        }
        assert!(this.contains(&code), "the README says {line:?}, and what compiles does not");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} lines were compared");
    let _ = serve;
}
