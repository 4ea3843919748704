//! The catalog as a picture: events by stream, who receives them, and what their handlers record.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use crate::cycles::circular;
use crate::routes::Routes;
use crate::{CatalogFile, EventEntry};

/// The catalog as a Mermaid flowchart.
///
/// A stream is a box with its events and who receives them; its title names the subscribers that receive all of them. A handler
/// that records events has a node of its own for each event, with dotted arrows to what it records; red ones can go on for
/// ever.
pub fn mermaid(catalog: &CatalogFile) -> String {
    let mut graph = Graph::of(catalog);
    graph.write();
    graph.text
}

const STYLES: &str = "    classDef event fill:#e3f2fd,stroke:#1565c0,color:#0d2b4e
    classDef handler fill:#fff8e1,stroke:#b26a00,color:#3e2600
    classDef subscriber fill:#f1f3f4,stroke:#5f6368,color:#202124
    classDef unknown fill:#fdecea,stroke:#c62828,color:#5f1412,stroke-dasharray:4 3
";

struct Graph<'c> {
    routes: Routes<'c>,
    ids: Ids,
    circular: HashSet<(&'c str, &'c str)>,
    text: String,
    arrows: usize,
    /// The arrows that are part of a circle.
    endless: Vec<usize>,
}

impl<'c> Graph<'c> {
    fn of(catalog: &'c CatalogFile) -> Self {
        let routes = Routes::of(catalog);
        let circular = circular(&routes.follow_ups());
        let text = "flowchart LR\n".to_owned();
        Self { routes, ids: Ids::default(), circular, text, arrows: 0, endless: Vec::new() }
    }

    fn write(&mut self) {
        let streams = self.routes.by_stream();
        for (stream, events) in &streams {
            self.write_stream(stream, events);
        }
        for events in streams.values() {
            self.write_follow_ups(events);
        }
        self.write_unknown();
        self.text.push_str(STYLES);
        if !self.endless.is_empty() {
            let endless = self.endless.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let _ =
                writeln!(self.text, "    linkStyle {endless} stroke:#c62828,stroke-width:3px,color:#c62828");
        }
    }

    /// A box with the events, each once, whatever versions it has, and with who receives them.
    fn write_stream(&mut self, stream: &str, events: &[(usize, &'c EventEntry)]) {
        let id = self.ids.of("s", stream);
        let mut versions: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, event) in events {
            let newest = versions.entry(&event.name).or_default();
            *newest = event.version.max(*newest);
        }
        let mut received = self.received(events);
        let everything = |received: &BTreeSet<&str>| received.len() == versions.len() && versions.len() > 1;
        let all: Vec<&str> = received
            .iter()
            .filter(|(_, names)| everything(names))
            .map(|(subscriber, _)| *subscriber)
            .collect();
        received.retain(|_, names| !everything(names));
        let mut title = escaped(stream);
        if !all.is_empty() {
            let _ = write!(title, " (all to {})", escaped(&all.join(", ")));
        }
        let _ = writeln!(self.text, "    subgraph {id}[\"{title}\"]\n        direction LR");
        for (name, version) in versions {
            let id = self.ids.of("e", name);
            let version = if version > 1 { format!(", version {version}") } else { String::new() };
            let _ = writeln!(self.text, "        {id}([\"{}{version}\"]):::event", escaped(name));
        }
        for (subscriber, names) in received {
            let id = self.ids.of("r", &format!("{stream} {subscriber}"));
            let _ = writeln!(self.text, "        {id}[\"{}\"]:::subscriber", escaped(subscriber));
            for event in names {
                let event = self.ids.of("e", event);
                self.arrow(&format!("    {event} --> {id}"));
            }
        }
        for ((event, subscriber), recorded) in handlers(&self.routes, events) {
            let handler = self.ids.of("h", &format!("{subscriber} {event}"));
            let _ = writeln!(self.text, "        {handler}[\"{}\"]:::handler", escaped(subscriber));
            let from = self.ids.of("e", event);
            self.mark(recorded.iter().any(|follow_up| self.circular.contains(&(event, *follow_up))));
            self.arrow(&format!("    {from} --> {handler}"));
        }
        self.text.push_str("    end\n");
    }

    /// The events that each subscriber receives without recording anything.
    fn received(&self, events: &[(usize, &'c EventEntry)]) -> BTreeMap<&'c str, BTreeSet<&'c str>> {
        let mut received: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, event) in events {
            for route in self.routes.of_event(*index).iter().filter(|route| route.follow_ups().is_empty()) {
                received.entry(&route.subscriber.name).or_default().insert(&event.name);
            }
        }
        received
    }

    /// The arrows from handlers to what they record.
    fn write_follow_ups(&mut self, events: &[(usize, &'c EventEntry)]) {
        for ((event, subscriber), recorded) in handlers(&self.routes, events) {
            let handler = self.ids.of("h", &format!("{subscriber} {event}"));
            for follow_up in recorded {
                let kind = if self.routes.knows(follow_up) { "e" } else { "u" };
                let to = self.ids.of(kind, follow_up);
                let endless = self.circular.contains(&(event, follow_up));
                self.mark(endless);
                let label = if endless { "|cycle|" } else { "" };
                self.arrow(&format!("{handler} -.->{label} {to}"));
            }
        }
    }

    /// What handlers record and the catalog does not have.
    fn write_unknown(&mut self) {
        let follow_ups = self.routes.follow_ups();
        let unknown: BTreeSet<&str> =
            follow_ups.values().flatten().copied().filter(|name| !self.routes.knows(name)).collect();
        for name in unknown {
            let id = self.ids.of("u", name);
            let _ = writeln!(self.text, "    {id}([\"{}?\"]):::unknown", escaped(name));
        }
    }

    /// Says whether the next arrow is part of a circle.
    fn mark(&mut self, endless: bool) {
        self.endless.extend(endless.then_some(self.arrows));
    }

    fn arrow(&mut self, arrow: &str) {
        let _ = writeln!(self.text, "    {arrow}");
        self.arrows += 1;
    }
}

/// The handlers that record events, by event and subscriber, each with what it records.
fn handlers<'c>(
    routes: &Routes<'c>,
    events: &[(usize, &'c EventEntry)],
) -> BTreeMap<(&'c str, &'c str), BTreeSet<&'c str>> {
    let mut handlers: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (index, event) in events {
        for route in routes.of_event(*index).iter().filter(|route| !route.follow_ups().is_empty()) {
            let recorded = route.follow_ups().iter().map(String::as_str);
            handlers.entry((&event.name, &route.subscriber.name)).or_default().extend(recorded);
        }
    }
    handlers
}

/// Ids that depend on the names alone: a new event changes no other line.
#[derive(Default)]
struct Ids {
    given: HashMap<(String, String), String>,
    taken: HashSet<String>,
}

impl Ids {
    fn of(&mut self, kind: &str, name: &str) -> String {
        let key = (kind.to_owned(), name.to_owned());
        if let Some(id) = self.given.get(&key) {
            return id.clone();
        }
        let letters = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        let mut id = format!("{kind}_{}", letters.collect::<String>());
        // Two names that differ only in what an id can't have.
        while !self.taken.insert(id.clone()) {
            id.push('_');
        }
        self.given.insert(key, id.clone());
        id
    }
}

/// A label between quotation marks.
fn escaped(text: &str) -> String {
    let mut label = String::new();
    for letter in text.chars() {
        if letter.is_alphanumeric() || " -_.:/(),".contains(letter) {
            label.push(letter);
        } else if letter.is_whitespace() {
            label.push(' ');
        } else {
            let _ = write!(label, "#{};", u32::from(letter));
        }
    }
    label
}
