//! A catalog beside a real log: SQLite, with its archive.

use std::time::Duration;

use postrider::catalog::{Catalog, LogCheck, LogContents, check_log};
use postrider::store::{ArchiveOptions, Operate as _, Sweep};
use postrider::testing::{Destination, until_quiet};
use postrider::{EventMapping, NewEvent, Relay};
use postrider_testkit::Folder;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::SqlitePool;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Amount<T> {
    amount: T,
}

fn mapping<T: Serialize + 'static>(name: &str, version: u32) -> EventMapping<T> {
    EventMapping::new(name, "Order", |_: &T| "1".to_owned()).stream("orders").version(version)
}

fn catalog<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static>() -> Catalog {
    Catalog::new("shop").mapping(&mapping::<T>("OrderPaid", 1))
}

fn event(name: &str, version: u32, payload: &Value) -> NewEvent {
    let mut event = NewEvent::of("orders", name, "Order", "1", payload).expect("JSON");
    event.headers.set_schema_version(version);
    event
}

#[tokio::test]
async fn the_archive_of_a_store_on_sqlite_is_read_after_its_log() {
    let folder = Folder::new();
    let url = format!("sqlite:{}?mode=rwc", folder.path().join("shop.db").display());
    let pool = SqlitePool::connect(&url).await.expect("SQLite");
    let outbox = postrider::sqlite::Outbox::migrated(&pool).await.expect("tables");
    let mut recorded = Vec::new();
    for amount in [json!(5), json!("secret")] {
        let event = event("OrderPaid", 1, &json!({ "amount": amount }));
        recorded.push(outbox.record_outside_transaction(&event).await.expect("record"));
    }
    let relay =
        Relay::new(&outbox).subscribe("all", |s| s.sink(Destination::new())).start().await.expect("start");
    until_quiet(&relay, "all").await.expect("quiet");
    relay.stop().await.expect("stop");
    let archiving = ArchiveOptions::default();
    let sweep = Sweep::Archive { older_than: Duration::ZERO, limit: 100, archiving };
    assert_eq!(outbox.store().sweep(&sweep).await.expect("sweep").taken, 2);
    let archived: i64 =
        sqlx::query_scalar("select count(*) from postrider_archive").fetch_one(&pool).await.expect("rows");
    assert_eq!(archived, 2);
    let later = event("OrderPaid", 1, &json!({ "amount": "secret" }));
    recorded.push(outbox.record_outside_transaction(&later).await.expect("record"));

    let report =
        check_log(&catalog::<Amount<u64>>(), &outbox.store(), &LogCheck::default()).await.expect("read");
    assert!(report.complete);
    assert_eq!(report.tried[&("OrderPaid".to_owned(), 1)], 3);
    let unreadable: Vec<_> = report.unreadable.iter().map(|event| (event.event_id, event.archived)).collect();
    assert_eq!(unreadable, [(recorded[2], false), (recorded[1], true)]);
    let said = report.to_string();
    let line = format!(
        "error: event {} (in the archive): OrderPaid version 1: field amount: expected u64",
        recorded[1]
    );
    assert!(said.contains(&line) && !said.contains("secret"), "{said}");
}

#[tokio::test]
async fn an_integer_beyond_64_bits_is_read_by_its_schema_alone() {
    let outbox = postrider::testing::Outbox::new();
    let mut event = event("OrderPaid", 1, &json!({}));
    event.payload = postrider::Payload::Json(r#"{"amount":18446744073709551616}"#.to_owned());
    outbox.record_outside_transaction(&event).await.expect("record");
    let read = async |catalog: Catalog| {
        let by_file = Catalog::from_file(catalog.file().clone());
        check_log(&by_file, &outbox.store(), &LogCheck::default()).await.expect("read")
    };
    let report = read(catalog::<Amount<u128>>()).await;
    assert!(report.passed() && report.tried.len() == 1, "{report}");
    assert!(!read(catalog::<Amount<u64>>()).await.passed());
}

#[tokio::test]
async fn each_version_of_the_catalog_is_known_and_a_name_that_was_not_seen_is_said_once() {
    let outbox = postrider::testing::Outbox::new();
    for version in [1, 2, 3] {
        let event = event("OrderPaid", version, &json!({ "amount": 5 }));
        outbox.record_outside_transaction(&event).await.expect("record");
    }
    let catalog = catalog::<Amount<u64>>()
        .mapping(&mapping::<Amount<u64>>("OrderPaid", 2))
        .mapping(&mapping::<Amount<u64>>("OrderShown", 1))
        .mapping(&mapping::<Amount<u64>>("OrderShown", 2));
    let contents = LogContents::read(&outbox.store(), 100).await.expect("read");
    let unknown: Vec<_> =
        contents.unknown(catalog.file()).map(|seen| (seen.name.as_str(), seen.version)).collect();
    assert_eq!(unknown, [("OrderPaid", 3)]);
    assert_eq!(contents.unseen(catalog.file()).collect::<Vec<_>>(), ["OrderShown"]);
}

#[tokio::test]
async fn an_unreadable_event_behind_more_than_enough_good_ones_is_found() {
    let outbox = postrider::testing::Outbox::new();
    let amounts = std::iter::repeat_n(json!("secret"), 60).chain(std::iter::repeat_n(json!(5), 40));
    for amount in amounts {
        let event = event("OrderPaid", 1, &json!({ "amount": amount }));
        outbox.record_outside_transaction(&event).await.expect("record");
    }
    let options = LogCheck { per_version: 20, ..LogCheck::default() };
    let check = async || check_log(&catalog::<Amount<u64>>(), &outbox.store(), &options).await.expect("read");
    let report = check().await;
    let tried = report.tried[&("OrderPaid".to_owned(), 1)];
    assert!(!report.passed() && tried < 80, "{report}");
    assert_eq!(report.passed_over[&("OrderPaid".to_owned(), 1)], 100 - tried as u64);
    assert!(
        report
            .to_string()
            .contains(&format!("note: {tried} of 100 events of OrderPaid version 1 were tried"))
    );
    assert_eq!(report, check().await, "the same log gives the same report");
}

#[tokio::test]
async fn a_version_that_was_not_reached_is_named() {
    let outbox = postrider::testing::Outbox::new();
    for version in std::iter::once(1).chain(std::iter::repeat_n(2, 6_000)) {
        let event = event("OrderPaid", version, &json!({ "amount": 5 }));
        outbox.record_outside_transaction(&event).await.expect("record");
    }
    let same = |payload: Value| Ok::<_, std::convert::Infallible>(payload);
    let catalog = Catalog::new("shop")
        .mapping(&mapping::<Amount<u64>>("OrderPaid", 2))
        .upcasters(postrider::Upcasters::new().step("OrderPaid", 1, same));
    let options = LogCheck { rows: 5_000, ..LogCheck::default() };
    let report = check_log(&catalog, &outbox.store(), &options).await.expect("read");
    assert_eq!(report.not_reached, [("OrderPaid".to_owned(), 1)], "{report}");
    let whole = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    assert!(whole.complete && whole.not_reached.is_empty(), "{whole}");
}

#[tokio::test]
async fn a_type_without_a_schema_is_tried_on_the_log() {
    #[derive(Serialize, Deserialize, postrider::Event)]
    #[event(aggregate = "Order", id = order, stream = "orders")]
    struct OrderPaid {
        order: u64,
    }
    let outbox = postrider::testing::Outbox::new();
    for order in [json!(5), json!("secret")] {
        let event = event("OrderPaid", 1, &json!({ "order": order }));
        outbox.record_outside_transaction(&event).await.expect("record");
    }
    let catalog = Catalog::new("shop").event_without_schema::<OrderPaid>();
    let report = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    assert_eq!((report.tried.len(), report.unreadable.len()), (1, 1), "{report}");
    assert!(!report.to_string().contains("secret"), "{report}");
}
