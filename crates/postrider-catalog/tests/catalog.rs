//! A catalog as an application uses it: built from its types and relay, checked against a lock and against a log.

use std::convert::Infallible;
use std::time::Duration;

use postrider::catalog::{
    Catalog, CatalogFile, Lock, LogCheck, LogContents, ReaderVersion, Severity, check_log,
};
use postrider::store::{ArchiveOptions, Operate as _, Sweep};
use postrider::testing::{Clock, Destination, ManualClock, Outbox, until_quiet};
use postrider::{Event, EventMapping, Failure, NewEvent, OffsetDateTime, Received, Relay, Upcasters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An order was placed. By a customer.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order, key = customer, stream = "orders")]
struct OrderPlaced {
    order: i64,
    customer: String,
}

/// An order was paid.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order, stream = "orders", version = 2)]
struct OrderPaid {
    order: i64,
    /// In cents.
    amount: i64,
}

mod before {
    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema, Event)]
    #[event(aggregate = "Order", id = order, stream = "orders")]
    pub(crate) struct OrderPaid {
        order: i64,
        amount: Option<i64>,
    }

    #[derive(Serialize, Deserialize, JsonSchema, Event)]
    #[event(aggregate = "Order", id = order, stream = "orders")]
    pub(crate) struct OrderShipped {
        order: i64,
    }
}

/// The old name of its field is still read.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order_id, stream = "orders")]
struct OrderShipped {
    #[serde(alias = "order")]
    order_id: i64,
}

async fn charge(_: Received<OrderPlaced>) -> Result<(), Failure> {
    Ok(())
}

async fn anything(_: Received<postrider::Raw>) -> Result<(), Failure> {
    Ok(())
}

fn paid_upcasters() -> Upcasters {
    Upcasters::new().of::<OrderPaid>(1, |mut old| {
        if old["amount"].is_null() {
            old["amount"] = json!(0);
        }
        old
    })
}

fn errors(report: &postrider::catalog::Report) -> Vec<String> {
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(postrider::catalog::Finding::sentence).collect()
}

#[test]
fn a_catalog_says_what_the_types_and_the_relay_say() {
    let outbox = Outbox::new();
    let relay = Relay::new(&outbox)
        .subscribe("billing", |s| s.streams(["orders"]).on(charge).follow_up::<OrderPaid>())
        .subscribe("audit", |s| s.on_other(anything));
    let catalog = Catalog::new("shop")
        .event::<OrderPlaced>()
        .event::<OrderPaid>()
        .upcasters(paid_upcasters())
        .relay(&relay);
    let file = CatalogFile::parse(&catalog.to_json()).expect("its own text");
    assert_eq!(&file, catalog.file());

    let placed = file.event("OrderPlaced").expect("the event");
    assert_eq!(
        (placed.version, placed.aggregate.as_str(), placed.ordering_key.as_str()),
        (1, "Order", "customer")
    );
    assert_eq!(placed.summary.as_deref(), Some("An order was placed."));
    assert_eq!(placed.publishers, ["shop"]);
    let names =
        |event| file.subscribers_of(event).map(|subscriber| subscriber.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(placed), ["audit", "billing"]);
    let paid = file.event("OrderPaid").expect("the event");
    assert_eq!((paid.version, &*paid.upcast_from), (2, &[1][..]));
    assert_eq!(names(paid), ["audit"]);
    assert_eq!(file.subscribers[1].handlers["OrderPlaced"].follow_ups, ["OrderPaid"]);
    let schema = &paid.payload.as_ref().expect("a schema").writes;
    assert_eq!(schema["properties"]["amount"]["description"], "In cents.");
}

#[test]
fn a_raised_version_needs_upcasters_that_really_convert() {
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").event::<before::OrderPaid>().file());

    let without = Catalog::new("shop").event::<OrderPaid>();
    assert_eq!(
        errors(&without.check(&lock)),
        [
            "OrderPaid version 2: a new program can't read old events: no upcaster leads from version 1 to version 2"
        ]
    );
    let example = without.check(&lock).findings[0].counterexample.clone();
    assert_eq!(example, Some(json!({ "order": 1, "amount": 1 })), "such an event may be in the log");
    let lazy = Upcasters::new().of::<OrderPaid>(1, |old| old);
    let report = Catalog::new("shop").event::<OrderPaid>().upcasters(lazy).check(&lock);
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert!(finding.reason.contains("version 1 is not readable after its upcasters"), "{finding}");
    assert_eq!(finding.counterexample.as_ref().expect("an example")["amount"], json!(null));
    assert!(finding.reason.contains("expected i64"), "{finding}");

    let good = Catalog::new("shop").event::<OrderPaid>().upcasters(paid_upcasters());
    assert!(good.check(&lock).passed());
    // The lock then has both versions, and keeps checking the first.
    lock.update(good.file());
    let again = Lock::parse(&lock.to_json()).expect("its own text");
    assert_eq!(again, lock);
    assert!(!Catalog::new("shop").event::<OrderPaid>().check(&again).passed());
    let back = Catalog::new("shop").event::<before::OrderPaid>().check(&again);
    assert_eq!(errors(&back), ["OrderPaid version 1: the lock has version 2, which is newer"]);
}

#[test]
fn a_raise_that_changes_nothing_passes_for_tagged_newtype_variants() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Card {
        order: i64,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Paid {
        Card(Card),
        Debit(Card),
    }
    let of_version =
        |version| EventMapping::new("PaymentMade", "Payment", |_: &Paid| String::new()).version(version);
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").mapping(&of_version(1)).file());
    let upcasters = |step: fn(Value) -> Value| {
        Upcasters::new().step("PaymentMade", 1, move |old| Ok::<_, Infallible>(step(old)))
    };
    let same = upcasters(|old| old);
    let report = Catalog::new("shop").mapping(&of_version(2)).upcasters(same).check(&lock);
    assert!(report.passed(), "{report}");
    // The payloads that are tried have the tag.
    let broken = upcasters(|old| json!({ "kind": old["kind"] }));
    let report = Catalog::new("shop").mapping(&of_version(2)).upcasters(broken).check(&lock);
    assert_eq!(report.findings[0].counterexample, Some(json!({ "kind": "Card", "order": 1 })), "{report}");
}

#[test]
fn what_a_schema_can_not_tell_is_tried_on_the_type() {
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").event::<before::OrderShipped>().file());
    let catalog = Catalog::new("shop").event::<OrderShipped>();
    // By the schemas alone the old name is lost in both directions; the type reads it.
    let readers = |report: postrider::catalog::Report| -> Vec<_> {
        report.findings.iter().map(|finding| finding.reader.expect("a reader")).collect()
    };
    assert_eq!(
        readers(postrider::catalog::check(catalog.file(), &lock)),
        [ReaderVersion::New, ReaderVersion::Old]
    );
    assert_eq!(readers(catalog.check(&lock)), [ReaderVersion::Old]);
}

#[test]
fn a_removed_event_is_refused_until_it_is_retired() {
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").event::<OrderPlaced>().event::<OrderPaid>().file());
    let catalog = Catalog::new("shop").event::<OrderPlaced>();
    let report = catalog.check(&lock);
    assert_eq!(report.errors(), 1, "{report}");
    assert!(report.to_string().contains("--retire OrderPaid"), "{report}");
    lock.retire("OrderPaid").expect("it is there");
    assert!(catalog.check(&lock).passed());
    assert!(lock.retire("OrderLost").expect_err("it is not there").to_string().contains("OrderLost"));
}

#[test]
fn an_older_schema_of_the_same_version_is_still_checked() {
    mod first {
        use super::*;
        #[derive(Serialize, Deserialize, JsonSchema, Event)]
        #[event(name = "OrderPlaced", aggregate = "Order", id = order)]
        pub(crate) struct Placed {
            pub(crate) order: i64,
        }
    }
    mod second {
        use super::*;
        #[derive(Serialize, Deserialize, JsonSchema, Event)]
        #[event(name = "OrderPlaced", aggregate = "Order", id = order)]
        pub(crate) struct Placed {
            pub(crate) order: i64,
            #[serde(default)]
            pub(crate) note: String,
        }
    }
    mod third {
        use super::*;
        #[derive(Serialize, Deserialize, JsonSchema, Event)]
        #[event(name = "OrderPlaced", aggregate = "Order", id = order)]
        pub(crate) struct Placed {
            pub(crate) order: i64,
            pub(crate) note: String,
        }
    }
    let mut lock = Lock::new();
    for catalog in
        [Catalog::new("shop").event::<first::Placed>(), Catalog::new("shop").event::<second::Placed>()]
    {
        assert!(catalog.check(&lock).passed());
        lock.update(catalog.file());
    }
    // The second schema always writes the note; the first never did.
    let report = Catalog::new("shop").event::<third::Placed>().check(&lock);
    assert_eq!(report.compared, 2);
    assert_eq!(
        errors(&report),
        [
            "OrderPlaced version 1: a new program can't read old events: field `note` is not written, but the reader needs it"
        ]
    );
}

#[test]
fn files_that_are_none_are_refused_with_a_reason() {
    let refused = |text: &str| Lock::parse(text).expect_err("no lock").to_string();
    assert!(refused("{").contains("not valid JSON"), "{}", refused("{"));
    assert!(refused("{}").contains("it has no `format`"));
    assert!(refused(r#"{"format": 9, "events": {}}"#).contains("use a newer postrider"));
    assert!(refused(r#"{"format": 1}"#).contains("missing field `events`"));
    let twins = Catalog::new("shop").event::<before::OrderShipped>().event::<OrderShipped>();
    let error = CatalogFile::parse(&twins.to_json()).expect_err("two of one name").to_string();
    assert!(
        error.contains("OrderShipped version 1: duplicate event; name and version must be unique; the two differ in the payload"),
        "{error}"
    );
}

#[tokio::test]
async fn the_events_of_a_log_are_read_by_the_types_that_are_there_now() {
    let outbox = Outbox::new();
    let mut recorded = Vec::new();
    let events = [
        ("OrderPaid", 1, json!({ "order": 1, "amount": null })),
        ("OrderPaid", 1, json!({ "order": "secret-7" })),
        ("OrderPaid", 2, json!({ "order": 2, "amount": 5 })),
        ("OrderPaid", 2, json!({ "order": 3, "amount": "secret-8" })),
        ("OrderPaid", 3, json!({})),
        ("Forgotten", 1, json!({})),
    ];
    for (name, version, payload) in events {
        let mut event = NewEvent::of("orders", name, "Order", "1", &payload).expect("JSON");
        event.headers.set_schema_version(version);
        recorded.push(outbox.record_outside_transaction(&event).await.expect("record"));
    }
    let catalog =
        Catalog::new("shop").event::<OrderPaid>().event::<OrderPlaced>().upcasters(paid_upcasters());
    let log = outbox.store();
    let report = check_log(&catalog, &log, &LogCheck::default()).await.expect("read");
    assert!(report.complete && !report.passed());
    let mut found: Vec<_> =
        report.unreadable.iter().map(|event| (event.event_id, event.version, event.reason.clone())).collect();
    found.sort_by_key(|(event, ..)| recorded.iter().position(|id| id == event));
    let reasons: Vec<&str> = found.iter().map(|(.., reason)| reason.as_str()).collect();
    assert_eq!(
        found.iter().map(|(event, ..)| *event).collect::<Vec<_>>(),
        [recorded[1], recorded[3], recorded[4]]
    );
    assert!(reasons[0].contains("field order: expected i64"), "{reasons:?}");
    assert!(reasons[1].contains("field amount: expected i64"), "{reasons:?}");
    assert!(reasons[2].contains("the catalog has up to 2"), "{reasons:?}");
    assert!(!format!("{report:?}").contains("secret"), "{report:?}");
    assert_eq!(report.tried[&("OrderPaid".to_owned(), 1)], 2);
    assert_eq!(report.unknown["Forgotten"], 1);

    // The same by the file alone, without the types: the newest version only.
    let by_file = Catalog::from_file(catalog.file().clone());
    let report = check_log(&by_file, &log, &LogCheck::default()).await.expect("read");
    let unreadable: Vec<_> = report.unreadable.iter().filter(|event| event.version == 2).collect();
    assert_eq!(unreadable.len(), 1);
    assert_eq!(unreadable[0].reason, "field amount: expected an integer");
    assert_eq!(report.skipped, 2, "those that need the upcasters");

    let contents = LogContents::read(&log, 1_000).await.expect("read");
    let unknown: Vec<_> =
        contents.unknown(catalog.file()).map(|seen| (seen.name.as_str(), seen.version)).collect();
    assert_eq!(unknown, [("Forgotten", 1), ("OrderPaid", 3)]);
    assert_eq!(contents.unseen(catalog.file()).collect::<Vec<_>>(), ["OrderPlaced"]);
}

#[tokio::test]
async fn an_upcaster_that_panics_makes_its_event_unreadable_and_stops_nothing() {
    let outbox = Outbox::new();
    let mut recorded = Vec::new();
    for (version, payload) in [(1, json!({ "order": "secret" })), (2, json!({ "order": 1, "amount": 5 }))] {
        let mut event = NewEvent::of("orders", "OrderPaid", "Order", "1", &payload).expect("JSON");
        event.headers.set_schema_version(version);
        recorded.push(outbox.record_outside_transaction(&event).await.expect("record"));
    }
    let upcasters = Upcasters::new().of::<OrderPaid>(1, |_| panic!("a case that nobody thought of"));
    let catalog = Catalog::new("shop").event::<OrderPaid>().upcasters(upcasters);
    let report = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    let [unreadable] = report.unreadable.as_slice() else { panic!("{report}") };
    assert_eq!((unreadable.event_id, unreadable.version), (recorded[0], 1));
    assert_eq!(unreadable.reason, "an upcaster of OrderPaid between versions 1 and 2 panicked");
    assert_eq!(report.tried[&("OrderPaid".to_owned(), 2)], 1);

    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").event::<before::OrderPaid>().file());
    let report = catalog.check(&lock);
    assert_eq!(report.errors(), 1, "{report}");
    assert!(report.findings[0].reason.contains("panicked"), "{report}");
}

#[tokio::test]
async fn events_of_the_archive_are_read_too() {
    let outbox = Outbox::new();
    let mut recorded = Vec::new();
    for payload in [json!({ "order": 1, "amount": 5 }), json!({ "order": 2, "amount": "secret" })] {
        let mut event = NewEvent::of("orders", "OrderPaid", "Order", "1", &payload).expect("JSON");
        event.headers.set_schema_version(2);
        recorded.push(outbox.record_outside_transaction(&event).await.expect("record"));
    }
    let relay =
        Relay::new(&outbox).subscribe("all", |s| s.sink(Destination::new())).start().await.expect("start");
    until_quiet(&relay, "all").await.expect("quiet");
    relay.stop().await.expect("stop");
    let archiving = ArchiveOptions::default();
    let sweep = Sweep::Archive { older_than: Duration::ZERO, limit: 100, archiving };
    assert_eq!(outbox.store().sweep(&sweep).await.expect("sweep").taken, 2);

    let catalog = Catalog::new("shop").event::<OrderPaid>();
    let report = check_log(&catalog, &outbox.store(), &LogCheck::default()).await.expect("read");
    assert_eq!(report.tried[&("OrderPaid".to_owned(), 2)], 2);
    let [unreadable] = report.unreadable.as_slice() else { panic!("{report}") };
    assert_eq!((unreadable.event_id, unreadable.archived), (recorded[1], true));
    let said = report.to_string();
    assert!(
        said.contains(&format!("error: event {} (in the archive): OrderPaid version 2", recorded[1])),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
    let contents = LogContents::read(&outbox.store(), 100).await.expect("read");
    assert_eq!(contents.seen[0].count, 2);
}

#[tokio::test]
async fn a_log_tells_how_often_an_event_comes_and_when_it_came_last() {
    let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH);
    let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
    for name in ["OrderPaid", "OrderPlaced", "OrderPlaced", "OrderPlaced"] {
        let event = NewEvent::of("orders", name, "Order", "1", &json!({})).expect("JSON");
        outbox.record_outside_transaction(&event).await.expect("record");
        clock.advance(Duration::from_secs(4 * 3600));
    }
    let contents = LogContents::read(&outbox.store(), 100).await.expect("read");
    let [paid, placed] = contents.seen.as_slice() else { panic!("{contents:?}") };
    // Twelve hours lie between the first event and the last.
    assert_eq!((contents.per_day(paid), contents.per_day(placed)), (Some(2.0), Some(6.0)));
    let hours = |hours: u64| OffsetDateTime::UNIX_EPOCH + Duration::from_secs(hours * 3600);
    assert_eq!((paid.last, placed.first, placed.last), (hours(0), hours(4), hours(12)));
    let one = LogContents { until: contents.since, ..contents.clone() };
    assert_eq!(one.per_day(paid), None, "too short a time tells no rate");
}
