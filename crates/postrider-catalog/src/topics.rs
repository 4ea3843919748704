//! The topics of events.

use postrider_core::{Headers, OffsetDateTime, Payload, Recorded, Template, Uuid};

use crate::routes::Route;
use crate::{EventEntry, SubscriberEntry};

/// The topics that an event goes through on its ways to subscribers, by name.
pub(crate) fn of_event(event: &EventEntry, routes: &[Route<'_>]) -> Vec<String> {
    let mut topics: Vec<String> =
        routes.iter().flat_map(|route| of_subscriber(route.subscriber, event)).collect();
    topics.sort_unstable();
    topics.dedup();
    topics
}

/// The topics that a subscriber sends an event to, or gets it from. A text that is no template is a topic as it stands.
pub(crate) fn of_subscriber(subscriber: &SubscriberEntry, event: &EventEntry) -> Vec<String> {
    let fill = |text: &String| {
        if !text.contains('{') {
            return text.clone();
        }
        Template::parse(text).map_or_else(|_| text.clone(), |template| template.fill(&recorded(event)))
    };
    match subscriber.topics_by_type.get(&event.name) {
        Some(topic) => vec![fill(topic)],
        None => subscriber.topics.iter().map(fill).collect(),
    }
}

/// An event such as a publisher records: templates are filled with the same names as in a sink.
fn recorded(event: &EventEntry) -> Recorded {
    let mut headers = Headers::default();
    headers.set_schema_version(event.version);
    Recorded {
        id: 0,
        event_id: Uuid::nil(),
        stream: event.stream.as_str().into(),
        event_type: event.name.as_str().into(),
        aggregate_type: event.aggregate.as_str().into(),
        aggregate_id: String::new(),
        ordering_key: None,
        sequence: None,
        payload: Payload::Json("null".into()),
        headers,
        occurred_at: OffsetDateTime::UNIX_EPOCH,
        recorded_at: OffsetDateTime::UNIX_EPOCH,
        max_attempts: None,
    }
}
