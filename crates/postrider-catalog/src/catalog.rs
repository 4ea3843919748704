//! The catalog as an application builds it, with its types linked in.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use postrider_core::{Event, EventInfo, EventMapping, OutboxSource, Result};
use postrider_relay::{Relay, SubscriberInfo, Upcasters};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::{CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, SubscriberEntry};
use crate::payload;
use crate::quiet::quietly;
use crate::reader::{self, DecodeFn, RewriteFn};

/// The events of a system, built from its types and its subscriptions.
///
/// A test of the application can keep the file current: build the catalog, and compare [`to_json`](Catalog::to_json) with the file,
/// or [write](Catalog::write) it and let version control show the change.
///
/// ```
/// use postrider_catalog::Catalog;
/// # use postrider_core as postrider;
/// use postrider::Event;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// An order was paid in full.
/// #[derive(Serialize, Deserialize, JsonSchema, postrider_macros::Event)]
/// # #[event(crate = "postrider_core")]
/// #[event(aggregate = "Order", id = order, stream = "orders")]
/// struct OrderPaid {
///     order: i64,
///     amount: i64,
/// }
///
/// let catalog = Catalog::new("shop").event::<OrderPaid>();
/// let event = &catalog.file().events[0];
/// assert_eq!((event.name.as_str(), event.stream.as_str()), ("OrderPaid", "orders"));
/// assert_eq!(event.summary.as_deref(), Some("An order was paid in full."));
/// ```
#[derive(Clone)]
pub struct Catalog {
    file: CatalogFile,
    readers: HashMap<String, BTreeMap<u32, DecodeFn>>,
    rewriters: HashMap<(String, u32), RewriteFn>,
    /// All that are used.
    upcasters: Upcasters,
    /// Those that were given by hand.
    given: Upcasters,
    /// Those of the relays.
    shared: Option<Upcasters>,
    /// Who publishes the events that are added.
    publisher: String,
}

impl Catalog {
    /// An empty catalog. The system is the publisher of the events that are added, until [`published_by`](Catalog::published_by) names
    /// another.
    pub fn new(system: impl Into<String>) -> Self {
        let system = system.into();
        let publisher = system.clone();
        let file = CatalogFile { format: FORMAT, system, events: Vec::new(), subscribers: Vec::new() };
        Self {
            file,
            readers: HashMap::new(),
            rewriters: HashMap::new(),
            upcasters: Upcasters::new(),
            given: Upcasters::new(),
            shared: None,
            publisher,
        }
    }

    /// A catalog that is known as data only. What its types can't tell here, their schemas do.
    pub fn from_file(file: CatalogFile) -> Self {
        let mut readers: HashMap<String, BTreeMap<u32, DecodeFn>> = HashMap::new();
        for event in &file.events {
            if let Some(payload) = &event.payload {
                let reader = reader::by_schema(payload.reads().clone());
                readers.entry(event.name.clone()).or_default().insert(event.version, reader);
            }
        }
        Self {
            readers,
            rewriters: HashMap::new(),
            upcasters: Upcasters::new(),
            given: Upcasters::new(),
            shared: None,
            publisher: file.system.clone(),
            file,
        }
    }

    /// Names the program that publishes the events that are added from here on.
    #[must_use]
    pub fn published_by(mut self, program: impl Into<String>) -> Self {
        self.publisher = program.into();
        self
    }

    /// Adds the events and subscribers of another catalog, such as that of another program. An event that both have the same way gets the
    /// publishers of both. Its types are not linked in by this.
    #[must_use]
    pub fn merge(mut self, other: CatalogFile) -> Self {
        other.events.into_iter().for_each(|entry| self.insert(entry));
        for subscriber in other.subscribers {
            if !self.file.subscribers.contains(&subscriber) {
                self.file.subscribers.push(subscriber);
            }
        }
        self.file.subscribers.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// Adds an event that this system records and can read.
    #[must_use]
    pub fn event<E: Event + DeserializeOwned + JsonSchema + Send + 'static>(mut self) -> Self {
        let payload = payload::of::<E>();
        self.read_by(EventInfo::of::<E>(), reader::of::<E>(&payload));
        self.rewritten_by(EventInfo::of::<E>(), reader::rewriting::<E>());
        self.add(EventInfo::of::<E>(), Some(payload))
    }

    /// Adds an event whose type can't be read here: it has no `Deserialize`.
    #[must_use]
    pub fn written_only<E: Event + JsonSchema>(self) -> Self {
        let payload = payload::written_only::<E>();
        self.add(EventInfo::of::<E>(), Some(payload))
    }

    /// Adds an event whose type has no schema. Its name and version are checked, its fields are not.
    #[must_use]
    pub fn without_schema<E: Event>(self) -> Self {
        self.add(EventInfo::of::<E>(), None)
    }

    /// Adds the same for a type that can be read here: the payloads of a log are tried on it.
    #[must_use]
    pub fn event_without_schema<E: Event + DeserializeOwned + Send + 'static>(mut self) -> Self {
        self.read_by(EventInfo::of::<E>(), reader::without_schema::<E>());
        self.add(EventInfo::of::<E>(), None)
    }

    /// Adds an event that a mapping describes at run time: a type of another crate.
    #[must_use]
    pub fn mapping<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static>(
        mut self,
        mapping: &EventMapping<T>,
    ) -> Self {
        let payload = payload::of::<T>();
        self.read_by(mapping.info(), reader::of::<T>(&payload));
        self.rewritten_by(mapping.info(), reader::rewriting::<T>());
        self.add(mapping.info(), Some(payload))
    }

    /// Adds the same for a type without a schema.
    #[must_use]
    pub fn mapping_without_schema<T: Serialize + 'static>(self, mapping: &EventMapping<T>) -> Self {
        self.add(mapping.info(), None)
    }

    /// Adds an event that is known as data only, such as one of another language.
    #[must_use]
    pub fn entry(mut self, entry: EventEntry) -> Self {
        self.insert(entry);
        self
    }

    /// The upcasters of this system, besides those of its relays: the versions that they lead from are still read.
    #[must_use]
    pub fn upcasters(mut self, upcasters: Upcasters) -> Self {
        self.given = upcasters;
        self.upcast()
    }

    /// Adds the subscriptions of a relay, and its upcasters. If others are given by [`upcasters`](Catalog::upcasters), they must have the
    /// same steps: [`check`](Catalog::check) warns of those that a relay does not have.
    #[must_use]
    pub fn relay<S: OutboxSource>(mut self, relay: &Relay<S>) -> Self {
        for info in relay.subscriber_infos() {
            self = self.subscriber(info);
        }
        let shared = self.shared.take().unwrap_or_default();
        self.shared = Some(shared.with_steps_of(relay.shared_upcasters()));
        self.upcast()
    }

    /// Works out which versions are still read.
    fn upcast(mut self) -> Self {
        self.upcasters = match &self.shared {
            Some(shared) => self.given.clone().with_steps_of(shared),
            None => self.given.clone(),
        };
        for event in &mut self.file.events {
            // What another program's catalog says of its own upcasters stays.
            event.upcast_from.extend(self.upcasters.versions(&event.name, event.version));
            event.upcast_from.sort_unstable();
            event.upcast_from.dedup();
        }
        self
    }

    /// The steps that were given by hand, by event type and version, and that no relay of this catalog has.
    pub(crate) fn steps_of_no_relay(&self) -> Vec<(&str, u32)> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let known: Vec<(&str, u32)> = shared.steps().collect();
        self.given.steps().filter(|step| !known.contains(step)).collect()
    }

    /// Adds a subscription, or a consumer of a broker's topics.
    #[must_use]
    pub fn subscriber(mut self, info: SubscriberInfo) -> Self {
        let handlers = info.handlers.into_iter().map(|(name, handler)| {
            (name, HandlerEntry { version: handler.version, follow_ups: handler.follow_ups })
        });
        self.file.subscribers.push(SubscriberEntry {
            name: info.name,
            streams: info.streams,
            types: info.types,
            handlers: handlers.collect(),
            destination: info.destination,
            topics: info.topics,
            topics_by_type: info.topics_by_type,
        });
        self.file.subscribers.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// The catalog as data.
    pub fn file(&self) -> &CatalogFile {
        &self.file
    }

    /// The catalog as JSON: the same catalog gives the same text.
    pub fn to_json(&self) -> String {
        self.file.to_json()
    }

    /// Writes the catalog to a file, which `postrider catalog` reads.
    ///
    /// *On failure*: [`Invalid`](postrider_core::ErrorKind::Invalid) if two events with one name and version differ, or the file can't be written. The
    /// old file stays then.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.file.check()?;
        crate::format::write(path.as_ref(), &self.to_json())
    }

    /// What reads the newest version of an event that is linked in, and which that is.
    pub(crate) fn reader(&self, name: &str) -> Option<(u32, &DecodeFn)> {
        let (version, reader) = self.readers.get(name)?.last_key_value()?;
        Some((*version, reader))
    }

    /// What reads this version of an event.
    pub(crate) fn reader_of(&self, name: &str, version: u32) -> Option<&DecodeFn> {
        self.readers.get(name)?.get(&version)
    }

    /// Whether the application has upcasters from this version to the newest that are not linked in here.
    pub(crate) fn needs_the_application(&self, newest: &EventEntry, version: u32) -> bool {
        newest.upcast_from.contains(&version)
            && !self.upcasters.versions(&newest.name, newest.version).contains(&version)
    }

    /// A payload of an older version as the newest. The error does not quote it, also if the upcaster panics.
    pub(crate) fn convert(&self, name: &str, from: u32, to: u32, old: Value) -> Result<Value, String> {
        match quietly(|| self.upcasters.convert(name, from, to, old)) {
            Some(converted) => converted.map_err(|error| error.message().to_owned()),
            None => Err(format!("an upcaster of {name} between versions {from} and {to} panicked")),
        }
    }

    /// A payload as the type of this version reads it and writes it again; nothing if it does not read it, or is not linked in.
    pub(crate) fn rewrite(&self, name: &str, version: u32, payload: &Value) -> Option<Value> {
        self.rewriters.get(&(name.to_owned(), version))?(payload)
    }

    fn rewritten_by(&mut self, info: EventInfo, rewriter: RewriteFn) {
        self.rewriters.insert((info.name, info.version), rewriter);
    }

    fn read_by(&mut self, info: EventInfo, reader: DecodeFn) {
        self.readers.entry(info.name).or_default().insert(info.version, reader);
    }

    fn add(mut self, info: EventInfo, payload: Option<PayloadSchema>) -> Self {
        let upcast_from = self.upcasters.versions(&info.name, info.version);
        let described = || payload.as_ref()?.writes.get("description")?.as_str().map(str::to_owned);
        self.insert(EventEntry {
            summary: info.summary.or_else(described).and_then(|text| first_sentence(&text)),
            name: info.name,
            version: info.version,
            stream: info.stream,
            aggregate: info.aggregate,
            ordering_key: info.ordering_key.unwrap_or_else(|| "aggregate".to_owned()),
            sequenced: info.sequenced,
            publishers: vec![self.publisher.clone()],
            upcast_from,
            payload,
        });
        self
    }

    fn insert(&mut self, entry: EventEntry) {
        let events = &mut self.file.events;
        let place =
            events.partition_point(|event| (&event.name, event.version) < (&entry.name, entry.version));
        let is_alike = |event: &EventEntry| (&event.name, event.version) == (&entry.name, entry.version);
        let alike = events[place..].iter().take_while(|event| is_alike(event)).count();
        // The same event twice says nothing new but who publishes it; one that differs is reported by `check`.
        match events[place..place + alike].iter_mut().find(|event| event.is_same_as(&entry)) {
            Some(known) => {
                known.summary = known.summary.take().or(entry.summary);
                known.publishers.extend(entry.publishers);
                known.publishers.sort();
                known.publishers.dedup();
            }
            None => events.insert(place + alike, entry),
        }
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A text up to its first full stop that ends a word, or to its first empty line, as the derive takes it from a doc comment.
fn first_sentence(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).skip_while(|line| line.is_empty());
    let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let sentence = paragraph.find(". ").map_or(paragraph.as_str(), |end| &paragraph[..=end]);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(words: &str, stream: &str) -> Catalog {
        let entry = json!({
            "name": "OrderPaid", "version": 1, "stream": stream, "aggregate": "Order", "ordering_key": "aggregate",
            "summary": words, "publishers": [words],
            "payload": { "writes": { "type": "object", "description": words, "properties": {
                "description": { "type": "string", "description": words, "enum": ["description"] },
            } } },
        });
        Catalog::new(words).entry(serde_json::from_value(entry).expect("an entry"))
    }

    #[test]
    fn two_programs_tell_an_event_in_their_own_words_and_a_difference_is_named() {
        let merged = event("shop", "orders").merge(event("billing", "orders").file().clone());
        let [entry] = merged.file().events.as_slice() else { panic!("{merged:?}") };
        assert_eq!(
            (entry.summary.as_deref(), entry.publishers.join("+")),
            (Some("shop"), "billing+shop".to_owned())
        );

        let differs = event("shop", "orders").merge(event("billing", "payments").file().clone());
        let refusal = differs.file().check().expect_err("two events").message().to_owned();
        assert_eq!(
            refusal,
            "OrderPaid version 1: duplicate event; name and version must be unique; the two differ in the stream"
        );
    }
}
