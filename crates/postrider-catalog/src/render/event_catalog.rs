//! The catalog as the folder of an EventCatalog (eventcatalog.dev): pages that its site is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::{RenderedFile, pretty};
use crate::routes::{Route, Routes};
use crate::schema_hash;
use crate::{CatalogFile, EventEntry, topics};

/// The version of domains, services and channels: the catalog knows versions of events only.
const UNVERSIONED: &str = "1.0.0";

/// The catalog as the files of an EventCatalog, by path.
///
/// A stream is a domain with its events in it; publishers and subscribers are services; topics are channels. Versions of
/// events are `1.0.0`, `2.0.0` and so on; older ones are under `versioned`, with the schema of the payload beside each page.
pub fn event_catalog(catalog: &CatalogFile) -> Vec<RenderedFile> {
    let routes = Routes::of(catalog);
    let mut pages = Pages::default();
    for (stream, events) in routes.by_stream() {
        pages.add_domain(catalog, stream, &events);
        for (index, event) in events {
            pages.add_event(&routes, index, event);
        }
    }
    pages.into_files(catalog)
}

/// Events with their versions, each with the topics that it goes through.
type Messages = BTreeMap<(String, u32), BTreeSet<String>>;

#[derive(Default)]
struct Service {
    sends: Messages,
    receives: Messages,
}

#[derive(Default)]
struct Pages {
    files: BTreeMap<String, String>,
    services: BTreeMap<String, Service>,
    /// Topics with their protocols.
    channels: BTreeMap<String, BTreeSet<String>>,
}

impl Pages {
    fn add_domain(&mut self, catalog: &CatalogFile, stream: &str, events: &[(usize, &EventEntry)]) {
        let publishers: BTreeSet<&String> = events.iter().flat_map(|(_, event)| &event.publishers).collect();
        let summary = format!("The stream {stream} of {}.", catalog.system);
        let mut page = front_matter(stream, UNVERSIONED, Some(&summary));
        if !publishers.is_empty() {
            page.push_str("services:\n");
        }
        for publisher in publishers {
            let _ = writeln!(page, "  - id: {}\n    version: {UNVERSIONED}", quoted(publisher));
        }
        let _ = write!(page, "---\n\n{}\n\n<NodeGraph />\n", prose(&summary));
        self.files.insert(format!("domains/{}/index.mdx", folder(stream)), page);
    }

    fn add_event(&mut self, routes: &Routes<'_>, index: usize, event: &EventEntry) {
        self.add_services(event, routes.of_event(index));
        let mut place = format!("domains/{}/events/{}", folder(&event.stream), folder(&event.name));
        if routes.newest(&event.name).is_some_and(|newest| newest.version != event.version) {
            let _ = write!(place, "/versioned/{}", version(event.version));
        }
        let mut page = front_matter(&event.name, &version(event.version), event.summary.as_deref());
        if event.payload.is_some() {
            page.push_str("schemaPath: schema.json\n");
        }
        let summary = event.summary.as_deref().unwrap_or("The catalog has no summary of this event.");
        let _ = write!(page, "---\n\n## Overview\n\n{}\n\n", prose(summary));
        let aggregate = event.aggregate.replace('`', "");
        let _ = write!(page, "It is about the aggregate `{aggregate}`.\n\n<NodeGraph />\n");
        if let Some(payload) = &event.payload {
            page.push_str("\n## Payload\n\n<SchemaViewer file=\"schema.json\" />\n");
            let mut schema = payload.writes.clone();
            if let Some(root) = schema.as_object_mut() {
                root.insert("x-schema-hash".into(), schema_hash(Some(payload)).into());
            }
            schema.sort_all_objects();
            self.files.insert(format!("{place}/schema.json"), pretty(&schema));
        }
        self.files.insert(format!("{place}/index.mdx"), page);
    }

    /// A subscription with a destination receives an event and sends it on; a consumer receives it from its topics.
    fn add_services(&mut self, event: &EventEntry, routes: &[Route<'_>]) {
        let id = (event.name.clone(), event.version);
        for publisher in &event.publishers {
            self.services.entry(publisher.clone()).or_default().sends.entry(id.clone()).or_default();
        }
        for route in routes {
            let topics = topics::of_subscriber(route.subscriber, event);
            for topic in &topics {
                let protocols = self.channels.entry(topic.clone()).or_default();
                protocols.extend(route.subscriber.destination.clone());
            }
            let service = self.services.entry(route.subscriber.name.clone()).or_default();
            let received = service.receives.entry(id.clone()).or_default();
            if route.subscriber.destination.is_none() {
                received.extend(topics);
            } else if !topics.is_empty() {
                service.sends.entry(id.clone()).or_default().extend(topics);
            }
        }
    }

    fn into_files(mut self, catalog: &CatalogFile) -> Vec<RenderedFile> {
        for (name, service) in &self.services {
            let page = service.page(name, catalog);
            self.files.insert(format!("services/{}/index.mdx", folder(name)), page);
        }
        for (topic, protocols) in &self.channels {
            let summary = format!("The topic {topic} of {}.", catalog.system);
            let mut page = front_matter(topic, UNVERSIONED, Some(&summary));
            let _ = writeln!(page, "address: {}", quoted(topic));
            if !protocols.is_empty() {
                page.push_str("protocols:\n");
            }
            for protocol in protocols {
                let _ = writeln!(page, "  - {}", quoted(protocol));
            }
            let _ = write!(page, "---\n\n{}\n\n<ChannelInformation />\n", prose(&summary));
            self.files.insert(format!("channels/{}/index.mdx", folder(topic)), page);
        }
        self.files.into_iter().map(|(path, text)| RenderedFile { path, text }).collect()
    }
}

impl Service {
    fn page(&self, name: &str, catalog: &CatalogFile) -> String {
        let does = match (self.sends.len(), self.receives.len()) {
            (0, received) => format!("Receives {received} events"),
            (sent, 0) => format!("Publishes {sent} events"),
            (sent, received) => format!("Publishes {sent} events and receives {received}"),
        };
        let summary = format!("{does} of {}.", catalog.system);
        let mut page = front_matter(name, UNVERSIONED, Some(&summary));
        for (list, way, messages) in [("sends", "to", &self.sends), ("receives", "from", &self.receives)] {
            if !messages.is_empty() {
                let _ = writeln!(page, "{list}:");
            }
            for ((event, number), topics) in messages {
                let _ = writeln!(page, "  - id: {}\n    version: {}", quoted(event), version(*number));
                if !topics.is_empty() {
                    let _ = writeln!(page, "    {way}:");
                }
                for topic in topics {
                    let _ = writeln!(page, "      - id: {}\n        version: {UNVERSIONED}", quoted(topic));
                }
            }
        }
        let _ = write!(page, "---\n\n{}\n\n<NodeGraph />\n", prose(&summary));
        page
    }
}

/// The beginning of a page, without the line that ends it.
fn front_matter(name: &str, version: &str, summary: Option<&str>) -> String {
    let name = quoted(name);
    let mut page = format!("---\nid: {name}\nname: {name}\nversion: {version}\n");
    if let Some(summary) = summary {
        let _ = writeln!(page, "summary: {}", quoted(summary));
    }
    page
}

fn version(number: u32) -> String {
    format!("{number}.0.0")
}

/// A text as JSON is the same text in YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A sentence in MDX, where braces and `<` begin code.
fn prose(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::new();
    for letter in text.chars() {
        if matches!(letter, '{' | '}' | '<') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// A name as that of a folder. Letters that a folder should not have become numbers, so two names never share one.
fn folder(name: &str) -> String {
    let mut folder = String::new();
    for letter in name.chars() {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_') || (letter == '.' && !folder.is_empty()) {
            folder.push(letter);
        } else {
            let _ = write!(folder, "%{:02x}", u32::from(letter));
        }
    }
    folder
}
