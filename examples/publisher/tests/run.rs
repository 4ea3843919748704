//! The example runs: what it commits is delivered by a relay elsewhere, and what it rolls back is not.

use std::process::{Command, Output};
use std::str;

use postrider::Relay;
use postrider::postgres::Outbox;
use postrider::testing::{Destination, until_quiet};
use postrider_testkit::postgres::Database;
use sqlx::PgPool;

fn publish(database: &Database, order: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-publisher"));
    command.arg(order).env("DATABASE_URL", database.url()).output().expect("the example runs")
}

#[tokio::test]
async fn what_it_commits_is_delivered_by_a_relay_elsewhere() {
    let database = Database::new().await;
    let unready = publish(&database, "7");
    let said = str::from_utf8(&unready.stderr).expect("text");
    assert!(!unready.status.success() && said.contains("migrate"), "{said}");

    let db = PgPool::connect_with(database.options()).await.expect("connected");
    let outbox = Outbox::migrated(&db).await.expect("migrated");
    let shop = Destination::new();
    let relay = Relay::new(&outbox).subscribe("shop", |s| s.sink(shop.clone()));
    let relay = relay.start().await.expect("a relay");

    let paid = publish(&database, "7");
    assert!(paid.status.success(), "{paid:?}");
    let twice = publish(&database, "7");
    assert!(!twice.status.success(), "{twice:?}");
    let said = str::from_utf8(&twice.stderr).expect("text");
    assert!(said.contains("order 7 must not be paid twice"), "{said}");
    assert!(publish(&database, "8").status.success());

    until_quiet(&relay, "shop").await.expect("all is delivered");
    let delivered = shop.delivered();
    let orders: Vec<&str> = delivered.iter().map(|event| event.aggregate_id.as_str()).collect();
    assert_eq!(orders, ["7", "8"]);
    let id = delivered[0].event_id.to_string();
    assert!(str::from_utf8(&paid.stdout).expect("text").contains(&id), "{paid:?}");
    relay.stop().await.expect("stopped");
    db.close().await;
}
