//! The catalog as a page for people: a table per stream, then a section per event.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::fields::{Field, fields};
use crate::cycles::cycles;
use crate::routes::{Route, Routes};
use crate::{CatalogFile, EventEntry, topics};

/// The catalog as a page in Markdown (GitHub's).
pub fn markdown(catalog: &CatalogFile) -> String {
    Page::of(catalog).write()
}

struct Page<'c> {
    catalog: &'c CatalogFile,
    routes: Routes<'c>,
    /// What a link to the section of an event is, by its place in the catalog.
    anchors: HashMap<usize, String>,
    /// The handlers that record an event, by its name.
    causes: BTreeMap<&'c str, Vec<(&'c str, &'c str)>>,
}

impl<'c> Page<'c> {
    fn of(catalog: &'c CatalogFile) -> Self {
        let routes = Routes::of(catalog);
        let mut headings = Headings::default();
        headings.anchor(&title(catalog));
        for stream in routes.by_stream().keys() {
            headings.anchor(&stream_heading(stream));
        }
        headings.anchor("Events");
        let anchor =
            |(index, event): (usize, &EventEntry)| (index, headings.anchor(&heading(&routes, event)));
        let anchors = routes.events().into_iter().map(anchor).collect();
        let mut causes: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (index, event) in routes.events() {
            for route in routes.of_event(index) {
                for follow_up in route.follow_ups() {
                    causes.entry(follow_up).or_default().push((&event.name, &route.subscriber.name));
                }
            }
        }
        causes.values_mut().for_each(Vec::dedup);
        Self { catalog, routes, anchors, causes }
    }

    fn write(&self) -> String {
        let streams = self.routes.by_stream();
        let mut page = format!("# {}\n\n", text(&title(self.catalog)));
        let _ = writeln!(
            page,
            "{} in {}, {}, {} from an event to a subscriber.\n",
            counted(self.catalog.events.len(), "event"),
            counted(streams.len(), "stream"),
            counted(self.catalog.subscribers.len(), "subscriber"),
            counted(self.routes.count(), "route"),
        );
        self.write_cycles(&mut page);
        for (stream, events) in &streams {
            let _ = writeln!(page, "## {}\n", text(&stream_heading(stream)));
            self.write_table(&mut page, events);
        }
        if !self.catalog.events.is_empty() {
            page.push_str("## Events\n\n");
        }
        for (index, event) in self.routes.events() {
            self.write_event(&mut page, index, event);
        }
        page.truncate(page.trim_end().len());
        page.push('\n');
        page
    }

    fn write_cycles(&self, page: &mut String) {
        let cycles = cycles(&self.routes.follow_ups());
        if cycles.is_empty() {
            return;
        }
        page.push_str("Follow-ups that can go on for ever:\n\n");
        for events in cycles {
            let events: Vec<String> = events.into_iter().map(|name| self.link(name)).collect();
            let _ = writeln!(page, "- {}", events.join(" → "));
        }
        page.push('\n');
    }

    /// The column of topics is there if the stream has any.
    fn write_table(&self, page: &mut String, events: &[(usize, &'c EventEntry)]) {
        let topics: Vec<Vec<String>> = events
            .iter()
            .map(|(index, event)| topics::of_event(event, self.routes.of_event(*index)))
            .collect();
        let with_topics = topics.iter().any(|topics| !topics.is_empty());
        let mut columns = vec!["event", "version", "meaning", "aggregate", "publishers", "subscribers"];
        columns.extend(with_topics.then_some("topics"));
        write_row(page, &columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>());
        write_row(page, &vec!["---".to_owned(); columns.len()]);
        for ((index, event), topics) in events.iter().zip(topics) {
            let subscribers = self.routes.of_event(*index).iter().map(|route| route.subscriber.name.as_str());
            let mut cells = vec![
                format!("[{}](#{})", code(&event.name), self.anchors[index]),
                event.version.to_string(),
                text(event.summary.as_deref().unwrap_or_default()),
                code(&event.aggregate),
                codes(event.publishers.iter().map(String::as_str)),
                codes(subscribers),
            ];
            cells.extend(with_topics.then(|| codes(topics.iter().map(String::as_str))));
            write_row(page, &cells);
        }
        page.push('\n');
    }

    fn write_event(&self, page: &mut String, index: usize, event: &'c EventEntry) {
        let routes = self.routes.of_event(index);
        let _ = writeln!(page, "### {}\n", text(&heading(&self.routes, event)));
        if let Some(summary) = &event.summary {
            let _ = writeln!(page, "{}\n", text(summary));
        }
        write_facts(page, event, routes);
        self.write_follow_ups(page, event, routes);
        page.push('\n');
        match event.payload.as_ref().map(|payload| fields(&payload.writes)) {
            None => page.push_str("The catalog has no schema of its payload.\n\n"),
            Some(fields) if fields.is_empty() => page.push_str("Its payload has no fields.\n\n"),
            Some(fields) => write_fields(page, &fields),
        }
    }

    fn write_follow_ups(&self, page: &mut String, event: &'c EventEntry, routes: &[Route<'c>]) {
        for route in routes.iter().filter(|route| !route.follow_ups().is_empty()) {
            let recorded =
                route.follow_ups().iter().map(|name| self.link(name)).collect::<Vec<_>>().join(", ");
            let _ = writeln!(page, "- Follow-up: {} records {recorded}.", code(&route.subscriber.name));
        }
        for (cause, subscriber) in self.causes.get(event.name.as_str()).into_iter().flatten() {
            let _ = writeln!(page, "- Follows from {}: {} records it.", self.link(cause), code(subscriber));
        }
    }

    /// A link to the newest version of an event.
    fn link(&self, name: &str) -> String {
        let place = self.routes.newest_place(name).and_then(|place| self.anchors.get(&place));
        place.map_or_else(|| code(name), |anchor| format!("[{}](#{anchor})", code(name)))
    }
}

fn write_facts(page: &mut String, event: &EventEntry, routes: &[Route<'_>]) {
    let _ = write!(page, "- Version {} on stream {}", event.version, code(&event.stream));
    let _ = write!(page, ", about the aggregate {}", code(&event.aggregate));
    if event.ordering_key != "aggregate" {
        let _ = write!(page, ", ordered by {}", code(&event.ordering_key));
    }
    page.push_str(if event.sequenced { ", numbered without gaps.\n" } else { ".\n" });
    if !event.upcast_from.is_empty() {
        let versions = event.upcast_from.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "- Older versions that are converted to it: {versions}.");
    }
    if !event.publishers.is_empty() {
        let _ = writeln!(page, "- Published by {}.", codes(event.publishers.iter().map(String::as_str)));
    }
    let receiver = |route: &Route<'_>| {
        let version =
            route.handler.and_then(|handler| handler.version).filter(|taken| *taken != event.version);
        let version = version.map_or_else(String::new, |version| format!(" (as version {version})"));
        let name = format!("{}{version}", code(&route.subscriber.name));
        let topics: Vec<String> =
            topics::of_subscriber(route.subscriber, event).iter().map(|topic| code(topic)).collect();
        match (&route.subscriber.destination, topics.as_slice()) {
            (None, []) => name,
            (None, topics) => format!("{name} (from {})", topics.join(", ")),
            (Some(destination), []) => format!("{name} (to {})", text(destination)),
            (Some(destination), topics) => format!("{name} (to {} {})", text(destination), topics.join(", ")),
        }
    };
    let receivers: Vec<String> = routes.iter().map(receiver).collect();
    match receivers.as_slice() {
        [] => page.push_str("- Nobody receives it.\n"),
        receivers => {
            let _ = writeln!(page, "- Received by {}.", receivers.join(", "));
        }
    }
}

fn write_fields(page: &mut String, fields: &[Field]) {
    page.push_str("| field | type | required | meaning |\n| --- | --- | --- | --- |\n");
    for field in fields {
        let required = if field.required { "yes" } else { "no" };
        write_row(page, &[code(&field.name), text(&field.kind), required.to_owned(), text(&field.meaning)]);
    }
    page.push('\n');
}

fn title(catalog: &CatalogFile) -> String {
    format!("Events of {}", catalog.system)
}

fn stream_heading(stream: &str) -> String {
    format!("Stream {stream}")
}

/// An older version has its number in its heading.
fn heading(routes: &Routes<'_>, event: &EventEntry) -> String {
    match routes.newest(&event.name) {
        Some(newest) if newest.version != event.version => {
            format!("{}, version {}", event.name, event.version)
        }
        _ => event.name.clone(),
    }
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn write_row(page: &mut String, cells: &[String]) {
    for cell in cells {
        let _ = write!(page, "| {cell}{}", if cell.is_empty() { "" } else { " " });
    }
    page.push_str("|\n");
}

fn codes<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(code).collect::<Vec<_>>().join(", ")
}

/// A name as code, also in a table.
fn code(name: &str) -> String {
    let fence = if name.contains('`') { "``" } else { "`" };
    format!("{fence}{}{fence}", one_line(name).replace('|', "\\|"))
}

/// A sentence, also in a table: Markdown in it stays, HTML does not.
fn text(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in one_line(text).replace('|', "\\|").split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        // Every second part stands between backticks, where an entity would be seen as such.
        escaped.push_str(&if index % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() });
    }
    escaped
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The anchors that GitHub gives to headings.
#[derive(Default)]
struct Headings {
    given: HashMap<String, usize>,
}

impl Headings {
    fn anchor(&mut self, heading: &str) -> String {
        let keep = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        let anchor: String = heading.to_lowercase().chars().filter(keep).collect();
        let anchor = anchor.replace(' ', "-");
        let count = self.given.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    }
}
