//! A catalog of some events, with what stands beside it.

use postrider_catalog::{
    Catalog, CatalogFile, Convention, Conventions, EventEntry, FORMAT, HandlerEntry, Lock, LogContents,
    PayloadSchema, Seen, SubscriberEntry,
};
use postrider_core::OffsetDateTime;
use serde_json::json;

use super::linked::{self, Log};

/// The name of an event.
pub(super) fn name(number: usize) -> String {
    format!("Thing{number:04}Created")
}

pub(super) struct Material {
    pub(super) count: usize,
    pub(super) file: CatalogFile,
    pub(super) text: String,
    pub(super) lock: Lock,
    pub(super) lock_text: String,
    pub(super) conventions: Conventions,
    /// The same events with their types, as a second version, and the lock of their first.
    pub(super) linked: Catalog,
    pub(super) linked_lock: Lock,
    pub(super) log: Log,
    contents: LogContents,
}

fn schema(required: &[&str]) -> PayloadSchema {
    PayloadSchema {
        writes: json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "total": { "$ref": "#/$defs/Money" } },
            "required": required,
            "$defs": { "Money": { "type": "object", "properties": { "amount": { "type": "integer", "format": "int64" } } } },
        }),
        reads: None,
    }
}

fn event(number: usize) -> EventEntry {
    EventEntry {
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
    }
}

/// What a log of these events has: half of them, and as many that the catalog does not have.
fn contents(count: usize) -> LogContents {
    let at = OffsetDateTime::UNIX_EPOCH;
    let seen = |number: usize| Seen {
        name: name(number),
        version: 1,
        stream: "stream".to_owned(),
        count: 1,
        first: at,
        last: at,
    };
    let seen = (count / 2..count + count / 2).map(seen).collect();
    LogContents { seen, rows: 0, complete: true, since: Some(at), until: Some(at) }
}

impl Material {
    /// What `postrider catalog` looks up: who receives each event, and what of it the log has.
    pub(super) fn shown(&self) -> usize {
        let receivers = self.file.events.iter().map(|event| self.file.subscribers_of(event).count());
        receivers.sum::<usize>()
            + self.contents.unknown(&self.file).count()
            + self.contents.unseen(&self.file).count()
            + self.contents.unseen_versions(&self.file).count()
    }

    /// Each event has a payload, is handled by one of ten subscribers and by one that takes all, and leads to the next. The lock has an
    /// older schema of each.
    pub(super) fn of(count: usize) -> Self {
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
        Self {
            count,
            text: file.to_json(),
            conventions: Conventions::everywhere(Convention::Commands),
            lock_text: lock.to_json(),
            linked: linked::catalog(count),
            linked_lock: linked::lock(count),
            log: Log::of(count),
            contents: contents(count),
            file,
            lock,
        }
    }
}
