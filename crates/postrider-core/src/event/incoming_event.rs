//! Events read back from the attributes of a CloudEvent.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::{Attributes, CloudEvents, Error, ErrorKind, Headers, OffsetDateTime, Payload, Recorded, Result};

/// Where the event arrived. Replaces missing attributes.
#[derive(Debug, Clone, Copy)]
pub struct IncomingEvent<'a> {
    /// The topic: the stream of an event without `stream`.
    pub topic: &'a str,
    /// The record's key: what an event without `partitionkey` is ordered by.
    pub key: Option<&'a str>,
    /// The offset.
    pub number: i64,
    /// The record's timestamp: when an event without `recordedtime` was recorded, and when one without `time` occurred.
    pub time: OffsetDateTime,
}

/// What becomes a field of an event, or says nothing to its handlers; all other attributes become headers.
const FIELDS: [&str; 13] = [
    "specversion",
    "id",
    "type",
    "eventtype",
    "subject",
    "time",
    "recordedtime",
    "datacontenttype",
    "partitionkey",
    "sequence",
    "sequencetype",
    "stream",
    "aggregatetype",
];

/// Attributes that are headers under another name.
const HEADERS: [(&str, &str); 3] = [
    ("schemaversion", "schema_version"),
    ("correlationid", "correlation_id"),
    ("causationid", "causation_id"),
];

impl CloudEvents {
    /// Reads an event from its attributes: the reverse of [`attributes`](CloudEvents::attributes).
    ///
    /// The attributes that CloudEvents requires must be there. Everything else has a fallback:
    ///
    /// | field | attribute | otherwise |
    /// |---|---|---|
    /// | `event_type` | `eventtype` | `type` |
    /// | `stream` | `stream` | the topic |
    /// | `aggregate_id` | `subject` | the ordering key, then `id` |
    /// | `aggregate_type` | `aggregatetype` | empty |
    /// | `ordering_key` | `partitionkey` | the record's key, then the aggregate's id; it is always set |
    /// | `sequence` | `sequence` | none |
    /// | `occurred_at` | `time` | the record's timestamp |
    /// | `recorded_at` | `recordedtime` | the record's timestamp |
    /// | header `schema_version` | `schemaversion` | none, which counts as 1 |
    ///
    /// An `id` that is no UUID becomes one of version 5, made from `source` and `id`: the same event has the same one wherever and
    /// whenever it arrives. The application's own headers come back under the names that they had as attributes, in lower
    /// case. *On failure*: one sentence that names the attribute, and shows no payload.
    pub fn read(attributes: &Attributes, payload: Payload, arrival: &IncomingEvent<'_>) -> Result<Recorded> {
        let get = |name: &str| attributes.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let need = |name: &str| {
            get(name)
                .ok_or_else(|| refused(format!("the required CloudEvents attribute {name:?} is missing")))
        };
        let version = need("specversion")?;
        if version != "1" && !version.starts_with("1.") {
            return Err(refused(format!(
                "CloudEvents version {version:?} is not supported; specversion must be 1.0"
            )));
        }
        let (id, source, kind) = (need("id")?, need("source")?, need("type")?);
        let time = |name: &str| match get(name) {
            None => Ok(None),
            Some(text) => OffsetDateTime::parse(text, &Rfc3339)
                .map(Some)
                .map_err(|_| refused(format!("the attribute {name:?} must be a time in RFC 3339 format"))),
        };
        let occurred_at = time("time")?.unwrap_or(arrival.time);
        let recorded_at = time("recordedtime")?.unwrap_or(arrival.time);
        // A number of another kind, or somebody else's idea of one, is no number of ours.
        let sequence = get("sequence").and_then(|number| number.parse().ok());
        let key = get("partitionkey").or(arrival.key).filter(|key| !key.is_empty());
        let aggregate_id = get("subject").or(key).unwrap_or(id);
        // Whether the type of the aggregate was written or not: the events of a key have one key here.
        let ordering_key = key.unwrap_or(aggregate_id);
        let mut headers: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, value) in attributes {
            if !FIELDS.contains(&name.as_str()) {
                let known = HEADERS.iter().find(|(attribute, _)| attribute == name);
                headers.insert(known.map_or(name.as_str(), |(_, header)| header), value);
            }
        }
        let headers = serde_json::to_string(&headers).unwrap_or_else(|_| "{}".to_owned());
        Ok(Recorded {
            id: arrival.number,
            event_id: Self::event_id(source, id),
            stream: get("stream").unwrap_or(arrival.topic).into(),
            event_type: get("eventtype").unwrap_or(kind).into(),
            aggregate_type: get("aggregatetype").unwrap_or_default().into(),
            aggregate_id: aggregate_id.to_owned(),
            ordering_key: Some(ordering_key.to_owned()),
            sequence,
            payload,
            headers: Headers::from_json(headers),
            occurred_at,
            recorded_at,
            max_attempts: None,
        })
    }

    /// Reads an event from one JSON object: the reverse of [`to_json`](CloudEvents::to_json), with its data byte for byte.
    pub fn read_json(json: &[u8], arrival: &IncomingEvent<'_>) -> Result<Recorded> {
        let parts: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(json).map_err(|error| {
            let place = (error.line(), error.column());
            refused(format!("it is not a JSON object (line {}, column {})", place.0, place.1))
        })?;
        let (mut attributes, mut data, mut base64) = (Attributes::new(), None, None);
        for (name, raw) in parts {
            match name.as_str() {
                "data" => data = Some(raw),
                "data_base64" => {
                    let text = serde_json::from_str::<String>(raw.get());
                    base64 = Some(text.map_err(|_| refused("data_base64 must be text".to_owned()))?);
                }
                _ => match serde_json::from_str(raw.get()) {
                    Ok(Value::String(text)) => drop(attributes.insert(name, text)),
                    Ok(Value::Bool(_) | Value::Number(_)) => {
                        attributes.insert(name, raw.get().to_owned());
                    }
                    Ok(Value::Null) => {}
                    _ => return Err(refused(format!("the attribute {name:?} must be text or a number"))),
                },
            }
        }
        let content_type = attributes.get("datacontenttype").map(String::as_str);
        let payload = match (data, base64) {
            (Some(_), Some(_)) => {
                return Err(refused("it has both data and data_base64; only one is allowed".to_owned()));
            }
            (Some(raw), None) if content_type.is_none_or(is_json) => Payload::Json(raw.get().to_owned()),
            (Some(raw), None) => {
                // Text of another kind is in a JSON string; JSON of another kind is as it stands.
                let text = serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
                Self::payload(content_type, Some(text.as_bytes()))?
            }
            (None, Some(text)) => {
                let bytes = STANDARD
                    .decode(text)
                    .map_err(|_| refused("data_base64 is not valid Base64".to_owned()))?;
                Self::payload(content_type, Some(&bytes))?
            }
            (None, None) => Self::payload(content_type, None)?,
        };
        Self::read(&attributes, payload, arrival)
    }

    /// The payload of bytes with a content type. If the type is JSON, the bytes must be valid JSON. No data means `null`. Without a
    /// content type, valid JSON is JSON.
    pub fn payload(content_type: Option<&str>, data: Option<&[u8]>) -> Result<Payload> {
        let data = data.unwrap_or_default();
        let json = || match serde_json::from_slice::<&RawValue>(data) {
            _ if data.is_empty() => Ok(Payload::Json("null".to_owned())),
            Ok(_) => Ok(Payload::Json(String::from_utf8_lossy(data).into_owned())),
            Err(error) => {
                let place = (error.line(), error.column());
                Err(refused(format!("the payload is not JSON (line {}, column {})", place.0, place.1)))
            }
        };
        match content_type {
            Some(content_type) if is_json(content_type) => json(),
            Some(content_type) => {
                Ok(Payload::Bytes { content_type: content_type.to_owned(), bytes: data.to_vec() })
            }
            None => Ok(json().unwrap_or_else(|_| Payload::Bytes {
                content_type: "application/octet-stream".to_owned(),
                bytes: data.to_vec(),
            })),
        }
    }

    /// The id of an event: its own if it is a UUID, otherwise a UUIDv5 of its source and id.
    pub fn event_id(source: &str, id: &str) -> Uuid {
        id.parse().unwrap_or_else(|_| {
            // The lengths keep ("a", "bc") and ("ab", "c") apart.
            let name = format!("{}:{source}{}:{id}", source.len(), id.len());
            Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
        })
    }
}

/// Whether a content type is JSON: `application/json`, `text/json`, anything `+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Invalid, "cloud event", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::cloud_event::tests::event;
    use crate::{OptionalAttribute, Template};

    const ARRIVAL: IncomingEvent<'_> = IncomingEvent {
        topic: "orders-events",
        key: Some("k"),
        number: 41,
        time: OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::hours(1)),
    };

    fn foreign(more: &str) -> Result<Recorded> {
        let json = format!(r#"{{"specversion":"1.0","id":"A-1","source":"/theirs","type":"x"{more}}}"#);
        CloudEvents::read_json(json.as_bytes(), &ARRIVAL)
    }

    fn full() -> CloudEvents {
        CloudEvents::default().with_optional(OptionalAttribute::ALL)
    }

    fn assert_same(mut read: Recorded, wrote: &Recorded) {
        // What can't travel: the number in the log, that the ordering key is the aggregate's id, and the way an own header was written.
        assert_eq!(read.id, 41);
        assert_eq!(read.headers.get("ownheader"), Some("mine"));
        assert_eq!(read.ordering_key.as_ref(), wrote.ordering_key.as_ref().or(Some(&wrote.aggregate_id)));
        read.id = wrote.id;
        read.ordering_key.clone_from(&wrote.ordering_key);
        read.headers = wrote.headers.clone();
        assert_eq!(&read, wrote);
    }

    #[test]
    fn an_event_with_all_attributes_comes_back_as_it_was_written() {
        let events = full();
        for ordering_key in [None, Some("account-1".to_owned())] {
            let wrote = Recorded { ordering_key, ..event() };
            let attributes = events.attributes(&wrote);
            let read = CloudEvents::read(&attributes, wrote.payload.clone(), &ARRIVAL).expect("an event");
            assert_eq!(events.attributes(&read), attributes, "and is written the same way again");
            assert_same(read, &wrote);
            let json = events.to_json(&wrote);
            assert_same(CloudEvents::read_json(json.as_bytes(), &ARRIVAL).expect("an event"), &wrote);
        }
        let bytes = Payload::Bytes { content_type: "avro/binary".into(), bytes: vec![0, 255, 7] };
        let wrote = Recorded { payload: bytes, ..event() };
        assert_same(
            CloudEvents::read_json(events.to_json(&wrote).as_bytes(), &ARRIVAL).expect("an event"),
            &wrote,
        );
    }

    /// What is not written is known from where the event arrived.
    #[test]
    fn an_event_without_optional_attributes_comes_back_with_the_place_of_its_arrival() {
        let events = CloudEvents::default();
        let mut headers = Headers::new();
        headers.set_schema_version(1);
        let wrote = Recorded { ordering_key: None, sequence: None, headers, ..event() };
        let arrival = IncomingEvent { key: Some("7"), ..ARRIVAL };
        let binary = CloudEvents::read(&events.attributes(&wrote), wrote.payload.clone(), &arrival);
        let structured = CloudEvents::read_json(events.to_json(&wrote).as_bytes(), &arrival);
        for mut read in [binary, structured].map(|read| read.expect("an event")) {
            assert_eq!(
                (&*read.stream, &*read.aggregate_type, read.headers.schema_version()),
                ("orders-events", "", 1)
            );
            assert_eq!((read.recorded_at, read.occurred_at), (ARRIVAL.time, wrote.occurred_at));
            assert_eq!((read.key().as_ref(), read.headers.get("schema_version")), ("7", None));
            (read.id, read.recorded_at, read.ordering_key) = (wrote.id, wrote.recorded_at, None);
            read.stream.clone_from(&wrote.stream);
            read.aggregate_type.clone_from(&wrote.aggregate_type);
            read.headers = wrote.headers.clone();
            assert_eq!(read, wrote, "all else is as it was");
        }
    }

    /// Before and after a sink is told to write more, or less.
    #[test]
    fn the_events_of_a_key_have_one_key_whatever_attributes_are_written() {
        for (ordering_key, record_key) in [(None, "7"), (Some("account-1".to_owned()), "account-1")] {
            let wrote = Recorded { ordering_key, sequence: None, ..event() };
            for key in [Some(record_key), None] {
                let arrival = IncomingEvent { key, ..ARRIVAL };
                let hash = |events: CloudEvents| {
                    let json = events.to_json(&wrote);
                    CloudEvents::read_json(json.as_bytes(), &arrival).expect("an event").key_hash()
                };
                assert_eq!(hash(full()), hash(CloudEvents::default()));
            }
        }
    }

    #[test]
    fn a_type_that_follows_a_pattern_is_what_it_was_for_handlers() {
        let template = Template::parse("loopers.{domain}.{event_type:kebab}.v{version}").expect("a template");
        let events = CloudEvents { type_template: Some(template), ..CloudEvents::default() };
        let read = CloudEvents::read_json(events.to_json(&event()).as_bytes(), &ARRIVAL).expect("an event");
        assert_eq!(&*read.event_type, "OrderPaid");
    }

    #[test]
    fn an_event_of_somebody_else_has_a_stable_id_and_the_key_of_its_record() {
        let first = foreign(r#","data":{"a": 1},"theirext":true"#).expect("an event");
        assert_eq!(first.event_id, foreign("").expect("the same event").event_id);
        assert_eq!(first.event_id.get_version_num(), 5);
        assert_ne!(first.event_id, CloudEvents::event_id("/others", "A-1"));
        assert_ne!(CloudEvents::event_id("ab", "c"), CloudEvents::event_id("a", "bc"));
        assert_eq!((&*first.stream, first.key().as_ref()), ("orders-events", "k"));
        assert_eq!(
            (first.payload.as_json(), first.headers.get("theirext")),
            (Some(r#"{"a": 1}"#), Some("true"))
        );
        let other = foreign(r#","datacontenttype":"text/plain","data":"hello""#).expect("an event");
        assert_eq!((other.payload.content_type(), other.payload.as_bytes()), ("text/plain", &b"hello"[..]));
        assert_eq!(foreign("").expect("an event").payload.as_json(), Some("null"), "no data");
    }

    #[test]
    fn what_is_no_cloud_event_is_refused_in_a_sentence() {
        let refusal = |result: Result<Recorded>| result.expect_err("refused").to_string();
        let json = |text: &str| refusal(CloudEvents::read_json(text.as_bytes(), &ARRIVAL));
        assert_eq!(json("{\"secret\""), "cloud event: it is not a JSON object (line 1, column 9)");
        assert!(
            json(r#"{"specversion":"1.0","id":"1","type":"x"}"#)
                .contains(r#"CloudEvents attribute "source" is missing"#)
        );
        assert!(json(r#"{"specversion":"0.3","id":"1","type":"x","source":"s"}"#).contains("0.3"));
        assert!(refusal(foreign(r#","time":"yesterday""#)).contains(r#""time" must be a time"#));
        assert!(refusal(foreign(r#","data_base64":"?""#)).contains("not valid Base64"));
        assert!(refusal(foreign(r#","data":1,"data_base64":"AA==""#)).contains("only one is allowed"));
        let broken = CloudEvents::payload(Some("application/json; charset=utf-8"), Some(b"{\"a\":"));
        assert!(broken.expect_err("refused").to_string().contains("not JSON (line 1"));
    }
}
