//! How the work of a catalog grows with its events.

use std::hint::black_box;
use std::time::Instant;

use postrider_catalog::{
    Catalog, CatalogFile, Convention, Conventions, EventEntry, FORMAT, HandlerEntry, Lock, PayloadSchema,
    SubscriberEntry, check, problems, render,
};
use serde_json::json;

use crate::median;
use crate::report::Report;

const FEW: usize = 10;
const MANY: usize = 500;
/// The bar: fifty times the events, with some room for what a larger memory costs.
const BAR: f64 = 60.0;

/// A part of the work, by its name.
type Part = (&'static str, fn(&Material));

const PARTS: [Part; 10] = [
    ("parse", |material| drop(black_box(CatalogFile::parse(&material.text)))),
    ("from_file", |material| drop(black_box(Catalog::from_file(material.file.clone())))),
    ("check", |material| drop(black_box(check(&material.file, &material.lock)))),
    ("names", |material| drop(black_box(material.conventions.refusals(&material.file)))),
    ("problems", |material| drop(black_box(problems(&material.file)))),
    ("markdown", |material| drop(black_box(render::markdown(&material.file)))),
    ("mermaid", |material| drop(black_box(render::mermaid(&material.file)))),
    ("asyncapi", |material| drop(black_box(render::asyncapi(&material.file)))),
    ("eventcatalog", |material| drop(black_box(render::event_catalog(&material.file)))),
    ("json", |material| drop(black_box(render::json(&material.file)))),
];

struct Material {
    file: CatalogFile,
    text: String,
    lock: Lock,
    conventions: Conventions,
}

/// A line for each part of the work, and one for all of it.
pub fn run(report: &mut Report, quick: bool) {
    let (few, many) = (Material::of(FEW), Material::of(MANY));
    let turns = if quick { 5 } else { 15 };
    let mut sums = (0.0, 0.0);
    for (name, part) in PARTS {
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..turns {
            // As many events on both sides: a clock measures short times badly.
            times.0.push(seconds(|| (0..MANY / FEW).for_each(|_| part(&few))) * FEW as f64 / MANY as f64);
            times.1.push(seconds(|| part(&many)));
        }
        let (few, many) = (median(times.0), median(times.1));
        sums = (sums.0 + few, sums.1 + many);
        line(report, name, few, many);
    }
    line(report, "all", sums.0, sums.1);
}

fn line(report: &mut Report, name: &str, few: f64, many: f64) {
    let detail = format!("{FEW} take {:.3} ms, {MANY} take {:.3} ms", few * 1e3, many * 1e3);
    report.at_most(
        &format!("catalog {name}, {MANY} events against {FEW}"),
        many / few,
        BAR,
        "times",
        &detail,
    );
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

impl Material {
    /// Each event has a payload, is handled by one of ten subscribers and by one that takes all, and leads to the next. The lock has an
    /// older schema of each.
    fn of(count: usize) -> Self {
        let name = |number: usize| format!("Thing{number:04}Created");
        let schema = |required: &[&str]| PayloadSchema {
            writes: json!({
                "type": "object",
                "properties": { "id": { "type": "string" }, "total": { "$ref": "#/$defs/Money" } },
                "required": required,
                "$defs": { "Money": { "type": "object", "properties": { "amount": { "type": "integer", "format": "int64" } } } },
            }),
            reads: None,
        };
        let event = |number: usize| EventEntry {
            name: name(number),
            version: 1,
            stream: format!("stream{}", number % 10),
            aggregate: "Thing".to_owned(),
            ordering_key: "aggregate".to_owned(),
            sequenced: false,
            summary: Some("A thing was created.".to_owned()),
            publishers: vec!["shop".to_owned()],
            upcast_from: Vec::new(),
            payload: Some(schema(&["id"])),
        };
        let subscriber = |name: String| SubscriberEntry {
            name,
            streams: Vec::new(),
            types: Vec::new(),
            handlers: Default::default(),
            destination: None,
            topics: Vec::new(),
            topics_by_type: Default::default(),
        };
        let mut subscribers: Vec<_> = (0..10).map(|number| subscriber(format!("service{number}"))).collect();
        for number in 0..count {
            let follow_ups = vec![name((number + 1) % count)];
            let handler = HandlerEntry { version: Some(1), follow_ups };
            subscribers[number % 10].handlers.insert(name(number), handler);
        }
        let mut all = subscriber("audit".to_owned());
        all.handlers.insert("*".to_owned(), HandlerEntry::default());
        subscribers.push(all);
        let events: Vec<EventEntry> = (0..count).map(event).collect();
        let mut file = CatalogFile { format: FORMAT, system: "shop".to_owned(), events, subscribers };
        let mut lock = Lock::new();
        lock.update(&file);
        // Every event has become one with a finding.
        for event in &mut file.events {
            event.payload = Some(schema(&["id", "total"]));
        }
        let conventions = Conventions::everywhere(Convention::Commands);
        Self { text: file.to_json(), file, lock, conventions }
    }
}
