//! Events as a JSON object with the field names and the nesting that existing consumers expect.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::event::placeholder::{Piece, Placeholder, pieces};
use crate::{CloudEvents, Error, ErrorKind, Payload, Recorded, Result};

/// A JSON object that is filled with the fields of an event, instead of a CloudEvent. Cheap to clone.
///
/// ```
/// use postrider_core::Envelope;
///
/// let envelope = Envelope::builder()
///     .constant("specification", &1)
///     .field("eventId", "{id}")
///     .field("occurredAt", "{time}")
///     .field("market", "{header.market}")
///     .object("about", Envelope::builder().field("order", "{aggregate_type}/{aggregate_id}"))
///     .field("payload", "{payload}")
///     .build()?;
/// # let _ = envelope;
/// # Ok::<(), postrider_core::Error>(())
/// ```
///
/// The placeholders:
///
/// | placeholder | value |
/// |---|---|
/// | `{id}` | the event id |
/// | `{type}` | the CloudEvents `type`: the event type, or what the sink's template makes of it |
/// | `{event_type}`, `{stream}`, `{aggregate_type}`, `{aggregate_id}` | as recorded |
/// | `{source}` | the CloudEvents `source` |
/// | `{time}`, `{recorded_time}` | when it happened, and when it was recorded: UTC with milliseconds, `2026-01-02T03:04:05.678Z` |
/// | `{key}` | the ordering key, or the aggregate's id |
/// | `{sequence}` | the number within the key, a JSON number |
/// | `{schema_version}` | the version of the payload's schema, a JSON number |
/// | `{trace_id}` | the trace id of the W3C header `traceparent`; a header of another form as it is |
/// | `{correlation_id}`, `{causation_id}` | from the headers |
/// | `{header.NAME}` | any header |
/// | `{content_type}` | the media type of the payload |
/// | `{payload}` | the JSON of the payload, byte for byte; base64 text where it is not JSON. It must stand alone |
///
/// A placeholder alone is its value, or `null` where the event has none. Among other text it is text, and empty where the event has
/// none. `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope(Arc<[Part]>);

/// The fields of an [`Envelope`], in their order.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeBuilder {
    fields: Vec<(String, Field)>,
}

#[derive(Debug, Clone)]
enum Field {
    Text(String),
    Constant(Result<String, String>),
    Object(EnvelopeBuilder),
}

/// A part of the object's text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// JSON as it is.
    Literal(String),
    /// The value of a placeholder, as JSON.
    Value(Placeholder),
    /// Text with placeholders in it: a JSON string.
    Mixed(Vec<Piece>),
}

impl Envelope {
    /// An envelope without fields.
    pub fn builder() -> EnvelopeBuilder {
        EnvelopeBuilder::default()
    }

    /// The event as one JSON object. `events` knows the `type` and the `source` of events.
    pub fn to_json(&self, events: &CloudEvents, event: &Recorded) -> String {
        // With room for all of it: a string that grows is there twice for a moment.
        let room = usize::try_from(event.size()).unwrap_or(0);
        let mut json = String::with_capacity(512 + room);
        for part in self.0.iter() {
            match part {
                Part::Literal(text) => json.push_str(text),
                Part::Value(Placeholder::Payload) => payload(&event.payload, &mut json),
                Part::Value(place) => match place.value(events, event) {
                    None => json.push_str("null"),
                    Some(value) if place.is_number() => json.push_str(&value),
                    Some(value) => string(&value, &mut json),
                },
                Part::Mixed(pieces) => {
                    let mut text = String::new();
                    for piece in pieces {
                        match piece {
                            Piece::Text(literal) => text.push_str(literal),
                            Piece::Place(place) => {
                                text.push_str(&place.value(events, event).unwrap_or(Cow::Borrowed("")));
                            }
                        }
                    }
                    string(&text, &mut json);
                }
            }
        }
        json
    }
}

impl EnvelopeBuilder {
    /// Adds a field whose value is text with placeholders.
    #[must_use]
    pub fn field(self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.add(name, Field::Text(text.into()))
    }

    /// Adds a field that is the same in every event.
    #[must_use]
    pub fn constant(self, name: impl Into<String>, value: &(impl Serialize + ?Sized)) -> Self {
        let json = serde_json::to_string(value).map_err(|error| error.to_string());
        self.add(name, Field::Constant(json))
    }

    /// Adds a field that is an object.
    #[must_use]
    pub fn object(self, name: impl Into<String>, fields: EnvelopeBuilder) -> Self {
        self.add(name, Field::Object(fields))
    }

    fn add(mut self, name: impl Into<String>, field: Field) -> Self {
        self.fields.push((name.into(), field));
        self
    }

    /// The envelope, compiled. *On failure*: the field and what is wrong with it, such as an unknown placeholder.
    pub fn build(self) -> Result<Envelope> {
        if self.fields.is_empty() {
            return Err(invalid("an envelope must have at least one field".to_owned()));
        }
        let mut parts = Vec::new();
        self.compile("", &mut parts)?;
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(text)) => before.push_str(&text),
                (_, part) => joined.push(part),
            }
        }
        Ok(Envelope(joined.into()))
    }

    fn compile(self, path: &str, parts: &mut Vec<Part>) -> Result<()> {
        let mut names = BTreeSet::new();
        let mut separator = '{';
        for (name, field) in self.fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let wrong = |what: String| invalid(format!("the field {path:?} {what}"));
            let mut literal = separator.to_string();
            separator = ',';
            string(&name, &mut literal);
            literal.push(':');
            parts.push(Part::Literal(literal));
            match field {
                Field::Constant(Ok(json)) => parts.push(Part::Literal(json)),
                Field::Constant(Err(error)) => {
                    return Err(wrong(format!("can't be written as JSON: {error}")));
                }
                Field::Text(text) => parts.push(value(&text).map_err(wrong)?),
                Field::Object(fields) => fields.compile(&path, parts)?,
            }
            if !names.insert(name) {
                return Err(wrong("is used twice; names must be unique".to_owned()));
            }
        }
        // An object without fields.
        parts.push(Part::Literal(if separator == '{' { "{}" } else { "}" }.to_owned()));
        Ok(())
    }
}

/// The value of a field: a placeholder alone, text, or a mixture.
fn value(text: &str) -> Result<Part, String> {
    let pieces = pieces(text)?;
    match pieces.as_slice() {
        [Piece::Place(place)] => Ok(Part::Value(place.clone())),
        pieces if pieces.contains(&Piece::Place(Placeholder::Payload)) => {
            Err("must have {payload} alone, without other text".to_owned())
        }
        [] | [Piece::Text(_)] => {
            let mut json = String::new();
            let plain = pieces.first().map_or("", |piece| match piece {
                Piece::Text(text) => text,
                Piece::Place(_) => "",
            });
            string(plain, &mut json);
            Ok(Part::Literal(json))
        }
        _ => Ok(Part::Mixed(pieces)),
    }
}

fn payload(payload: &Payload, json: &mut String) {
    match payload {
        Payload::Json(text) => json.push_str(text),
        Payload::Bytes { bytes, .. } => {
            json.push('"');
            STANDARD.encode_string(bytes, json);
            json.push('"');
        }
    }
}

/// Text as a JSON string.
fn string(text: &str, json: &mut String) {
    // Text can always be written.
    json.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, "envelope", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::cloud_event::tests::event;
    use crate::{Headers, OffsetDateTime, Template};

    fn at(millis: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::milliseconds(millis))
    }

    fn written(envelope: EnvelopeBuilder, event: &Recorded) -> String {
        envelope.build().expect("an envelope").to_json(&CloudEvents::default(), event)
    }

    /// E17.
    #[test]
    fn the_envelope_of_a_trading_system_is_written_byte_for_byte() {
        let mut headers = Headers::new()
            .with("ownerId", "owner-1")
            .with("strategyKey", "EXTREME_FLIP")
            .with("market", "KRW-BTC");
        headers.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let event = Recorded {
            event_type: "OrderAccepted".into(),
            headers,
            occurred_at: at(1_767_323_045_678),
            ..event()
        };
        let envelope = Envelope::builder()
            .field("schemaVersion", "{schema_version}")
            .field("eventId", "{id}")
            .field("type", "{type}")
            .field("occurredAt", "{time}")
            .field("traceId", "{trace_id}")
            .field("ownerId", "{header.ownerId}")
            .field("strategyKey", "{header.strategyKey}")
            .field("market", "{header.market}")
            .field("payload", "{payload}");
        assert_eq!(
            written(envelope, &event),
            "{\"schemaVersion\":1,\"eventId\":\"00000000-0000-0000-0000-000000000000\",\"type\":\"OrderAccepted\",\
             \"occurredAt\":\"2026-01-02T03:04:05.678Z\",\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\
             \"ownerId\":\"owner-1\",\"strategyKey\":\"EXTREME_FLIP\",\"market\":\"KRW-BTC\",\
             \"payload\":{\"big\": 12345678901234567890,  \"text\": \"é\"}}"
        );
    }

    /// C2.
    #[test]
    fn the_envelope_of_a_shop_is_written_byte_for_byte() {
        let envelope = Envelope::builder()
            .field("id", "{id}")
            .field("type", "{type}")
            .field("source", "{source}")
            .field("aggregateType", "{aggregate_type}")
            .field("aggregateId", "{aggregate_id}")
            .field("time", "{time}")
            .field("payload", "{payload}");
        let type_template = Template::parse("loopers.{domain}.paid.v1").ok();
        let events =
            CloudEvents { source: Some("commerce-api".to_owned()), type_template, ..CloudEvents::default() };
        let event = Recorded { headers: Headers::new(), ..event() };
        assert_eq!(
            envelope.build().expect("an envelope").to_json(&events, &event),
            "{\"id\":\"00000000-0000-0000-0000-000000000000\",\"type\":\"loopers.order.paid.v1\",\"source\":\"commerce-api\",\
             \"aggregateType\":\"Order\",\"aggregateId\":\"7\",\"time\":\"1970-01-01T00:00:00.000Z\",\
             \"payload\":{\"big\": 12345678901234567890,  \"text\": \"é\"}}"
        );
    }

    #[test]
    fn names_and_nesting_are_free_and_what_an_event_lacks_is_null() {
        let inner =
            Envelope::builder().field("key", "{key}").field("none", "{header.none}").constant("on", &true);
        let envelope = Envelope::builder()
            .constant("list", &[1, 2])
            .object("a \"b\"", inner)
            .object("empty", Envelope::builder())
            .field("text", "{{{type}}} of {stream}, \"{header.none}\"")
            .field("plain", "")
            .field("sequence", "{sequence}")
            .field("cause", "{causation_id}");
        assert_eq!(
            written(envelope, &event()),
            "{\"list\":[1,2],\"a \\\"b\\\"\":{\"key\":\"account-1\",\"none\":null,\"on\":true},\"empty\":{},\
             \"text\":\"{OrderPaid} of orders, \\\"\\\"\",\"plain\":\"\",\"sequence\":3,\"cause\":null}"
        );
    }

    #[test]
    fn every_placeholder_gives_json_for_every_event() {
        let bytes = Payload::Bytes { content_type: "avro/binary".into(), bytes: vec![0, 255, 7] };
        let odd = Recorded {
            sequence: None,
            ordering_key: None,
            headers: Headers::from_json("{}".to_owned()),
            aggregate_id: "quote \" and \\ and \n".to_owned(),
            payload: bytes,
            ..event()
        };
        let all = Placeholder::NAMES.iter().fold(Envelope::builder(), |all, name| {
            let name = name.replace("NAME", "Own-Header");
            all.field(name.clone(), format!("{{{name}}}"))
        });
        for event in [event(), odd.clone()] {
            let json = written(all.clone(), &event);
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(value.as_object().map(serde_json::Map::len), Some(Placeholder::NAMES.len()));
            assert_eq!(value["aggregate_id"], event.aggregate_id);
        }
        let odd: serde_json::Value = serde_json::from_str(&written(all, &odd)).expect("JSON");
        assert_eq!((&odd["payload"], &odd["content_type"]), (&"AP8H".into(), &"avro/binary".into()));
        assert_eq!(odd["source"], "/postrider");
    }

    #[test]
    fn an_envelope_that_means_nothing_is_refused_with_its_field() {
        let field = |text: &str| Envelope::builder().field("a", text);
        for (envelope, says) in [
            (Envelope::builder(), "at least one field"),
            (field("{agregate_id}"), "{agregate_id}; did you mean {aggregate_id}?"),
            (field("{heder.owner}"), "{heder.owner}; did you mean {header.owner}?"),
            (field("{zzzzzzzz}"), "the known ones are {id}, {type}"),
            (field("{header.}"), "{header.NAME}"),
            (field("{id"), "unmatched brace"),
            (field("id}"), "unmatched brace"),
            (field("see {payload}"), "{payload} alone"),
            (field("{id}").field("a", "{id}"), "is used twice; names must be unique"),
            (Envelope::builder().object("x", field("{i}")), "the field \"x.a\""),
        ] {
            let error = envelope.build().expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
