//! Who receives which event, worked out once: every output asks for it.

use std::collections::{BTreeMap, HashMap};

use postrider_core::Pattern;

use crate::{CatalogFile, EventEntry, HandlerEntry, SubscriberEntry};

/// An event on its way to a subscriber.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route<'c> {
    /// Who receives it.
    pub(crate) subscriber: &'c SubscriberEntry,
    /// What handles it there, if it is a handler.
    pub(crate) handler: Option<&'c HandlerEntry>,
}

impl<'c> Route<'c> {
    /// The events that the handler records.
    pub(crate) fn follow_ups(&self) -> &'c [String] {
        self.handler.map_or(&[], |handler| handler.follow_ups.as_slice())
    }
}

/// The routes of a catalog.
///
/// Making it costs as much as there are events, subscribers and routes; no output looks through all events for each event.
#[derive(Debug)]
pub(crate) struct Routes<'c> {
    catalog: &'c CatalogFile,
    routes: Vec<Vec<Route<'c>>>,
    by_name: HashMap<&'c str, Vec<usize>>,
}

impl<'c> Routes<'c> {
    /// The routes of a catalog.
    pub(crate) fn of(catalog: &'c CatalogFile) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, event) in catalog.events.iter().enumerate() {
            by_name.entry(&event.name).or_default().push(index);
        }
        let mut routes = Self { catalog, routes: vec![Vec::new(); catalog.events.len()], by_name };
        let mut subscribers: Vec<&SubscriberEntry> = catalog.subscribers.iter().collect();
        subscribers.sort_by(|one, other| one.name.cmp(&other.name));
        for subscriber in subscribers {
            routes.add(subscriber);
        }
        routes
    }

    fn add(&mut self, subscriber: &'c SubscriberEntry) {
        let takes_any = subscriber.destination.is_some()
            || subscriber.handlers.is_empty()
            || subscriber.handlers.contains_key("*");
        let candidates: Vec<usize> = if takes_any {
            (0..self.catalog.events.len()).collect()
        } else {
            let named = subscriber.handlers.keys().filter_map(|name| self.by_name.get(name.as_str()));
            named.flatten().copied().collect()
        };
        let filter = Filter::of(subscriber);
        for index in candidates {
            let event = &self.catalog.events[index];
            if filter.lets_through(event) {
                let handler = subscriber.handlers.get(&event.name).or_else(|| subscriber.handlers.get("*"));
                self.routes[index].push(Route { subscriber, handler });
            }
        }
    }

    /// The routes of the event at this place in the catalog, by subscriber.
    pub(crate) fn of_event(&self, index: usize) -> &[Route<'c>] {
        &self.routes[index]
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.routes.iter().map(Vec::len).sum()
    }

    /// The events with their places, by name and then version, the newest first.
    pub(crate) fn events(&self) -> Vec<(usize, &'c EventEntry)> {
        let mut events: Vec<(usize, &EventEntry)> = self.catalog.events.iter().enumerate().collect();
        events.sort_by_key(|(index, event)| (&event.name, std::cmp::Reverse(event.version), *index));
        events
    }

    /// The events by stream, each stream as [`events`](Routes::events) orders them.
    pub(crate) fn by_stream(&self) -> BTreeMap<&'c str, Vec<(usize, &'c EventEntry)>> {
        let mut streams: BTreeMap<&str, Vec<(usize, &EventEntry)>> = BTreeMap::new();
        for (index, event) in self.events() {
            streams.entry(&event.stream).or_default().push((index, event));
        }
        streams
    }

    /// Whether there is an event of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The newest version of an event.
    pub(crate) fn newest(&self, name: &str) -> Option<&'c EventEntry> {
        self.newest_place(name).map(|place| &self.catalog.events[place])
    }

    /// The place of the newest version of an event.
    pub(crate) fn newest_place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name)?.iter().copied().max_by_key(|place| self.catalog.events[*place].version)
    }

    /// Which events lead to which by handlers that record them: names, each pair once, in order.
    pub(crate) fn follow_ups(&self) -> BTreeMap<&'c str, Vec<&'c str>> {
        let mut follow_ups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (event, routes) in self.catalog.events.iter().zip(&self.routes) {
            let recorded = routes.iter().flat_map(Route::follow_ups).map(String::as_str);
            follow_ups.entry(&event.name).or_default().extend(recorded);
        }
        for names in follow_ups.values_mut() {
            names.sort_unstable();
            names.dedup();
        }
        follow_ups
    }
}

/// The filter of a subscriber, with its patterns made once.
struct Filter {
    streams: Vec<Pattern>,
    types: Vec<Pattern>,
}

impl Filter {
    fn of(subscriber: &SubscriberEntry) -> Self {
        let patterns = |texts: &[String]| texts.iter().map(Pattern::new).collect();
        Self { streams: patterns(&subscriber.streams), types: patterns(&subscriber.types) }
    }

    fn lets_through(&self, event: &EventEntry) -> bool {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        any(&self.streams, &event.stream) && any(&self.types, &event.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_goes_to_whom_the_model_says() {
        let event = |name: &str, version: u32, stream: &str| EventEntry {
            name: name.to_owned(),
            version,
            stream: stream.to_owned(),
            aggregate: String::new(),
            ordering_key: String::new(),
            sequenced: false,
            summary: None,
            publishers: Vec::new(),
            upcast_from: Vec::new(),
            payload: None,
        };
        let subscriber = |name: &str, streams: &[&str], types: &[&str], handlers: &[&str], sends: bool| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
            SubscriberEntry {
                name: name.to_owned(),
                streams: texts(streams),
                types: texts(types),
                handlers: texts(handlers).into_iter().map(|name| (name, HandlerEntry::default())).collect(),
                destination: sends.then(|| "http".to_owned()),
                topics: Vec::new(),
                topics_by_type: BTreeMap::new(),
            }
        };
        let catalog = CatalogFile {
            format: crate::FORMAT,
            system: String::new(),
            events: vec![
                event("A", 1, "s"),
                event("A", 2, "s"),
                event("B", 1, "s"),
                event("B", 1, "t"),
                event("C", 1, "t"),
            ],
            subscribers: vec![
                subscriber("a handler", &[], &[], &["A"], false),
                subscriber("by stream", &["t*"], &[], &["B", "C", "Gone"], false),
                subscriber("everything", &[], &[], &["*"], false),
                subscriber("nothing told", &[], &["*B*"], &[], false),
                subscriber("sink", &["s"], &["A", "C"], &[], true),
                subscriber("sink with handlers", &[], &[], &["A"], true),
            ],
        };
        let routes = Routes::of(&catalog);
        for (index, event) in catalog.events.iter().enumerate() {
            let expected: Vec<&str> =
                catalog.subscribers_of(event).map(|subscriber| subscriber.name.as_str()).collect();
            let found: Vec<&str> =
                routes.of_event(index).iter().map(|route| route.subscriber.name.as_str()).collect();
            assert_eq!(found, expected, "{} of {}", event.name, event.stream);
        }
        assert_eq!(routes.count(), 2 + 2 + 5 + 2 + 2 + 5);
        assert_eq!(routes.newest("A").map(|event| event.version), Some(2));
    }
}
