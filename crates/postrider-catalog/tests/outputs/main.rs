//! What the outputs do with topics, versions, names that need care, circles, and many events.

mod commerce;

use std::collections::BTreeMap;

use commerce::commerce;
use postrider_catalog::{
    CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, Problem, Severity, SubscriberEntry,
    problems, render,
};
use serde_json::json;

fn event(name: &str) -> EventEntry {
    EventEntry {
        name: name.to_owned(),
        version: 1,
        stream: "s".to_owned(),
        aggregate: "A".to_owned(),
        ordering_key: "aggregate".to_owned(),
        sequenced: false,
        summary: None,
        publishers: vec!["p".to_owned()],
        upcast_from: Vec::new(),
        payload: None,
    }
}

/// A subscriber with handlers, each with what it records.
fn subscriber(name: &str, handlers: &[(&str, &[&str])]) -> SubscriberEntry {
    let handler = |(event, recorded): &(&str, &[&str])| {
        let follow_ups = recorded.iter().map(|name| (*name).to_owned()).collect();
        ((*event).to_owned(), HandlerEntry { version: None, follow_ups })
    };
    SubscriberEntry {
        name: name.to_owned(),
        streams: Vec::new(),
        types: Vec::new(),
        handlers: handlers.iter().map(handler).collect(),
        destination: None,
        topics: Vec::new(),
        topics_by_type: BTreeMap::new(),
    }
}

fn catalog(events: Vec<EventEntry>, subscribers: Vec<SubscriberEntry>) -> CatalogFile {
    CatalogFile { format: FORMAT, system: "test".to_owned(), events, subscribers }
}

fn sentences(catalog: &CatalogFile) -> Vec<String> {
    problems(catalog).iter().map(|problem| format!("{}: {problem}", problem.severity())).collect()
}

#[test]
fn the_page_shows_topics_and_versions_and_escapes_what_breaks_a_table() {
    let page = render::markdown(&commerce());
    for line in [
        "| [`loopers.stock.depleted.v1`](#loopersstockdepletedv1) | 1 | Stock: &lt;b>see&lt;/b> {the} \\| \"order\". | `Stock` | `commerce-api` | `ProductStockEventConsumer`, `to-kafka` | `stock-events` |",
        "### loopers.order.paid.v1",
        "### loopers.order.paid.v1, version 1",
        "- Older versions that are converted to it: 1.",
        "- Received by `ProductOrderEventConsumer` (from `order-events`), `to-kafka` (to kafka `order-events`).",
        "The catalog has no schema of its payload.",
        "| `amount` | object `Money` | yes | What was paid. |",
        "| `amount.currency` | one of `Krw`, `Eur` | yes | |",
        "| `lines[].price` | object `Money` | yes | The price of all pieces \\| without tax &lt;net>. |",
        "| `notes` | map of names to text | yes | |",
        "| `payment.bank` | text | no | |",
        "| `payment.kind` | one of `Card`, `Transfer` | yes | |",
        "| `place` | list of exactly number, number | yes | |",
        "| `recipient` | object `Address/주소 <new>` or null | no | Who gets it, if not the customer. |",
        "| `recipient.street` | text | no | |",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\nis missing in\n{page}");
    }
}

#[test]
fn the_folder_has_older_versions_channels_and_no_code_in_its_prose() {
    let files: BTreeMap<String, String> =
        render::event_catalog(&commerce()).into_iter().map(|file| (file.path, file.text)).collect();
    let old = &files["domains/commerce/events/loopers.order.paid.v1/versioned/1.0.0/index.mdx"];
    let new = &files["domains/commerce/events/loopers.order.paid.v1/index.mdx"];
    assert!(old.contains("\nversion: 1.0.0\n") && new.contains("\nversion: 2.0.0\n"));
    let through = |service: &str, list: &str, way: &str| {
        let page = &files[&format!("services/{service}/index.mdx")];
        let event = "  - id: \"loopers.order.paid.v1\"\n    version: 2.0.0\n";
        let (_, listed) = page.split_once(&format!("\n{list}:\n")).expect(list);
        assert!(
            listed.contains(&format!(
                "{event}    {way}:\n      - id: \"order-events\"\n        version: 1.0.0\n"
            )),
            "{page}"
        );
    };
    through("to-kafka", "sends", "to");
    through("ProductOrderEventConsumer", "receives", "from");
    assert!(new.contains(r#"Order: \<b>see\</b> \{the\} | "order"."#), "{new}");
    assert!(
        files["channels/order-events/index.mdx"]
            .contains("address: \"order-events\"\nprotocols:\n  - \"kafka\"\n")
    );
    let schema = &files["domains/commerce/events/loopers.order.paid.v1/schema.json"];
    assert!(schema.contains("\"$defs\""), "a page has its whole schema: {schema}");
}

#[test]
fn a_name_never_leaves_its_folder() {
    let mut odd = event("../../etc/passwd");
    odd.stream = "..".to_owned();
    for file in render::event_catalog(&catalog(vec![odd], Vec::new())) {
        assert!(
            file.path.split('/').all(|part| !part.is_empty() && part != ".." && part != "."),
            "{}",
            file.path
        );
    }
}

#[test]
fn the_picture_marks_circles_and_what_is_unknown_and_escapes_labels() {
    let mut quoted = event("Say \"#1\" <now>");
    quoted.stream = "end".to_owned();
    let catalog = catalog(
        vec![event("A"), event("B"), event("C"), quoted],
        vec![subscriber("x", &[("A", &["B"]), ("B", &["A", "C"]), ("C", &["Gone"])])],
    );
    let page = render::markdown(&catalog);
    let cycle = "Follow-ups that can go on for ever:\n\n- [`A`](#a) → [`B`](#b) → [`A`](#a)\n\n";
    assert!(page.contains(cycle), "{page}");
    let picture = render::mermaid(&catalog);
    for line in [
        "h_x_A -.->|cycle| e_B",
        "h_x_B -.->|cycle| e_A",
        "h_x_B -.-> e_C",
        "u_Gone([\"Gone?\"]):::unknown",
        "e_Say___1___now_([\"Say #34;#35;1#34; #60;now#62;\"]):::event",
        "subgraph s_end[\"end\"]",
        "linkStyle 0,1,3,4 stroke:#c62828,stroke-width:3px,color:#c62828",
    ] {
        assert!(picture.lines().any(|found| found.trim() == line), "{line}\nis missing in\n{picture}");
    }
}

#[test]
fn names_that_differ_only_in_signs_keep_ids_of_their_own() {
    let picture = render::mermaid(&catalog(vec![event("a.b"), event("a-b")], Vec::new()));
    assert!(picture.contains("e_a_b([\"a-b\"])") && picture.contains("e_a_b_([\"a.b\"])"), "{picture}");
}

#[test]
fn what_is_odd_is_said_in_a_sentence_each() {
    let mut again = event("Paid");
    again.payload = Some(PayloadSchema { writes: json!({"type": "object"}), reads: None });
    let mut silent = event("Silent");
    silent.publishers.clear();
    let catalog = catalog(
        vec![event("Paid"), again, event("A"), event("B"), event("Lost"), silent],
        vec![subscriber(
            "x",
            &[("A", &["B"]), ("B", &["A"]), ("Paid", &["Gone"]), ("Payed", &[]), ("Silent", &[])],
        )],
    );
    assert_eq!(
        sentences(&catalog),
        [
            "error: `Paid` version 1 is defined twice with a different payload; a name and version must have one definition.",
            "warning: `x` has a handler for `Payed`, but nobody publishes that event.",
            "warning: `x` has a handler for `Silent`, but nobody publishes that event.",
            "warning: The handler of `x` for `Paid` records `Gone`, which is no event of this catalog.",
            "warning: Follow-up events form a cycle: A → B → A.",
            "information: Nobody receives `Lost` version 1.",
        ]
    );
}

#[test]
fn two_versions_two_equal_definitions_and_follow_ups_are_not_odd() {
    let mut second = event("Paid");
    second.version = 2;
    let mut recorded = event("Sent");
    recorded.publishers.clear();
    let catalog = catalog(
        vec![event("Paid"), event("Paid"), second, recorded],
        vec![subscriber("x", &[("Paid", &["Sent"]), ("Sent", &[])]), subscriber("all", &[("*", &[])])],
    );
    assert_eq!(sentences(&catalog), Vec::<String>::new());
    assert_eq!(Problem::Cycle { events: Vec::new() }.severity(), Severity::Warning);
}

/// As many events as asked for: each has a payload, is handled by one of ten subscribers and by one that takes all, and leads to
/// the next one.
fn many(count: usize) -> CatalogFile {
    let name = |number: usize| format!("Thing{number:04}Created");
    let events = (0..count).map(|number| {
        let mut event = event(&name(number));
        event.stream = format!("stream{}", number % 10);
        event.payload = Some(PayloadSchema {
            writes: json!({
                "type": "object",
                "properties": {"id": {"type": "string"}, "total": {"$ref": "#/$defs/Money"}},
                "required": ["id"],
                "$defs": {"Money": {"type": "object", "properties": {"amount": {"type": "integer"}}}},
            }),
            reads: None,
        });
        event
    });
    let mut subscribers: Vec<SubscriberEntry> =
        (0..10).map(|number| subscriber(&format!("service{number}"), &[])).collect();
    for number in 0..count {
        let follow_ups = vec![name((number + 1) % count)];
        subscribers[number % 10].handlers.insert(name(number), HandlerEntry { version: Some(1), follow_ups });
    }
    subscribers.push(subscriber("audit", &[("*", &[])]));
    catalog(events.collect(), subscribers)
}

fn everything(catalog: &CatalogFile) -> [usize; 6] {
    [
        render::markdown(catalog).len(),
        render::mermaid(catalog).len(),
        render::asyncapi(catalog).len(),
        render::json(catalog).len(),
        render::event_catalog(catalog).iter().map(|file| file.path.len() + file.text.len()).sum(),
        problems(catalog).len(),
    ]
}

/// What is written grows with the events; so does the work, for no output looks through all events for each of them (`Routes`).
#[test]
fn five_hundred_events_make_at_most_sixty_times_what_ten_make() {
    let (few, all) = (everything(&many(10)), everything(&many(500)));
    for (few, all) in few.iter().zip(all) {
        assert!(all <= 60 * few, "{few} became {all}");
    }
    assert_eq!(problems(&many(500)).len(), 1, "the circle of all of them");
}
