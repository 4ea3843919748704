//! The catalog as an AsyncAPI 3.0 document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::draft7::{component_name, schemas};
use super::pretty;
use crate::routes::Routes;
use crate::schema_hash;
use crate::{CatalogFile, EventEntry, topics};

/// The catalog as an AsyncAPI 3.0 document in JSON.
///
/// Streams and topics are channels. Publishers send to streams, subscriptions receive from streams and send to topics, consumers
/// receive from topics.
pub fn asyncapi(catalog: &CatalogFile) -> String {
    let routes = Routes::of(catalog);
    let mut document = Document::default();
    for (index, event) in routes.events() {
        document.add_message(event);
        document.add_routes(&routes, index, event);
    }
    let mut document = document.into_json(catalog);
    document.sort_all_objects();
    pretty(&document)
}

/// A channel of the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Stream(String),
    Topic(String),
}

impl Channel {
    fn id(&self) -> String {
        match self {
            Self::Stream(name) => format!("stream.{}", component_name(name)),
            Self::Topic(name) => format!("topic.{}", component_name(name)),
        }
    }

    fn address(&self) -> &str {
        match self {
            Self::Stream(name) | Self::Topic(name) => name,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Stream(name) => format!("stream {name}"),
            Self::Topic(name) => format!("topic {name}"),
        }
    }
}

/// What a program does with a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Receive,
    Send,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Send => "send",
        }
    }
}

#[derive(Default)]
struct Document {
    channels: BTreeMap<Channel, BTreeSet<String>>,
    /// By program, action and channel: the messages.
    operations: BTreeMap<(String, Action, Channel), BTreeSet<String>>,
    messages: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    fn add_message(&mut self, event: &EventEntry) {
        let id = message_id(event);
        let mut message = json!({
            "name": event.name,
            "title": format!("{} version {}", event.name, event.version),
            "contentType": "application/json",
            "x-version": event.version,
            "x-stream": event.stream,
            "x-aggregate": event.aggregate,
            "x-ordering-key": event.ordering_key,
        });
        if let Some(summary) = &event.summary {
            message["summary"] = json!(summary);
        }
        if let Some(payload) = &event.payload {
            message["payload"] = reference("components/schemas", &id);
            message["x-schema-hash"] = json!(schema_hash(Some(payload)));
            self.schemas.extend(schemas(&id, &payload.writes));
        }
        self.messages.insert(id, message);
    }

    fn add_routes(&mut self, routes: &Routes<'_>, index: usize, event: &EventEntry) {
        let message = message_id(event);
        let stream = Channel::Stream(event.stream.clone());
        self.channels.entry(stream.clone()).or_default().insert(message.clone());
        for publisher in &event.publishers {
            self.add_operation(publisher, Action::Send, stream.clone(), &message);
        }
        for route in routes.of_event(index) {
            let subscriber = route.subscriber;
            let topics = topics::of_subscriber(subscriber, event);
            if subscriber.destination.is_some() || topics.is_empty() {
                self.add_operation(&subscriber.name, Action::Receive, stream.clone(), &message);
            }
            let action = if subscriber.destination.is_some() { Action::Send } else { Action::Receive };
            for topic in topics {
                self.add_operation(&subscriber.name, action, Channel::Topic(topic), &message);
            }
        }
    }

    fn add_operation(&mut self, program: &str, action: Action, channel: Channel, message: &str) {
        self.channels.entry(channel.clone()).or_default().insert(message.to_owned());
        self.operations.entry((program.to_owned(), action, channel)).or_default().insert(message.to_owned());
    }

    fn into_json(self, catalog: &CatalogFile) -> Value {
        let channels: Map<String, Value> = self
            .channels
            .iter()
            .map(|(channel, messages)| {
                let messages: Map<String, Value> =
                    messages.iter().map(|id| (id.clone(), reference("components/messages", id))).collect();
                let value =
                    json!({ "address": channel.address(), "title": channel.title(), "messages": messages });
                (channel.id(), value)
            })
            .collect();
        let operations: Map<String, Value> = self.operations.iter().map(operation).collect();
        json!({
            "asyncapi": "3.0.0",
            "info": {
                "title": format!("Events of {}", catalog.system),
                "version": "1.0.0",
                "description": format!("The events of {}, who publishes them and who receives them.", catalog.system),
            },
            "defaultContentType": "application/json",
            "channels": channels,
            "operations": operations,
            "components": { "messages": self.messages, "schemas": self.schemas },
        })
    }
}

fn operation(
    ((program, action, channel), messages): (&(String, Action, Channel), &BTreeSet<String>),
) -> (String, Value) {
    let of_channel = format!("channels/{}/messages", channel.id());
    let messages: Vec<Value> = messages.iter().map(|id| reference(&of_channel, id)).collect();
    let (verb, towards) = match action {
        Action::Send => ("sends", "to"),
        Action::Receive => ("receives", "from"),
    };
    let value = json!({
        "action": action.name(),
        "channel": reference("channels", &channel.id()),
        "summary": format!("{program} {verb} {towards} the {}.", channel.title()),
        "messages": messages,
    });
    (format!("{}.{}.{}", component_name(program), action.name(), channel.id()), value)
}

fn message_id(event: &EventEntry) -> String {
    format!("{}.v{}", component_name(&event.name), event.version)
}

/// Names have no character that a pointer would have to escape.
fn reference(place: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/{place}/{name}") })
}
