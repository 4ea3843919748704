//! The lock's file, and what stays said of the schemas in it.

use postrider::EventMapping;
use postrider::catalog::{Catalog, CatalogFile, Lock, Severity, render, schema_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Paid {
    order: u64,
}

fn catalog(name: &str, stream: &str) -> Catalog {
    let mapping = EventMapping::new(name, "Order", |_: &Paid| "1".to_owned()).stream(stream);
    Catalog::new("shop").mapping(&mapping)
}

fn lock(catalogs: &[&Catalog]) -> Lock {
    let mut lock = Lock::new();
    catalogs.iter().for_each(|catalog| lock.update(catalog.file()));
    lock
}

#[test]
fn a_lock_with_a_key_twice_is_refused_because_the_first_one_would_be_lost() {
    let text = lock(&[&catalog("OrderPaid", "orders"), &catalog("OrderShown", "orders")]).to_json();
    assert!(Lock::parse(&text).is_ok());
    let merged = text.replace("OrderShown", "OrderPaid");
    let refusal = Lock::parse(&merged).expect_err("a key twice").to_string();
    assert!(refusal.contains("duplicate key `OrderPaid`; keys must be unique at line "), "{refusal}");
    assert!(refusal.contains("merge their contents into one"), "{refusal}");
}

#[test]
fn a_lock_whose_schema_was_edited_by_hand_is_refused_with_what_to_do() {
    let text = lock(&[&catalog("OrderPaid", "orders")]).to_json();
    let edited = text.replace("uint64", "uint32");
    assert_ne!(edited, text);
    let refusal = Lock::parse(&edited).expect_err("edited").to_string();
    assert!(
        refusal.contains(
            "OrderPaid version 1: a schema does not match its hash, so the lock was edited by hand"
        ),
        "{refusal}"
    );
    assert!(refusal.contains("run: postrider catalog check --update"), "{refusal}");
    // The order of keys is no edit.
    let sorted: Value = serde_json::from_str(&text).expect("JSON");
    assert!(Lock::parse(&sorted.to_string()).is_ok());
}

#[test]
fn a_move_to_another_stream_is_a_warning_until_the_lock_is_updated() {
    let (before, after) = (catalog("OrderPaid", "orders"), catalog("OrderPaid", "payments"));
    let mut lock = lock(&[&before]);
    let report = after.check(&lock);
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.reason, "its stream changes from `orders` to `payments`");
    lock.update(after.file());
    let again = after.check(&lock);
    assert!(again.findings.is_empty() && again.compared == 2, "{again}");
}

#[test]
fn a_schema_that_is_lost_is_a_warning_until_the_lock_is_updated() {
    let mapping = EventMapping::new("OrderPaid", "Order", |_: &Paid| "1".to_owned()).stream("orders");
    let after = Catalog::new("shop").mapping_without_schema(&mapping);
    let mut lock = lock(&[&catalog("OrderPaid", "orders")]);
    let report = after.check(&lock);
    assert!(report.findings[0].reason.contains("its type no longer has a schema"), "{report}");
    lock.update(after.file());
    assert!(after.check(&lock).findings.is_empty());
}

#[test]
fn a_lock_is_written_as_a_whole() {
    let path = std::env::temp_dir().join(format!("postrider-lock-{}.json", std::process::id()));
    let lock = lock(&[&catalog("OrderPaid", "orders")]);
    lock.write(&path).expect("written");
    let text = std::fs::read_to_string(&path).expect("the lock");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(Lock::parse(&text).expect("a lock"), lock);
    let refusal = lock.write("/nowhere/events.lock.json").expect_err("no folder").to_string();
    assert!(refusal.contains("can't write /nowhere/events.lock.json: "), "{refusal}");
}

#[test]
fn a_name_in_the_address_of_a_schema_is_percent_encoded() {
    let payload = json!({ "writes": { "type": "object" } });
    let event = json!({
        "name": "order/paid ä", "version": 1, "stream": "orders", "aggregate": "Order", "ordering_key": "aggregate",
        "payload": payload,
    });
    let text = json!({ "format": 1, "system": "shop", "events": [event], "subscribers": [] }).to_string();
    let file = CatalogFile::parse(&text).expect("a catalog");
    let schemas = file.data_schemas("https://schemas.example.com/{name}/{version}");
    let expected = "https://schemas.example.com/order%2Fpaid%20%C3%A4/1";
    assert!(format!("{schemas:?}").contains(expected), "{schemas:?}");
    let payload = file.events[0].payload.as_ref();
    assert!(render::asyncapi(&file).contains(&schema_hash(payload)), "{}", render::asyncapi(&file));
}
