//! Events as others know them: CloudEvents 1.0.

use std::collections::BTreeMap;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;

use crate::{Payload, Recorded, Template};

/// How events are written as CloudEvents.
#[derive(Debug, Clone, Default)]
pub struct CloudEvents {
    /// The `source` of events that have none; `/postrider` unless set.
    pub source: Option<String>,
    /// What the `type` is made of; the event type as it is unless set.
    pub type_template: Option<Template>,
}

/// The attributes of an event as CloudEvents names them: the required ones, those for data and the extensions.
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
    /// The attributes of an event.
    ///
    /// `subject` is the aggregate's id; the ordering key is the extension `partitionkey`, the number within the key
    /// `sequence`; a type that follows a template has the event type itself beside it, as `eventtype`; the reserved
    /// headers become extensions, and the application's own too, under a name of lower case letters and digits.
    pub fn attributes(&self, event: &Recorded) -> Attributes {
        let mut attributes = Attributes::new();
        let mut set = |name: &str, value: String| attributes.insert(name.to_owned(), value);
        let time = |time: crate::OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
        let headers = &event.headers;
        set("specversion", "1.0".to_owned());
        set("id", event.event_id.to_string());
        let source = headers.source().or(self.source.as_deref()).filter(|source| !source.is_empty());
        set("source", source.unwrap_or("/postrider").to_owned());
        let kind = self.type_template.as_ref().map(|template| template.fill(event));
        if kind.as_deref().is_some_and(|kind| kind != &*event.event_type) {
            set("eventtype", event.event_type.to_string());
        }
        set("type", kind.unwrap_or_else(|| event.event_type.to_string()));
        set("subject", event.aggregate_id.clone());
        set("time", time(event.occurred_at));
        set("datacontenttype", event.payload.content_type().to_owned());
        set("partitionkey", event.ordering_key.clone().unwrap_or_else(|| event.aggregate_id.clone()));
        if let Some(sequence) = event.sequence {
            set("sequence", sequence.to_string());
            set("sequencetype", "Integer".to_owned());
        }
        set("stream", event.stream.to_string());
        set("aggregatetype", event.aggregate_type.to_string());
        set("recordedtime", time(event.recorded_at));
        set("schemaversion", headers.schema_version().to_string());
        for (name, value) in [
            ("traceparent", headers.traceparent().map(ToOwned::to_owned)),
            ("correlationid", headers.correlation_id().map(ToOwned::to_owned)),
            ("causationid", headers.causation_id().map(|id| id.to_string())),
            ("tenant", headers.tenant().map(ToOwned::to_owned)),
        ] {
            if let Some(value) = value {
                set(name, value);
            }
        }
        for (name, value) in headers.iter() {
            let known =
                ["source", "schema_version", "traceparent", "correlation_id", "causation_id", "tenant"];
            let plain: String = name
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect();
            if !known.contains(&name) && !plain.is_empty() && !RESERVED.contains(&plain.as_str()) {
                attributes.entry(plain).or_insert_with(|| value.to_owned());
            }
        }
        attributes
    }

    /// The event as one JSON object; a JSON payload is in it byte for byte.
    pub fn to_json(&self, event: &Recorded) -> String {
        let mut json = String::with_capacity(512 + event.payload.as_bytes().len());
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
