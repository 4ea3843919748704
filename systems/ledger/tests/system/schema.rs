//! The schema of the events: only additions pass.

use ledger::adapters::wire::{catalog, upcasters};
use postrider::catalog::{Catalog, CatalogFile, Lock};
use serde_json::{Value, json};

const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/events.lock.json");

/// The catalog with its payloads changed by hand.
fn changed(change: impl Fn(&mut Value)) -> CatalogFile {
    let mut file: Value = serde_json::from_str(&catalog().to_json()).expect("JSON");
    for event in file["events"].as_array_mut().expect("events") {
        let sides = event["payload"].as_object_mut().expect("a payload").values_mut();
        sides.filter(|side| side.is_object()).for_each(&change);
    }
    serde_json::from_value(file).expect("a catalog")
}

fn lock() -> Lock {
    Lock::parse(&std::fs::read_to_string(LOCK).expect("the lock")).expect("a lock")
}

/// What version 1 was: the same without `currency`.
fn version_1() -> CatalogFile {
    let mut file = changed(|payload| {
        payload["properties"].as_object_mut().expect("fields").remove("currency");
    });
    for event in &mut file.events {
        event.version = 1;
        event.upcast_from.clear();
    }
    file
}

/// L6: the catalog of today passes the lock, which has version 1 and 2; a removed, a retyped and a new required field are refused.
#[test]
fn only_additions_pass_the_lock() {
    let mut wanted = Lock::new();
    wanted.update(&version_1());
    wanted.update(catalog().file());
    if std::env::var_os("UPDATE_LOCK").is_some() {
        std::fs::write(LOCK, wanted.to_json()).expect("written");
    }
    assert_eq!(lock().to_json(), wanted.to_json(), "UPDATE_LOCK=1 writes the lock anew");
    let report = catalog().check(&lock());
    assert!(report.passed(), "{report}");

    let added = changed(|payload| payload["properties"]["channel"] = json!({ "type": ["string", "null"] }));
    let report = postrider::catalog::check(&added, &lock());
    assert!(report.passed(), "an optional field may be added: {report}");
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 3] = [
        ("entries", |payload| {
            payload["properties"].as_object_mut().expect("fields").remove("entries");
            payload["required"].as_array_mut().expect("names").retain(|name| name != "entries");
        }),
        ("transactionId", |payload| payload["properties"]["transactionId"] = json!({ "type": "string" })),
        ("channel", |payload| {
            payload["properties"]["channel"] = json!({ "type": "string" });
            payload["required"].as_array_mut().expect("names").push(json!("channel"));
        }),
    ];
    for (field, change) in changes {
        let report = postrider::catalog::check(&changed(change), &lock());
        assert!(!report.passed() && report.to_string().contains(field), "{field}: {report}");
    }
    let without = Catalog::new("ledger")
        .event::<ledger::adapters::wire::LedgerPosted>()
        .event::<ledger::adapters::wire::LedgerReversed>();
    assert!(!without.check(&lock()).passed(), "version 1 needs its upcaster");
    let old = json!({ "transactionId": 1 });
    let new = upcasters().convert("LEDGER_POSTED", 1, 2, old).expect("converted");
    assert_eq!(new["currency"], "KRW");
}
