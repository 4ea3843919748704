//! Findings that are no change of a field: what the lock lacks, handlers of any version, references, aggregates.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::model::{HandlerEntry, SubscriberEntry};
use crate::names::Conventions;

/// An event with these fields; those with a default need not be there.
fn event(version: u32, fields: &Value, required: &[&str]) -> EventEntry {
    let writes = json!({ "type": "object", "properties": fields, "required": fields.as_object().map(|fields| fields.keys().collect::<Vec<_>>()) });
    let reads = json!({ "type": "object", "properties": fields, "required": required });
    EventEntry { version, ..entry(PayloadSchema { writes, reads: Some(reads) }) }
}

fn locked(events: &[EventEntry]) -> Lock {
    let mut lock = Lock::new();
    events.iter().for_each(|event| lock.update(&file(event.clone())));
    lock
}

fn checked(event: &EventEntry, lock: &Lock) -> Report {
    let mut report = check(&file(event.clone()), lock);
    report.check_lock(&file(event.clone()), lock);
    report
}

fn said(report: &Report) -> Vec<String> {
    report.findings.iter().map(|finding| format!("{}: {}", finding.severity, finding.sentence())).collect()
}

const ORDER: fn() -> Value = || json!({ "order": { "type": "integer", "format": "int64" } });

fn noted(note: &str) -> EventEntry {
    let mut fields = ORDER();
    fields["note"] = json!({ "type": note });
    event(1, &fields, &["order"])
}

#[test]
fn a_schema_that_the_lock_lacks_fails_until_it_is_updated_so_that_the_next_change_is_seen() {
    let mut lock = locked(&[event(1, &ORDER(), &["order"])]);
    let forgotten = "error: OrderPaid version 1: its schema is not in the lock, so a later change of it would not be noticed";
    assert_eq!(said(&checked(&noted("string"), &lock)), [forgotten]);
    // Without the lock's knowledge of the text, the integer looks like any new field.
    assert_eq!(said(&checked(&noted("integer"), &lock)), [forgotten]);
    lock.update(&file(noted("string")));
    assert_eq!(said(&checked(&noted("string"), &lock)), [""; 0]);
    let retyped = checked(&noted("integer"), &lock);
    assert_eq!(retyped.errors(), 3, "{retyped}");
    assert!(
        retyped.findings[0].field == "note" && retyped.findings[2].reason.contains("not in the lock"),
        "{retyped}"
    );
}

#[test]
fn an_event_and_a_version_that_the_lock_lacks_fail() {
    let first = event(1, &ORDER(), &["order"]);
    let lacks = |what: &str, version: u32| {
        format!(
            "error: OrderPaid version {version}: {what} is not in the lock, so a later change of it would not be noticed"
        )
    };
    assert_eq!(said(&checked(&first, &Lock::new())), [lacks("this event", 1)]);
    let mut lock = locked(std::slice::from_ref(&first));
    let second = EventEntry { version: 2, upcast_from: vec![1], ..first.clone() };
    assert_eq!(said(&checked(&second, &lock)), [lacks("this version", 2)]);
    lock.retire("OrderPaid").expect("it is there");
    assert_eq!(said(&checked(&first, &lock)), [lacks("this event", 1)]);
}

#[test]
fn another_aggregate_changes_the_order_and_is_a_warning_where_the_lock_knows_the_old_one() {
    let before = event(1, &ORDER(), &["order"]);
    let lock = locked(std::slice::from_ref(&before));
    let moved = EventEntry { aggregate: "Cart".into(), ..before.clone() };
    let report = check(&file(moved.clone()), &lock);
    assert_eq!(said(&report), ["warning: OrderPaid version 1: its aggregate changes from `Order` to `Cart`"]);
    assert!(report.findings[0].advice.contains("not in order with each other"), "{report}");
    let keyed = |event: &EventEntry| EventEntry { ordering_key: "customer".into(), ..event.clone() };
    let report = check(&file(keyed(&moved)), &locked(&[keyed(&before)]));
    assert!(report.findings[0].advice.contains("no longer finds them"), "{report}");

    // A lock of the first version does not have it. It gets the aggregate with the next update, and no second schema.
    let old = lock.to_json().replace("\"aggregate\": \"Order\",", "");
    let mut old = Lock::parse(&old).expect("a lock of the first version");
    assert_eq!(said(&checked(&moved, &old)), [""; 0]);
    old.update(&file(before));
    assert_eq!(old, lock);
}

fn with_handler(event: &EventEntry, name: &str, version: Option<u32>) -> CatalogFile {
    let handlers = BTreeMap::from([(name.to_owned(), HandlerEntry { version, follow_ups: Vec::new() })]);
    let subscriber = SubscriberEntry {
        name: "billing".into(),
        streams: Vec::new(),
        types: Vec::new(),
        handlers,
        destination: None,
        topics: Vec::new(),
        topics_by_type: BTreeMap::new(),
    };
    CatalogFile { subscribers: vec![subscriber], ..file(event.clone()) }
}

#[test]
fn a_raised_version_is_a_warning_for_a_handler_that_takes_any() {
    let mut lock = locked(&[event(1, &ORDER(), &["order"])]);
    let mut fields = ORDER();
    fields["order"] = json!({ "type": "string" });
    let raised = EventEntry { upcast_from: vec![1], ..event(2, &fields, &["order"]) };
    let warning = "warning: OrderPaid version 2: an old program on new events: the handler of `billing` takes any version: where no \
                   upcaster is known, it reads version 2 as if it were version 1";
    assert_eq!(said(&check(&with_handler(&raised, "OrderPaid", None), &lock)), [warning]);
    assert_eq!(said(&check(&with_handler(&raised, "OrderPaid", Some(2)), &lock)), [""; 0]);
    assert_eq!(said(&check(&with_handler(&raised, "*", None), &lock)), [""; 0]);
    lock.update(&file(raised.clone()));
    assert_eq!(said(&check(&with_handler(&raised, "OrderPaid", None), &lock)), [""; 0], "it was said");
}

#[test]
fn a_reference_that_leads_nowhere_is_a_warning() {
    let fields = json!({
        "order": { "$ref": "#/$defs/OrderId" },
        "place": { "$ref": "https://example.com/place.json" },
        "$ref": { "enum": [{ "$ref": "#/nowhere" }] },
    });
    let mut event = event(1, &fields, &["order"]);
    let lacks = |reference: &str| {
        format!(
            "warning: OrderPaid version 1: can't be compared: reference `{reference}` leads to no part of its schema"
        )
    };
    let place = lacks("https://example.com/place.json");
    assert_eq!(said(&check(&file(event.clone()), &Lock::new())), [lacks("#/$defs/OrderId"), place.clone()]);
    let payload = event.payload.as_mut().expect("a payload");
    for schema in [Some(&mut payload.writes), payload.reads.as_mut()].into_iter().flatten() {
        schema["$defs"] = json!({ "OrderId": { "type": "integer" } });
    }
    assert_eq!(said(&check(&file(event), &Lock::new())), [place]);
}

#[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Lines {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u8>,
}

#[test]
fn a_type_that_can_not_read_what_it_writes_fails_without_any_change() {
    let report = compared::<Lines, Lines>();
    let own =
        report.findings.iter().find(|finding| finding.reader.is_none()).unwrap_or_else(|| panic!("{report}"));
    assert_eq!(
        own.sentence(),
        "OrderPaid version 1: field `lines` is not always written, but the reader needs it: its type can't read what it writes"
    );
    assert_eq!((own.severity, &own.counterexample), (Severity::Error, &Some(json!({}))));
    assert!(own.advice.contains("#[serde(default)]"), "{own}");
    // serde says so itself.
    let written = serde_json::to_string(&Lines { lines: Vec::new() }).expect("JSON");
    assert!(serde_json::from_str::<Lines>(&written).is_err());

    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Defaulted {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<u8>,
    }
    assert_eq!(said(&compared::<Defaulted, Defaulted>()), [""; 0]);
}

#[test]
fn a_name_is_refused_once_and_not_for_each_version() {
    let first = EventEntry { name: "PayOrder".into(), ..event(1, &ORDER(), &["order"]) };
    let second = EventEntry { version: 2, ..first.clone() };
    let elsewhere = EventEntry { stream: "payments".into(), version: 3, ..first.clone() };
    let names = |events: &[&EventEntry]| {
        let events = events.iter().map(|event| (*event).clone()).collect();
        let mut report = Report::default();
        let conventions = Conventions::everywhere(crate::Convention::PascalPastTense);
        report.check_names(&CatalogFile { events, ..file(first.clone()) }, &conventions);
        report.findings.iter().map(|finding| finding.version).collect::<Vec<_>>()
    };
    assert_eq!(names(&[&first, &second]), [Some(2)]);
    assert_eq!(names(&[&first, &elsewhere]), [Some(1), Some(3)], "each stream has a convention of its own");
}
