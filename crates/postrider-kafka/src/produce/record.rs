//! An event as a record: key, headers, payload.

use std::borrow::Cow;

use postrider_core::{CloudEvents, Recorded};
use rdkafka::message::{Header, OwnedHeaders};
use time::format_description::well_known::Rfc3339;

use crate::consume::arrived::OCCURRED_AT;

/// How events are written into records.
///
/// A record's own timestamp is the time of its producing, so that a topic keeps an old event, or one that comes again, for as long
/// as any other. When the event occurred is in a header: `ce_time`, or `occurred_at` beside a bare payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The payload is the value, the rest is in `ce_…` headers: the binary mode of CloudEvents' Kafka binding.
    #[default]
    Binary,
    /// The value is one JSON object with everything in it; `ce_time` is also a header.
    Structured,
    /// The payload is the value; `event_id`, `event_type`, `occurred_at` and the event's own headers are the headers.
    Payload,
}

impl Format {
    /// The headers of a record.
    pub(crate) fn headers(self, events: &CloudEvents, event: &Recorded) -> OwnedHeaders {
        let insert = |headers: OwnedHeaders, key: &str, value: &str| {
            headers.insert(Header { key, value: Some(value) })
        };
        match self {
            Self::Binary => {
                let mut headers = Some(OwnedHeaders::new_with_capacity(20));
                let mut header = String::with_capacity(32);
                events.each(event, |name, value| {
                    header.clear();
                    if name == "datacontenttype" {
                        header.push_str("content-type");
                    } else {
                        header.push_str("ce_");
                        header.push_str(name);
                    }
                    headers = headers.take().map(|headers| insert(headers, &header, value));
                });
                headers.unwrap_or_default()
            }
            Self::Structured => {
                let headers = OwnedHeaders::new_with_capacity(2);
                let headers = insert(headers, "content-type", "application/cloudevents+json; charset=utf-8");
                insert(headers, "ce_time", &occurred_at(event))
            }
            Self::Payload => {
                let headers = OwnedHeaders::new_with_capacity(8);
                let headers = insert(headers, "event_id", &event.event_id.to_string());
                let headers = insert(headers, "event_type", &event.event_type);
                let headers = insert(headers, "content-type", event.payload.content_type());
                let headers = insert(headers, OCCURRED_AT, &occurred_at(event));
                event.headers.iter().fold(headers, |headers, (name, value)| insert(headers, name, value))
            }
        }
    }

    /// The value of a record.
    pub(crate) fn value<'e>(self, events: &CloudEvents, event: &'e Recorded) -> Cow<'e, [u8]> {
        match self {
            Self::Structured => Cow::Owned(events.to_json(event).into_bytes()),
            Self::Binary | Self::Payload => Cow::Borrowed(event.payload.as_bytes()),
        }
    }
}

fn occurred_at(event: &Recorded) -> String {
    event.occurred_at.format(&Rfc3339).unwrap_or_default()
}

/// The key of a record: the ordering key, or the aggregate's id.
pub(crate) fn key(event: &Recorded) -> &str {
    event.ordering_key.as_deref().unwrap_or(&event.aggregate_id)
}

#[cfg(test)]
mod tests {
    use postrider_core::{IncomingEvent, OffsetDateTime, Payload};
    use rdkafka::message::Headers as _;

    use super::*;

    /// What a consumer of bare payloads gets: the payload byte for byte, and the event's own headers.
    #[test]
    fn a_bare_payload_has_the_events_headers_beside_it() {
        let attributes = [
            ("specversion", "1.0"),
            ("id", "018f3c5e-7b1a-7c3d-8e2f-0123456789ab"),
            ("source", "/shop"),
            ("type", "OrderPaid"),
            ("tenant", "acme"),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let arrival =
            IncomingEvent { topic: "t", key: Some("k"), number: 1, time: OffsetDateTime::UNIX_EPOCH };
        let payload = Payload::Json(r#"{"a":  1}"#.into());
        let event = CloudEvents::read(&attributes, payload, &arrival).expect("an event");
        let events = CloudEvents::default();
        assert_eq!(&*Format::Payload.value(&events, &event), br#"{"a":  1}"#);
        let headers = Format::Payload.headers(&events, &event);
        let text = |name: &str| {
            let found = headers.iter().find(|header| header.key == name).and_then(|header| header.value);
            found.map(|value| String::from_utf8_lossy(value).into_owned())
        };
        for (name, value) in [
            ("event_id", "018f3c5e-7b1a-7c3d-8e2f-0123456789ab"),
            ("event_type", "OrderPaid"),
            ("content-type", "application/json"),
            ("tenant", "acme"),
            ("occurred_at", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(text(name).as_deref(), Some(value), "{name}");
        }
        assert!(headers.iter().all(|header| !header.key.starts_with("ce_")));
    }
}
