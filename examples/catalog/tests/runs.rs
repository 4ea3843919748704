//! The program that checks a log, as the documents show it.

use std::process::{Command, Output};

use postrider::NewEvent;
use postrider::sqlite::Outbox;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

fn check(url: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_example-catalog")).arg(url).output().expect("it runs")
}

#[tokio::test]
async fn the_program_in_the_documents_finds_what_its_types_can_not_read() {
    let path =
        std::env::temp_dir().join(format!("postrider-catalog-{}.db", postrider::Uuid::new_v4().simple()));
    let url = format!("sqlite:{}", path.display());
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let db = SqlitePool::connect_with(options).await.expect("a file");
    let outbox = Outbox::migrated(&db).await.expect("migrated");
    let record = async |version: u32, payload: serde_json::Value| {
        let mut event = NewEvent::of("orders", "OrderPaid", "Order", "1", &payload).expect("JSON");
        event.headers.set_schema_version(version);
        outbox.record_outside_transaction(&event).await.expect("recorded")
    };
    record(1, json!({ "order": 1, "amount": 5 })).await;
    record(2, json!({ "order": 1, "cents": 5 })).await;
    let good = check(&url);
    assert_eq!(String::from_utf8_lossy(&good.stdout), "2 events of the log tried, 0 can't be read\n");
    assert!(good.status.success());

    let id = record(1, json!({ "order": 1, "amount": "secret" })).await;
    let bad = check(&url);
    let text = String::from_utf8_lossy(&bad.stdout).into_owned();
    db.close().await;
    let _ = std::fs::remove_file(&path);
    assert_eq!(bad.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("error: event {id}: OrderPaid version 1: ")), "{text}");
    assert!(text.contains("field cents: expected i64") && !text.contains("secret"), "{text}");
}
