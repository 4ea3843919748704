//! An event as a record: key, headers, payload.

use std::borrow::Cow;

use postrider_core::{CloudEvents, Recorded};
use rdkafka::message::{Header, OwnedHeaders};
use time::format_description::well_known::Rfc3339;

use crate::consume::arrived::OCCURRED_AT;

/// How events are written into records.
///
/// A record's timestamp is the time at which it was produced, so that a topic keeps an old or replayed event as long as any
/// other. When the event occurred is in a header: `ce_time`, or `occurred_at` beside a bare payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The payload is the value, the attributes are `ce_…` headers: the binary mode of CloudEvents' Kafka binding.
    #[default]
    Binary,
    /// The value is one JSON object with the attributes and the data; `ce_time` is also a header.
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
                let mut headers = Some(OwnedHeaders::new_with_capacity(12));
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

/// The headers of a record whose value is an envelope.
pub(crate) fn beside_envelope(event: &Recorded) -> OwnedHeaders {
    let headers = OwnedHeaders::new_with_capacity(2)
        .insert(Header { key: "content-type", value: Some("application/json") });
    match event.headers.traceparent() {
        Some(trace) => headers.insert(Header { key: "traceparent", value: Some(trace) }),
        None => headers,
    }
}

/// The key of a record: the ordering key, or the aggregate's id.
pub(crate) fn key(event: &Recorded) -> &str {
    event.ordering_key.as_deref().unwrap_or(&event.aggregate_id)
}

#[cfg(test)]
mod tests {
    use postrider_core::{
        Headers, IncomingEvent, OffsetDateTime, OptionalAttribute, Payload, Recorded, Result, Uuid,
    };
    use rdkafka::message::Headers as _;

    use super::*;
    use crate::client::config::KafkaBuilder;
    use crate::consume::arrived::Arrived;

    const FORMATS: [Format; 3] = [Format::Binary, Format::Structured, Format::Payload];

    fn full() -> CloudEvents {
        CloudEvents::default().with_optional(OptionalAttribute::ALL)
    }

    /// An event as a typed one is recorded: its schema has the version 1.
    fn plain() -> Recorded {
        let mut headers = Headers::new();
        headers.set_schema_version(1);
        let time =
            OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::microseconds(1_767_225_600_123_456));
        Recorded {
            id: 1,
            event_id: Uuid::now_v7(),
            stream: "orders".into(),
            event_type: "OrderPaid".into(),
            aggregate_type: "Order".into(),
            aggregate_id: "4711".into(),
            ordering_key: None,
            sequence: None,
            payload: Payload::Json(format!(r#"{{"order":4711,"note":"{}"}}"#, "x".repeat(150))),
            headers,
            occurred_at: time,
            recorded_at: time,
            max_attempts: None,
        }
    }

    /// The event of the benchmarks.
    fn traced() -> Recorded {
        let mut event = plain();
        event.headers.set_source("shop");
        event.headers.set_tenant("acme");
        event.headers.set_correlation_id("c-1234567890");
        event.headers.set_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        event
    }

    /// How many headers a record has, and how many bytes they take in it: their texts, and the length before each.
    fn cost(format: Format, events: &CloudEvents, event: &Recorded) -> (usize, usize) {
        let headers = format.headers(events, event);
        let length = |text: usize| text + if text < 64 { 1 } else { 2 };
        let bytes = headers
            .iter()
            .map(|header| length(header.key.len()) + length(header.value.map_or(0, <[u8]>::len)));
        (headers.count(), bytes.sum())
    }

    /// The record as it arrives where it was written to.
    fn arrived(format: Format, events: &CloudEvents, event: &Recorded) -> Arrived {
        let own = |header: Header<'_, &[u8]>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
        Arrived {
            topic: "orders".into(),
            partition: 0,
            offset: 1,
            key: Some(key(event).as_bytes().to_vec()),
            value: Some(format.value(events, event).into_owned()),
            headers: format.headers(events, event).iter().map(own).collect(),
            is_legible: true,
            time: Some(1_767_225_601_000),
        }
    }

    #[test]
    fn the_headers_of_an_ordinary_record_are_few() {
        let lean = CloudEvents::default();
        for (name, event, headers, bytes) in [("plain", plain(), 7, 190), ("with a trace", traced(), 10, 300)]
        {
            let (before, after) =
                (cost(Format::Binary, &full(), &event), cost(Format::Binary, &lean, &event));
            println!(
                "{name}: {} headers of {} bytes, {} of {} with all",
                after.0, after.1, before.0, before.1
            );
            assert_eq!(before.0, headers + OptionalAttribute::ALL.len());
            assert!(after.0 <= headers && after.1 <= bytes, "{name}: {after:?}");
        }
    }

    /// What a reader of records gets is the same event, whether it was written with all attributes or with few.
    #[test]
    fn records_with_all_attributes_and_with_few_are_read_as_the_same_event() {
        let mut event = traced();
        event.headers.set_schema_version(3);
        for format in FORMATS {
            for (ordering_key, key) in [(None, "4711"), (Some("account-1".to_owned()), "account-1")] {
                let event = Recorded { ordering_key, ..event.clone() };
                let read = |events: &CloudEvents| arrived(format, events, &event).event().expect("an event");
                let (all, few) = (read(&full()), read(&CloudEvents::default()));
                for read in [&all, &few] {
                    assert_eq!((read.event_id, &*read.event_type), (event.event_id, "OrderPaid"));
                    assert_eq!((&*read.stream, read.key().as_ref()), ("orders", key), "{format:?}");
                    assert_eq!((read.occurred_at, &read.payload), (event.occurred_at, &event.payload));
                    assert_eq!((read.headers.schema_version(), read.headers.tenant()), (3, Some("acme")));
                    assert_eq!(read.headers.traceparent(), event.headers.traceparent());
                    assert_eq!(read.headers.correlation_id(), event.headers.correlation_id());
                }
                assert_eq!(few.recorded_at.unix_timestamp(), 1_767_225_601, "when the record was written");
                let written = if format == Format::Payload { few.recorded_at } else { event.recorded_at };
                assert_eq!(all.recorded_at, written);
            }
        }
    }

    #[test]
    fn attributes_beside_a_bare_payload_are_refused() {
        let with = |format| -> Result<()> {
            KafkaBuilder::new("b:1").attributes([OptionalAttribute::Stream]).format(format).check()
        };
        assert!(with(Format::Binary).is_ok() && with(Format::Structured).is_ok());
        let refusal = with(Format::Payload).expect_err("refused").to_string();
        assert!(
            refusal.contains("\"stream\" can't be written") && refusal.contains("leave the attributes out"),
            "{refusal}"
        );
        // Whatever is set first.
        let events = CloudEvents { source: Some("/shop".to_owned()), ..CloudEvents::default() };
        let settings = KafkaBuilder::new("b:1").attributes([OptionalAttribute::Stream]).events(events);
        assert!(settings.events.optional.contains(&OptionalAttribute::Stream));
        assert_eq!(settings.events.source.as_deref(), Some("/shop"));
    }

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
