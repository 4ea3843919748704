//! Events as others know them: CloudEvents 1.0.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;

use crate::{Payload, Recorded, Template, Uuid};

/// How events are written as CloudEvents.
#[derive(Debug, Clone, Default)]
pub struct CloudEvents {
    /// The `source` of events that have none. Default: `/postrider`.
    pub source: Option<String>,
    /// Template of the `type`. Default: the event type.
    pub type_template: Option<Template>,
}

/// The attributes of an event by their CloudEvents names: required ones, those for data, and extensions.
pub type Attributes = BTreeMap<String, String>;

/// What a name of an attribute may be: `sequencetype` and so on belong to extensions that others have defined.
const RESERVED: [&str; 23] = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
    "data",
    "data_base64",
    "partitionkey",
    "sequence",
    "sequencetype",
    "traceparent",
    "tracestate",
    "stream",
    "aggregatetype",
    "schemaversion",
    "correlationid",
    "causationid",
    "tenant",
    "recordedtime",
    "eventtype",
];

impl CloudEvents {
    /// The attributes of an event, by name: see [`each`](CloudEvents::each).
    pub fn attributes(&self, event: &Recorded) -> Attributes {
        let mut attributes = Attributes::new();
        self.each(event, |name, value| {
            attributes.insert(name.to_owned(), value.to_owned());
        });
        attributes
    }

    /// Passes each attribute of an event to `set`, once.
    ///
    /// `subject` is the aggregate's id. The ordering key is the extension `partitionkey`, the number within the key is `sequence`.
    /// If the `type` comes from a template, `eventtype` is the event type itself. Headers become extensions; names of the
    /// application's own headers are reduced to lower case letters and digits.
    pub fn each(&self, event: &Recorded, mut set: impl FnMut(&str, &str)) {
        let (mut source, mut version, mut own) = (None, None, Vec::new());
        event.headers.each(|name, value| match name {
            "source" => source = Some(value),
            "schema_version" => version = value.parse::<u32>().ok(),
            "traceparent" => set("traceparent", value),
            "correlation_id" => set("correlationid", value),
            "causation_id" => {
                if let Ok(id) = value.parse::<Uuid>() {
                    set("causationid", id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
                }
            }
            "tenant" => set("tenant", value),
            _ => own.push((name, value)),
        });
        let source = source.or(self.source.as_deref()).filter(|source| !source.is_empty());
        set("specversion", "1.0");
        set("id", event.event_id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        set("source", source.unwrap_or("/postrider"));
        match &self.type_template {
            None => set("type", &event.event_type),
            Some(template) => {
                let kind = template.fill(event);
                if kind != *event.event_type {
                    set("eventtype", &event.event_type);
                }
                set("type", &kind);
            }
        }
        set("subject", &event.aggregate_id);
        set("datacontenttype", event.payload.content_type());
        set("partitionkey", event.ordering_key.as_deref().unwrap_or(&event.aggregate_id));
        if let Some(sequence) = event.sequence {
            set("sequence", &sequence.to_string());
            set("sequencetype", "Integer");
        }
        set("stream", &event.stream);
        set("aggregatetype", &event.aggregate_type);
        set("schemaversion", &version.unwrap_or(1).to_string());
        for (name, time) in [("time", event.occurred_at), ("recordedtime", event.recorded_at)] {
            set(name, &time.format(&Rfc3339).unwrap_or_default());
        }
        let mut taken: BTreeSet<String> = BTreeSet::new();
        for (name, value) in own {
            let plain: String = name
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect();
            if !plain.is_empty() && !RESERVED.contains(&plain.as_str()) && !taken.contains(&plain) {
                set(&plain, value);
                taken.insert(plain);
            }
        }
    }

    /// The event as one JSON object. A JSON payload is included byte for byte.
    pub fn to_json(&self, event: &Recorded) -> String {
        // With room for all of it: a string that grows is there twice for a moment.
        let room = usize::try_from(event.size()).unwrap_or(0);
        let mut json = String::with_capacity(1024 + room);
        json.push('{');
        for (name, value) in self.attributes(event) {
            let value = Value::String(value);
            // Writing to a string can't fail.
            let _ = write!(json, "\"{name}\":{value},");
        }
        match &event.payload {
            Payload::Json(text) => {
                json.push_str("\"data\":");
                json.push_str(text);
            }
            Payload::Bytes { bytes, .. } => {
                json.push_str("\"data_base64\":\"");
                STANDARD.encode_string(bytes, &mut json);
                json.push('"');
            }
        }
        json.push('}');
        json
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Headers, OffsetDateTime, Uuid};

    pub(crate) fn event() -> Recorded {
        let mut headers = Headers::new().with("Own-Header", "mine").with("type", "not the type");
        headers.set_schema_version(2);
        headers.set_source("/shop");
        headers.set_tenant("acme");
        headers.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        Recorded {
            id: 1,
            event_id: Uuid::nil(),
            stream: "orders".into(),
            event_type: "OrderPaid".into(),
            aggregate_type: "Order".into(),
            aggregate_id: "7".into(),
            ordering_key: Some("account-1".into()),
            sequence: Some(3),
            payload: Payload::Json(r#"{"big": 12345678901234567890,  "text": "é"}"#.into()),
            headers,
            occurred_at: OffsetDateTime::UNIX_EPOCH,
            recorded_at: OffsetDateTime::UNIX_EPOCH,
            max_attempts: None,
        }
    }

    /// C2.
    #[test]
    fn an_event_has_the_attributes_that_others_expect() {
        let attributes = CloudEvents::default().attributes(&event());
        for (name, value) in [
            ("specversion", "1.0"),
            ("id", "00000000-0000-0000-0000-000000000000"),
            ("source", "/shop"),
            ("type", "OrderPaid"),
            ("subject", "7"),
            ("time", "1970-01-01T00:00:00Z"),
            ("datacontenttype", "application/json"),
            ("partitionkey", "account-1"),
            ("sequence", "3"),
            ("tenant", "acme"),
            ("schemaversion", "2"),
            ("ownheader", "mine"),
        ] {
            assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(
            attributes.keys().all(|name| name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()))
        );
    }

    #[test]
    fn a_json_payload_is_kept_byte_for_byte_and_bytes_as_base64() {
        let mut event = event();
        let json = CloudEvents::default().to_json(&event);
        assert!(json.ends_with(r#""data":{"big": 12345678901234567890,  "text": "é"}}"#), "{json}");
        assert!(serde_json::from_str::<Value>(&json).is_ok());
        event.payload = Payload::Bytes { content_type: "avro/binary".into(), bytes: vec![0, 255, 7] };
        let value: Value = serde_json::from_str(&CloudEvents::default().to_json(&event)).expect("JSON");
        assert_eq!(
            (value["data_base64"].as_str(), value["datacontenttype"].as_str()),
            (Some("AP8H"), Some("avro/binary"))
        );
    }

    /// C2: `{company}.{domain}.{action}.v{n}`.
    #[test]
    fn the_type_can_follow_a_pattern() {
        let template = Template::parse("loopers.{domain}.{event_type:kebab}.v{version}").expect("a template");
        let events = CloudEvents { type_template: Some(template), source: None };
        assert_eq!(events.attributes(&event())["type"], "loopers.order.order-paid.v2");
    }
}
