//! The schema of the events: only additions pass.

use ledger::adapters::wire::{catalog, upcasters};
use ledger::story::stage::{SETTINGS, Stage, TopicOption};
use postrider::catalog::{Catalog, CatalogFile, Lock};
use serde_json::{Value, json};

use crate::support::{deposit, reverse, stage, transfer};

/// The catalog as the ledger exports it: the file that `ledger.toml` names.
const EXPORTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/events.json");
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

/// A command of an operator in the folder of the ledger, as its runbook has it: what it printed, and whether it succeeded.
fn operator(stage: &Stage, arguments: &[&str]) -> (bool, String) {
    let settings = stage.settings("catalog", &[]);
    let mut command = stage.postrider(&settings, arguments);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("postrider runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// L6: beside a running log an operator sees how many of each event and version there were, and that all of them fit the catalog; an event
/// of the log that the catalog does not know is named.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_the_catalog_beside_the_log() {
    if std::env::var_os("UPDATE_LOCK").is_some() {
        catalog().write(EXPORTED).expect("written");
    }
    let exported = std::fs::read_to_string(EXPORTED).expect("the catalog");
    assert_eq!(exported, catalog().to_json(), "UPDATE_LOCK=1 exports the catalog anew");
    for name in ["events.json", "events.lock.json"] {
        assert!(SETTINGS.contains(&format!("\"{name}\"")), "ledger.toml names {name}");
    }

    let stage = stage(TopicOption::A).await;
    let _relay = stage.relay("relay");
    deposit(&stage.ledger, 1, 1, 500).await.expect("posted");
    transfer(&stage.ledger, 2, 1, 2, 200).await.expect("posted");
    reverse(&stage.ledger, 3, 2).await.expect("posted");
    stage.all_processed().await;

    let (succeeded, shown) = operator(&stage, &["catalog", "--json"]);
    assert!(succeeded, "{shown}");
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let seen = shown["log"]["seen"].as_array().expect("what the log has seen");
    let mut counts: Vec<_> = seen
        .iter()
        .map(|row| (row["event"].as_str().expect("a name"), row["version"].as_u64(), row["count"].as_u64()))
        .collect();
    counts.sort_unstable();
    assert_eq!(
        counts,
        [("LEDGER_POSTED", Some(2), Some(3)), ("LEDGER_REVERSED", Some(2), Some(2))],
        "{shown:#}"
    );
    for list in ["unknown", "unseen", "unseen_versions"] {
        assert_eq!(shown["log"][list], json!([]), "{shown:#}");
    }
    let (passed, report) = operator(&stage, &["catalog", "check", "--against-log"]);
    assert!(passed, "{report}");

    let mut postings_alone = catalog().file().clone();
    postings_alone.events.retain(|event| event.name == "LEDGER_POSTED");
    let file = stage.folder.file("postings.json", &postings_alone.to_json());
    let (_, shown) = operator(&stage, &["catalog", "--file", file.to_str().expect("a path")]);
    assert!(shown.contains("In the log, but not in the catalog: LEDGER_REVERSED version 2 (2)"), "{shown}");
}
