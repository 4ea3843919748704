//! What each way to build a catalog says about an event, and where it is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use postrider::catalog::{Catalog, CatalogFile, EventEntry, Lock, Severity, check, render};
use postrider::store::{Delivery, Sink, Unavailable};
use postrider::testing::Outbox;
use postrider::{Event, EventMapping, Relay};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An order was placed. By a customer.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderPlaced {
    order: i64,
}

/// An order was shown.
#[derive(Serialize, JsonSchema, Event)]
#[event(aggregate = "Order", id = order, stream = "orders")]
struct OrderShown {
    order: i64,
}

#[derive(Serialize, Event)]
#[event(name = "OrderPlaced", aggregate = "Order", id = order, stream = "orders")]
struct Plain {
    order: i64,
}

/// A posting of another crate. It knows nothing of events.
///
/// Its amounts are in cents.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Posting {
    account: String,
}

fn posted() -> EventMapping<Posting> {
    EventMapping::new("LEDGER_POSTED", "Account", |posting: &Posting| posting.account.clone())
        .stream("ledger")
}

fn only(catalog: &Catalog) -> EventEntry {
    let [event] = catalog.file().events.as_slice() else { panic!("{catalog:?}") };
    event.clone()
}

#[test]
fn a_mapping_of_another_crates_type_says_what_an_event_says() {
    let event = only(&Catalog::new("ledger").mapping(&posted().version(3).sequenced()));
    assert_eq!(
        (
            event.name.as_str(),
            event.version,
            event.stream.as_str(),
            event.aggregate.as_str(),
            event.sequenced
        ),
        ("LEDGER_POSTED", 3, "ledger", "Account", true)
    );
    assert_eq!((event.ordering_key.as_str(), &*event.publishers), ("aggregate", &["ledger".to_owned()][..]));
    assert_eq!(event.summary.as_deref(), Some("A posting of another crate."), "one sentence");
    let schema = event.payload.expect("a schema").writes;
    assert_eq!(schema["properties"]["account"]["type"], "string");

    let event = only(&Catalog::new("ledger").mapping_without_schema(&posted()));
    assert_eq!((event.payload, event.summary), (None, None));
}

#[test]
fn a_key_that_a_mapping_makes_is_not_shown_as_the_aggregate() {
    let keyed = || posted().ordering_key(|posting: &Posting| posting.account.clone());
    let key = |mapping: &EventMapping<Posting>| only(&Catalog::new("ledger").mapping(mapping)).ordering_key;
    assert_eq!(key(&keyed()), "computed");
    let described = keyed().described("An amount was posted. To an account.", Some("account"));
    assert_eq!(key(&described), "account");
    let summary = only(&Catalog::new("ledger").mapping(&described)).summary;
    assert_eq!(summary.as_deref(), Some("An amount was posted."));
}

#[test]
fn a_type_that_is_only_written_has_a_schema_and_one_without_has_its_name_checked() {
    let shown = only(&Catalog::new("shop").written_only::<OrderShown>());
    assert_eq!(shown.payload.expect("a schema").writes["required"], json!(["order"]));
    assert_eq!(shown.summary.as_deref(), Some("An order was shown."));

    let catalog = Catalog::new("shop").without_schema::<Plain>();
    assert_eq!(only(&catalog).payload, None);
    let mut lock = Lock::new();
    lock.update(catalog.file());
    assert!(catalog.check(&lock).findings.is_empty());
    assert_eq!(Catalog::new("shop").check(&lock).errors(), 1, "it is gone");
}

#[test]
fn a_type_that_loses_its_schema_is_a_warning() {
    let mut lock = Lock::new();
    lock.update(Catalog::new("shop").event::<OrderPlaced>().file());
    let report = Catalog::new("shop").without_schema::<Plain>().check(&lock);
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.reason.contains("no longer has a schema"), "{finding}");
    assert!(report.passed());
}

#[test]
fn a_catalog_is_written_as_a_whole_or_not_at_all() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("catalog-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("events.json");
    let catalog = Catalog::new("shop").event::<OrderPlaced>();
    catalog.write(&path).expect("written");
    let text = fs::read_to_string(&path).expect("the file");
    assert_eq!(&CatalogFile::parse(&text).expect("a catalog"), catalog.file());

    let twins = catalog.without_schema::<Plain>();
    let error = twins.write(&path).expect_err("two of one name").to_string();
    assert!(error.contains("OrderPlaced version 1: duplicate event; name and version must be unique; the two differ in the payload"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), text, "the old file stays");
    assert!(Catalog::new("shop").write(folder.join("nowhere/events.json")).is_err());
    let left: Vec<_> = fs::read_dir(&folder).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn two_events_with_one_name_and_version_fail_every_check() {
    let twins = Catalog::new("shop").event::<OrderPlaced>().without_schema::<Plain>();
    assert_eq!(twins.check(&Lock::new()).errors(), 1);
    // The same twice says nothing new.
    let same = twins.clone().event::<OrderPlaced>().without_schema::<Plain>();
    assert_eq!(same.file().events.len(), 2);

    // In a file they need not be neighbours, and may be equal.
    let placed = only(&Catalog::new("shop").event::<OrderPlaced>());
    let shown = only(&Catalog::new("shop").written_only::<OrderShown>());
    let mut file = Catalog::new("shop").file().clone();
    file.events = vec![placed.clone(), shown, placed];
    let error = CatalogFile::parse(&file.to_json()).expect_err("twice").to_string();
    assert!(error.contains("OrderPlaced version 1: duplicate event") && !error.contains("differ"), "{error}");
    let report = check(&file, &Lock::new());
    assert!(report.to_string().contains("OrderPlaced version 1: duplicate event"), "{report}");
}

/// A broker of one's own.
struct Broker;

#[async_trait::async_trait]
impl Sink for Broker {
    async fn deliver(&self, _: Arc<Delivery>) -> Result<(), Unavailable> {
        Ok(())
    }

    fn topics(&self) -> BTreeMap<String, String> {
        let topics = [("*", "{stream}-events"), ("OrderShown", "views")];
        topics.map(|(name, topic)| (name.to_owned(), topic.to_owned())).into()
    }
}

#[test]
fn the_topics_of_a_relays_sink_are_those_of_its_events() {
    let outbox = Outbox::new();
    let relay = Relay::new(&outbox).subscribe("to-broker", |s| s.sink(Broker).shown("sink", "broker"));
    let catalog = Catalog::new("shop").event::<OrderPlaced>().written_only::<OrderShown>().relay(&relay);
    let file = CatalogFile::parse(&catalog.to_json()).expect("its own text");
    let page = render::markdown(&file);
    for (event, topic) in [("OrderPlaced", "orders-events"), ("OrderShown", "views")] {
        let row = page.lines().find(|line| line.starts_with(&format!("| [`{event}`]"))).expect("a row");
        assert!(row.ends_with(&format!("| `to-broker` | `{topic}` |")), "{row}");
    }
}

#[test]
fn what_records_and_delivers_does_not_know_the_catalog() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    for name in ["core", "macros", "relay", "sql", "postgres", "mysql", "sqlite", "memory", "kafka", "http"] {
        let manifest = crates.join(format!("postrider-{name}/Cargo.toml"));
        let manifest = fs::read_to_string(&manifest).expect("a manifest");
        assert!(!manifest.contains("postrider-catalog"), "postrider-{name} knows the catalog");
    }
}

#[test]
fn the_upcasters_of_a_relay_are_those_of_the_catalog_and_others_are_a_warning() {
    let step = |from| {
        postrider::Upcasters::new().step(
            "OrderPlaced",
            from,
            Ok::<serde_json::Value, std::convert::Infallible>,
        )
    };
    let outbox = Outbox::new();
    let catalog = || Catalog::new("shop").mapping(&placed(3));
    let relay = Relay::new(&outbox).upcasters(step(2));
    let taken = catalog().relay(&relay);
    assert_eq!(only(&taken).upcast_from, [2]);
    assert_eq!(taken.check(&Lock::new()).findings, []);

    let differs = catalog().upcasters(step(1)).relay(&relay);
    assert_eq!(only(&differs).upcast_from, [1, 2]);
    let report = differs.check(&Lock::new());
    let [finding] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.reason.contains("the upcaster from version 1"), "{finding}");
}

fn placed(version: u32) -> EventMapping<OrderPlaced> {
    EventMapping::new("OrderPlaced", "Order", |placed: &OrderPlaced| placed.order.to_string())
        .version(version)
}

#[test]
fn publishers_are_named_and_joined() {
    let billing = Catalog::new("billing").event::<OrderPlaced>();
    let shop = Catalog::new("shop").event::<OrderPlaced>().published_by("ledger").mapping(&posted());
    let merged = shop.merge(billing.file().clone());
    let publishers: Vec<_> =
        merged.file().events.iter().map(|event| (event.name.as_str(), event.publishers.join("+"))).collect();
    assert_eq!(
        publishers,
        [("LEDGER_POSTED", "ledger".to_owned()), ("OrderPlaced", "billing+shop".to_owned())]
    );
    assert_eq!(merged.check(&Lock::new()).findings, []);
    // One that differs is still two events of one name.
    let other = Catalog::new("other").mapping(&placed(1).stream("else"));
    assert!(!merged.merge(other.file().clone()).check(&Lock::new()).passed());
}
