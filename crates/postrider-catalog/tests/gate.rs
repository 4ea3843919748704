//! The gate with the types linked in: what no schema tells is tried on the types themselves.

use std::collections::BTreeMap;

use postrider::catalog::{
    Catalog, Finding, Lock, LogCheck, ReaderVersion, Report, Severity, check, check_log,
};
use postrider::testing::Outbox;
use postrider::{EventMapping, NewEvent, Upcasters};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn mapping<T: Serialize + 'static>(version: u32) -> EventMapping<T> {
    EventMapping::new("OrderPaid", "Order", |_: &T| "1".to_owned()).stream("orders").version(version)
}

fn catalog<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static>(version: u32) -> Catalog {
    Catalog::new("shop").mapping(&mapping::<T>(version))
}

fn lock(catalogs: &[&Catalog]) -> Lock {
    let mut lock = Lock::new();
    catalogs.iter().for_each(|catalog| lock.update(catalog.file()));
    lock
}

fn only(report: &Report) -> &Finding {
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    finding
}

/// The only finding that fails the check. That an optional field is gone by its name is a warning beside it.
fn only_error(report: &Report) -> &Finding {
    let errors: Vec<_> =
        report.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let [finding] = errors.as_slice() else { panic!("{report}") };
    finding
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Noted {
    note: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Remarked {
    #[serde(alias = "note")]
    remark: Option<u64>,
}

#[test]
fn an_alias_of_another_type_is_found_although_the_schemas_do_not_know_it() {
    let lock = lock(&[&catalog::<Noted>(1)]);
    let new = catalog::<Remarked>(1);
    assert!(check(new.file(), &lock).passed(), "the schemas alone don't tell");
    let report = new.check(&lock);
    let finding = only_error(&report);
    assert_eq!((finding.severity, finding.reader), (Severity::Error, Some(ReaderVersion::New)));
    let example = finding.counterexample.as_ref().expect("a counterexample");
    assert_eq!(example, &json!({ "note": "text" }));
    assert!(serde_json::from_value::<Noted>(example.clone()).is_ok());
    assert!(serde_json::from_value::<Remarked>(example.clone()).is_err());
}

/// Each way to pay has a sentence, which schemars writes beside its name.
mod ways {
    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(crate) enum Before {
        /// By card.
        Card,
        /// In cash.
        Cash,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(crate) enum After {
        /// By card.
        Card,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Paid<T> {
        order: u64,
        #[serde(flatten)]
        way: T,
    }
}

#[test]
fn a_flattened_variant_with_a_sentence_is_tried_on_the_type_and_on_the_upcasters() {
    use ways::{After, Before, Paid};
    let lock = lock(&[&catalog::<Paid<Before>>(1)]);
    let cash = Some(json!({ "order": 1, "Cash": null }));
    let report = catalog::<Paid<After>>(1).check(&lock);
    assert_eq!((report.errors(), &only_error(&report).counterexample), (1, &cash), "{report}");
    let steps = |step: fn(Value) -> Value| {
        Upcasters::new().step("OrderPaid", 1, move |old| Ok::<_, std::convert::Infallible>(step(old)))
    };
    let report = catalog::<Paid<After>>(2).upcasters(steps(|old| old)).check(&lock);
    assert_eq!((report.errors(), &only_error(&report).counterexample), (1, &cash), "{report}");
    let to_card = steps(|old| json!({ "order": old["order"], "Card": null }));
    let report = catalog::<Paid<After>>(2).upcasters(to_card).check(&lock);
    assert!(report.findings.is_empty(), "{report}");
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Amount<T> {
    amount: T,
}

#[test]
fn each_version_of_the_catalog_is_compared_with_its_own_schemas() {
    let lock = lock(&[&catalog::<Amount<u64>>(1), &catalog::<Amount<String>>(2)]);
    let both = |catalog: Catalog| {
        let steps = Upcasters::new().step("OrderPaid", 1, |old: Value| {
            Ok::<_, std::convert::Infallible>(json!({ "amount": old["amount"].to_string() }))
        });
        catalog.mapping(&mapping::<Amount<String>>(2)).upcasters(steps)
    };
    let same = both(catalog::<Amount<u64>>(1)).check(&lock);
    assert!(same.findings.is_empty() && same.compared == 2, "{same}");
    let changed = both(catalog::<Amount<bool>>(1)).check(&lock);
    assert!(!changed.passed());
    let versions: Vec<_> = changed.findings.iter().map(|finding| finding.locked_version).collect();
    assert_eq!(versions, [Some(1), Some(1)], "{changed}");
}

#[test]
fn an_upcaster_is_tried_with_the_ends_of_the_integers() {
    let lock = lock(&[&catalog::<Amount<i64>>(1)]);
    let steps = || Upcasters::new().step("OrderPaid", 1, |old: Value| Ok::<_, std::convert::Infallible>(old));
    let report = catalog::<Amount<u64>>(2).upcasters(steps()).check(&lock);
    assert_eq!(only(&report).counterexample, Some(json!({ "amount": i64::MIN })));
    assert!(catalog::<Amount<i64>>(2).upcasters(steps()).check(&lock).passed());
}

#[test]
fn upcasters_that_can_not_be_tried_are_a_warning() {
    let lock = lock(&[&catalog::<Amount<i64>>(1)]);
    let steps = || Upcasters::new().step("OrderPaid", 1, |old: Value| Ok::<_, std::convert::Infallible>(old));
    let newest = catalog::<Amount<u64>>(2).upcasters(steps());
    let unlinked = [
        Catalog::new("shop").entry(newest.file().events[0].clone()).upcasters(steps()),
        Catalog::new("shop").mapping_without_schema(&mapping::<Amount<u64>>(2)).upcasters(steps()),
        Catalog::from_file(newest.file().clone()),
    ];
    for catalog in unlinked {
        let report = catalog.check(&lock);
        let finding = only(&report);
        assert_eq!((finding.severity, finding.reader), (Severity::Warning, None), "{report}");
        assert!(finding.reason.contains("upcasters from version 1 were not tested"), "{report}");
    }
}

/// Its deserializer ends the program's thread, and quotes what it read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
struct Fragile(String);

impl From<String> for Fragile {
    fn from(text: String) -> Self {
        assert!(!text.starts_with("fragile"), "{text}");
        Self(text)
    }
}

impl From<Fragile> for String {
    fn from(fragile: Fragile) -> Self {
        fragile.0
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Balance {
    balances: BTreeMap<String, u32>,
    #[serde(default)]
    memo: Option<Fragile>,
}

async fn record(outbox: &Outbox, name: &str, version: u32, payload: &Value) {
    let mut event = NewEvent::of("orders", name, "Order", "1", payload).expect("JSON");
    event.headers.set_schema_version(version);
    outbox.record_outside_transaction(&event).await.expect("record");
}

#[tokio::test]
async fn a_report_holds_no_key_of_a_map_no_unknown_field_and_no_message_of_a_panic() {
    let outbox = Outbox::new();
    for payload in [
        json!({ "balances": { "alice@x.org": "none" } }),
        json!({ "balances": {}, "alice@x.org": 1 }),
        json!({ "balances": {}, "memo": "fragile alice@x.org" }),
    ] {
        record(&outbox, "OrderPaid", 1, &payload).await;
    }
    let report =
        check_log(&catalog::<Balance>(1), &outbox.store(), &LogCheck::default()).await.expect("read");
    let mut reasons: Vec<&str> = report.unreadable.iter().map(|event| event.reason.as_str()).collect();
    reasons.sort_unstable();
    let denied = reasons.iter().find(|reason| reason.contains("denies")).expect("the unknown field");
    assert!(reasons.contains(&"field balances.*: expected u32"), "{reasons:?}");
    assert!(reasons.contains(&"its type panicked"), "{reasons:?}");
    assert!(!denied.contains("alice") && !format!("{report:?}").contains("alice"), "{report:?}");
}

#[tokio::test]
async fn a_version_that_is_linked_in_is_read_by_its_own_type_and_what_nothing_reads_is_counted() {
    let outbox = Outbox::new();
    record(&outbox, "OrderPaid", 1, &json!({ "amount": 5 })).await;
    record(&outbox, "OrderPaid", 1, &json!({ "amount": "five" })).await;
    record(&outbox, "OrderPaid", 2, &json!({ "amount": "five" })).await;
    record(&outbox, "OrderShown", 1, &json!({})).await;
    let shown = EventMapping::new("OrderShown", "Order", |(): &()| "1".to_owned());
    let catalog =
        catalog::<Amount<u64>>(1).mapping(&mapping::<Amount<String>>(2)).mapping_without_schema(&shown);
    let report = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    let unreadable: Vec<_> =
        report.unreadable.iter().map(|event| (event.version, event.reason.as_str())).collect();
    assert_eq!(unreadable, [(1, "field amount: expected u64")]);
    assert_eq!(report.unlinked, BTreeMap::from([("OrderShown".to_owned(), 1)]));
    assert!(
        report.summary().contains("1 events were not checked, because no type is registered for: OrderShown"),
        "{}",
        report.summary()
    );
}

#[tokio::test]
async fn a_type_that_the_rows_did_not_reach_is_named() {
    let outbox = Outbox::new();
    record(&outbox, "OrderPaid", 1, &json!({ "amount": 5 })).await;
    for _ in 0..5_000 {
        record(&outbox, "OrderShown", 1, &json!({})).await;
    }
    let options = LogCheck { rows: 5_000, ..LogCheck::default() };
    let catalog = catalog::<Amount<u64>>(1);
    let report = check_log(&catalog, &outbox.store(), &options).await.expect("read");
    assert!(!report.complete);
    assert_eq!(report.not_reached, [("OrderPaid".to_owned(), 1)]);
    assert!(
        report.summary().contains("the rows read contain no OrderPaid version 1; older rows may"),
        "{}",
        report.summary()
    );
    let whole = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    assert!(whole.complete && whole.not_reached.is_empty());
}
