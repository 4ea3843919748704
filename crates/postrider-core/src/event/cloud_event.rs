//! CloudEvents 1.0: the form in which other programs read events.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;

use crate::{DataSchemas, OptionalAttribute, Payload, Recorded, Template, Uuid};

/// How events are written as CloudEvents.
///
/// ```
/// use postrider_core::{CloudEvents, OptionalAttribute};
///
/// let events = CloudEvents { source: Some("/shop/orders".into()), ..CloudEvents::default() }
///     .with_optional([OptionalAttribute::Stream, OptionalAttribute::RecordedTime]);
/// assert_eq!(events.optional.len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CloudEvents {
    /// The `source` of events that have none. Default: `/postrider`.
    pub source: Option<String>,
    /// Template of the `type`. Default: the event type.
    pub type_template: Option<Template>,
    /// Optional attributes to write for every event. Default: none.
    pub optional: BTreeSet<OptionalAttribute>,
    /// The `dataschema` of events. Default: none is written.
    pub data_schemas: DataSchemas,
}

/// The attributes of an event by their CloudEvents names: required ones, those for data, and extensions.
pub type Attributes = BTreeMap<String, String>;

/// What a name of an attribute may be: `sequencetype` and so on belong to extensions that others have defined.
pub(super) const RESERVED: [&str; 23] = [
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

    /// Also writes these optional attributes.
    #[must_use]
    pub fn with_optional(mut self, attributes: impl IntoIterator<Item = OptionalAttribute>) -> Self {
        self.optional.extend(attributes);
        self
    }

    /// Calls `set` with the name and the value of each attribute of an event, once each.
    ///
    /// Always: `specversion`, `id`, `source`, `type`, `subject` (the aggregate's id), `time` and `datacontenttype`.
    ///
    /// Only if they carry information:
    ///
    /// - `eventtype`: the event type, where `type` follows a template and differs from it
    /// - `partitionkey`: the ordering key, where it differs from `subject`
    /// - `schemaversion`: where it is not 1
    /// - `sequence` and `sequencetype`: the number within the key, where the event has one; with `aggregatetype` where that key is
    ///   the aggregate (its numbers are counted by type and id)
    /// - `dataschema`: where [`data_schemas`](CloudEvents::data_schemas) has the type and version
    /// - `correlationid`, `causationid`, `traceparent`, `tenant` and the application's own headers, the latter under a name of lower
    ///   case letters and digits
    ///
    /// Only when asked for: the [optional](CloudEvents::optional) ones.
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
        self.required(event, self.source_of(source), &mut set);
        self.telling(event, version.unwrap_or(1), &mut set);
        own_headers(own, &mut set);
    }

    /// The `source` of an event: its own, or the one of this sink.
    pub(crate) fn source_of<'a>(&'a self, own: Option<&'a str>) -> &'a str {
        own.or(self.source.as_deref()).filter(|source| !source.is_empty()).unwrap_or("/postrider")
    }

    /// The `type` of an event.
    pub(crate) fn kind<'a>(&self, event: &'a Recorded) -> Cow<'a, str> {
        match &self.type_template {
            None => Cow::Borrowed(&event.event_type),
            Some(template) => Cow::Owned(template.fill(event)),
        }
    }

    /// What every event has, and its number.
    fn required(&self, event: &Recorded, source: &str, set: &mut impl FnMut(&str, &str)) {
        set("specversion", "1.0");
        set("id", event.event_id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        set("source", source);
        let kind = self.kind(event);
        if kind != *event.event_type {
            set("eventtype", &event.event_type);
        }
        set("type", &kind);
        set("subject", &event.aggregate_id);
        set("datacontenttype", event.payload.content_type());
        set("time", &event.occurred_at.format(&Rfc3339).unwrap_or_default());
        if let Some(sequence) = event.sequence {
            set("sequence", &sequence.to_string());
            // Without it, numbers are compared as texts.
            set("sequencetype", "Integer");
        }
    }

    /// Attributes that carry information or were requested.
    fn telling(&self, event: &Recorded, version: u32, set: &mut impl FnMut(&str, &str)) {
        let key = event.ordering_key.as_deref().unwrap_or(&event.aggregate_id);
        let asked = |attribute| self.optional.contains(&attribute);
        if key != event.aggregate_id || asked(OptionalAttribute::PartitionKey) {
            set("partitionkey", key);
        }
        if version != 1 || asked(OptionalAttribute::SchemaVersion) {
            set("schemaversion", &version.to_string());
        }
        let counts_in_aggregate = event.sequence.is_some() && event.ordering_key.is_none();
        if counts_in_aggregate || asked(OptionalAttribute::AggregateType) {
            set("aggregatetype", &event.aggregate_type);
        }
        if !self.data_schemas.is_empty()
            && let Some(uri) = self.data_schemas.of(&event.event_type, version)
        {
            set("dataschema", uri);
        }
        if asked(OptionalAttribute::Stream) {
            set("stream", &event.stream);
        }
        if asked(OptionalAttribute::RecordedTime) {
            set("recordedtime", &event.recorded_at.format(&Rfc3339).unwrap_or_default());
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

/// The application's own headers, under names of lower case letters and digits; the first of a name counts.
fn own_headers(own: Vec<(&str, &str)>, set: &mut impl FnMut(&str, &str)) {
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

    fn names(events: &CloudEvents, event: &Recorded) -> Vec<String> {
        events.attributes(event).into_keys().collect()
    }

    /// Every one of these costs its bytes a million times a day.
    #[test]
    fn a_plain_event_has_the_seven_attributes_that_say_something() {
        let mut headers = Headers::new();
        headers.set_schema_version(1);
        let plain = Recorded { ordering_key: None, sequence: None, headers, ..event() };
        let seven = ["datacontenttype", "id", "source", "specversion", "subject", "time", "type"];
        assert_eq!(names(&CloudEvents::default(), &plain), seven);
        let keyed = Recorded { ordering_key: Some("7".into()), ..plain.clone() };
        assert_eq!(names(&CloudEvents::default(), &keyed), seven, "its subject says the key");
        for asked in OptionalAttribute::ALL {
            let mut wanted: Vec<&str> = seven.into_iter().chain([asked.as_str()]).collect();
            wanted.sort_unstable();
            assert_eq!(names(&CloudEvents::default().with_optional([asked]), &plain), wanted);
        }
        let all = CloudEvents::default().with_optional(OptionalAttribute::ALL).attributes(&plain);
        for (name, value) in [
            ("aggregatetype", "Order"),
            ("partitionkey", "7"),
            ("recordedtime", "1970-01-01T00:00:00Z"),
            ("schemaversion", "1"),
            ("stream", "orders"),
        ] {
            assert_eq!(all[name], value, "{name}");
        }
    }

    /// `Order:7` and `Item:7` are counted apart, and have the same subject.
    #[test]
    fn a_number_that_counts_within_an_aggregate_names_its_type() {
        let plain = CloudEvents::default();
        let within_key = event();
        assert!(!names(&plain, &within_key).contains(&"aggregatetype".to_owned()));
        let within_aggregate = Recorded { ordering_key: None, ..event() };
        assert_eq!(plain.attributes(&within_aggregate)["aggregatetype"], "Order");
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

    #[test]
    fn the_schema_is_named_where_it_is_known() {
        let data_schemas: DataSchemas =
            [("OrderPaid".to_owned(), 2, "urn:sha256:ab".to_owned())].into_iter().collect();
        let events = CloudEvents { data_schemas, ..CloudEvents::default() };
        let known = event();
        assert_eq!(events.attributes(&known)["dataschema"], "urn:sha256:ab");
        let unknown = Recorded { event_type: "OrderLost".into(), ..event() };
        assert!(!events.attributes(&unknown).contains_key("dataschema"));
    }

    /// C2: `{company}.{domain}.{action}.v{n}`.
    #[test]
    fn the_type_can_follow_a_pattern() {
        let template = Template::parse("loopers.{domain}.{event_type:kebab}.v{version}").expect("a template");
        let events = CloudEvents { type_template: Some(template), ..CloudEvents::default() };
        assert_eq!(events.attributes(&event())["type"], "loopers.order.order-paid.v2");
    }
}
