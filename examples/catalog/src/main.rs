//! Reads the events of a log with the types of this application: `cargo run -p example-catalog -- sqlite:shop.db`.

use postrider::catalog::{Catalog, LogCheck, check_log};
use postrider::{Event, Upcasters, sqlite::Outbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order was paid.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order, stream = "orders", version = 2)]
struct OrderPaid {
    order: i64,
    cents: i64,
}

/// The catalog of this application; its tests write it to events.json.
fn catalog() -> Catalog {
    let upcasters = Upcasters::new().of::<OrderPaid>(1, |mut old| {
        old["cents"] = old["amount"].take();
        old
    });
    Catalog::new("shop").event::<OrderPaid>().upcasters(upcasters)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("name the database, as in sqlite:shop.db")?;
    let outbox = Outbox::connect(&sqlx::SqlitePool::connect(&url).await?).await?;
    let report = check_log(&catalog(), &outbox.store(), &LogCheck::default()).await?;
    println!("{report}");
    std::process::exit(i32::from(!report.passed()));
}
