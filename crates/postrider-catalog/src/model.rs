//! The catalog as data: what its file holds.

use std::collections::{BTreeMap, HashMap};

use postrider_core::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::problems;

/// The format of a catalog's file that this version writes.
pub const FORMAT: u32 = 1;

/// The events of a system, and who publishes and receives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogFile {
    /// The format of this file.
    pub format: u32,
    /// The name of the system.
    pub system: String,
    /// The events, by name and version.
    pub events: Vec<EventEntry>,
    /// The subscriptions and consumers, by name.
    pub subscribers: Vec<SubscriberEntry>,
}

/// One version of one event type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventEntry {
    /// The event type.
    pub name: String,
    /// The version of the payload's schema.
    pub version: u32,
    /// The stream.
    pub stream: String,
    /// The type of the aggregate.
    pub aggregate: String,
    /// The field that orders the event, `aggregate`, or `computed` if a mapping makes the key and does not name a field.
    pub ordering_key: String,
    /// Whether the events are numbered within their ordering key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequenced: bool,
    /// What the event means, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The programs that record it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publishers: Vec<String>,
    /// The older versions that upcasters convert to this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upcast_from: Vec<u32>,
    /// The payload's schema, if the type has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PayloadSchema>,
}

/// The two sides of a payload, each as a JSON Schema: serde may write other JSON than it demands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PayloadSchema {
    /// What the type writes.
    pub writes: Value,
    /// What the type reads. Absent if it is the same as `writes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Value>,
}

impl PayloadSchema {
    /// What the type reads.
    pub fn reads(&self) -> &Value {
        self.reads.as_ref().unwrap_or(&self.writes)
    }
}

/// A subscription of a relay, or a consumer of a broker's topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberEntry {
    /// Its name.
    pub name: String,
    /// The streams that it reads; `*` matches any characters. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<String>,
    /// The event types that it reads; `*` matches any characters. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Its handlers, by event type. A subscription with a destination has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handlers: BTreeMap<String, HandlerEntry>,
    /// Where it delivers to, such as `kafka` or `http`. Absent: to its handlers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The topic that it delivers to (a template may name `{stream}` and the like), or those that it consumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// The topics of the event types that it delivers elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub topics_by_type: BTreeMap<String, String>,
}

/// A handler of one event type. The type `*` is a handler for all other types.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerEntry {
    /// The version that it takes. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The events that it records, as the application declared them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow_ups: Vec<String>,
}

impl CatalogFile {
    /// The newest version of an event type.
    pub fn event(&self, name: &str) -> Option<&EventEntry> {
        self.events.iter().filter(|event| event.name == name).max_by_key(|event| event.version)
    }

    /// The newest version of each event type. For whoever asks about many: [`event`](CatalogFile::event) looks through all of them.
    pub(crate) fn newest(&self) -> HashMap<&str, &EventEntry> {
        let mut newest: HashMap<&str, &EventEntry> = HashMap::with_capacity(self.events.len());
        for event in &self.events {
            let known = newest.entry(&event.name).or_insert(event);
            if known.version <= event.version {
                *known = event;
            }
        }
        newest
    }

    /// The versions of each event type, oldest first.
    pub(crate) fn by_name(&self) -> HashMap<&str, Vec<&EventEntry>> {
        let mut events: HashMap<&str, Vec<&EventEntry>> = HashMap::with_capacity(self.events.len());
        for event in &self.events {
            events.entry(&event.name).or_default().push(event);
        }
        events.values_mut().for_each(|versions| versions.sort_by_key(|event| event.version));
        events
    }

    /// The subscribers that receive an event, by name.
    pub fn subscribers_of<'c>(&'c self, event: &'c EventEntry) -> impl Iterator<Item = &'c SubscriberEntry> {
        self.subscribers.iter().filter(|subscriber| subscriber.receives(event))
    }
}

impl SubscriberEntry {
    /// Whether it receives an event: its filter lets it through, and there is a handler or a destination for it.
    pub fn receives(&self, event: &EventEntry) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty()
                || patterns.iter().any(|pattern| postrider_core::Pattern::new(pattern).matches(text))
        };
        any(&self.streams, &event.stream)
            && any(&self.types, &event.name)
            && (self.destination.is_some()
                || self.handlers.is_empty()
                || self.handlers.contains_key(&event.name)
                || self.handlers.contains_key("*"))
    }
}

impl CatalogFile {
    /// Reads a catalog.
    ///
    /// *On failure*: [`Invalid`](postrider_core::ErrorKind::Invalid): the text is no catalog, one of a newer format, or one with two events of one name and version.
    pub fn parse(text: &str) -> Result<Self> {
        let file: Self = crate::format::parse(text, "catalog", FORMAT)?;
        file.check()?;
        Ok(file)
    }

    /// The catalog as JSON: the same catalog gives the same text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Refuses two events with one name and version.
    pub(crate) fn check(&self) -> Result<()> {
        match self.twins().first() {
            None => Ok(()),
            Some((event, reason)) => {
                Err(crate::invalid(format!("{} version {}: {reason}", event.name, event.version)))
            }
        }
    }

    /// The events whose name and version another one has, each with a sentence about it.
    pub(crate) fn twins(&self) -> Vec<(&EventEntry, String)> {
        let mut known: HashMap<(&str, u32), &EventEntry> = HashMap::with_capacity(self.events.len());
        let mut twins = Vec::new();
        for event in &self.events {
            match known.insert((&event.name, event.version), event) {
                None => {}
                Some(same) => {
                    let differs = problems::difference(same, event);
                    let differs =
                        differs.map_or_else(String::new, |what| format!("; the two differ in the {what}"));
                    twins.push((event, format!("duplicate event; name and version must be unique{differs}")));
                }
            }
        }
        twins
    }
}

impl EventEntry {
    /// Whether it is the same event, whoever publishes it and however its meaning is told.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        problems::difference(self, other).is_none_or(|what| what == problems::MEANING)
    }
}

impl PayloadSchema {
    /// The same without its sentences: two programs may describe one field in other words.
    pub(crate) fn undescribed(&self) -> Self {
        let undescribed = |schema: &Value| {
            let mut schema = schema.clone();
            remove_descriptions(&mut schema);
            schema
        };
        Self { writes: undescribed(&self.writes), reads: self.reads.as_ref().map(undescribed) }
    }
}

fn remove_descriptions(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        Value::Object(fields) => {
            // A field that is called so has a schema.
            fields.retain(|name, value| name != "description" || !value.is_string());
            for (name, inner) in fields.iter_mut() {
                if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
                    remove_descriptions(inner);
                }
            }
        }
        _ => {}
    }
}
