//! What we write, read by the library of the CloudEvents project.

use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::store::{OptionalAttribute, OutboxSource};
use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, OffsetDateTime, Payload, Recorded, Relay, Uuid};
use postrider_kafka::{Format, Kafka};
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{IncomingEvent, Topic};

/// Reads records from a file, as lists of headers, key and value in base 64, and writes what the library makes of them.
const READER: &str = r#"
import base64, json, sys
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
from cloudevents.core.formats.json import JSONFormat

bytes_of = base64.b64decode
for line in open(sys.argv[1]):
    record = json.loads(line)
    headers = {name: bytes_of(value) for name, value in record["headers"]}
    message = KafkaMessage(headers=headers, key=bytes_of(record["key"]), value=bytes_of(record["value"]))
    structured = headers["content-type"].startswith(b"application/cloudevents")
    event = (from_structured if structured else from_binary)(message, JSONFormat())
    data = event.get_data()
    if isinstance(data, bytes):
        data = {"bytes": base64.b64encode(data).decode()}
    attributes = event.get_attributes()
    attributes["time"] = attributes["time"].isoformat()
    print(json.dumps({"structured": structured, "attributes": attributes, "data": data}))
"#;

fn events() -> Vec<NewEvent> {
    let payload = json!({"order": 7, "text": "é \u{1F40E}", "nested": {"list": [1, 2.5, null, true]}});
    let full = NewEvent::of("orders", "OrderPaid", "Order", "order-7", &payload)
        .expect("an event")
        .ordered_by("account-1")
        .sequenced()
        .with_header("source", "/shop/é")
        .with_header("schema_version", "3")
        .with_header("tenant", "acme")
        .with_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .with_header("correlation_id", "checkout-1")
        .with_header("causation_id", Uuid::now_v7().to_string())
        .with_header("Own-Header", "mine: 100 %");
    let bytes =
        Payload::Bytes { content_type: "application/octet-stream".into(), bytes: vec![0, 255, 7, 10] };
    let bare = NewEvent::new("orders", "PictureTaken", "Picture", "p/1", bytes);
    vec![full, bare]
}

/// A record as the reader takes it.
fn line(arrival: &IncomingEvent) -> Value {
    let base64 = |bytes: &[u8]| Value::String(base64(bytes));
    let headers = arrival.headers.iter().map(|(name, value)| json!([name, base64(value)]));
    json!({
        "headers": headers.collect::<Vec<_>>(),
        "key": base64(arrival.key.as_bytes()),
        "value": base64(&arrival.value),
    })
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// What the library makes of records.
fn read_by_python(arrivals: &[IncomingEvent]) -> Vec<Value> {
    let python = xtask::python::ready().expect("Python with the CloudEvents library");
    let folder = std::env::temp_dir().join(format!("postrider-cloudevents-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (script, records) = (folder.join("reader.py"), folder.join("records"));
    let lines: String = arrivals.iter().map(|arrival| format!("{}\n", line(arrival))).collect();
    std::fs::write(&script, READER).and_then(|()| std::fs::write(&records, lines)).expect("written");
    let mut command = Command::new(python);
    command.arg(&script).arg(&records);
    let output = xtask::process::output(&mut command, "read CloudEvents").expect("it reads them");
    std::fs::remove_dir_all(&folder).expect("removed");
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What the library must have found of an event: with all optional attributes, or with those alone that say something.
fn assert_same(read: &Value, event: &Recorded, full: bool) {
    let key = event.ordering_key.clone().unwrap_or_else(|| event.aggregate_id.clone());
    let version = event.headers.schema_version();
    let wanted = [
        ("specversion", "1.0".to_owned()),
        ("id", event.event_id.to_string()),
        ("type", event.event_type.to_string()),
        ("source", event.headers.source().unwrap_or("/postrider").to_owned()),
        ("subject", event.aggregate_id.clone()),
        ("datacontenttype", event.payload.content_type().to_owned()),
        // Where no attribute says so, the library takes it from the record's key.
        ("partitionkey", key),
    ];
    let attributes = &read["attributes"];
    for (name, value) in wanted {
        assert_eq!(attributes[name], Value::String(value), "{name} in {read}");
    }
    let optional = [
        ("schemaversion", (full || version != 1).then(|| version.to_string())),
        ("aggregatetype", full.then(|| event.aggregate_type.to_string())),
        ("stream", full.then(|| "orders".to_owned())),
        ("recordedtime", full.then(|| event.recorded_at.format(&Rfc3339).expect("a time"))),
        ("sequence", event.sequence.map(|number| number.to_string())),
        ("tenant", event.headers.tenant().map(ToOwned::to_owned)),
        ("traceparent", event.headers.traceparent().map(ToOwned::to_owned)),
        ("correlationid", event.headers.correlation_id().map(ToOwned::to_owned)),
        ("causationid", event.headers.causation_id().map(|id| id.to_string())),
        ("ownheader", event.headers.get("Own-Header").map(ToOwned::to_owned)),
    ];
    for (name, value) in optional {
        assert_eq!(attributes.get(name), value.map(Value::String).as_ref(), "{name} in {read}");
    }
    let time =
        OffsetDateTime::parse(attributes["time"].as_str().expect("a time"), &Rfc3339).expect("RFC 3339");
    assert_eq!(time, event.occurred_at);
    let data = match &event.payload {
        Payload::Json(text) => serde_json::from_str(text).expect("JSON"),
        Payload::Bytes { bytes, .. } => json!({"bytes": base64(bytes)}),
    };
    assert_eq!(read["data"], data);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_library_reads_every_attribute_and_the_data_in_both_modes() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    let topics = [
        ("binary", Format::Binary, &[][..]),
        ("structured", Format::Structured, &[]),
        ("binary-full", Format::Binary, &OptionalAttribute::ALL),
        ("structured-full", Format::Structured, &OptionalAttribute::ALL),
    ];
    broker.create_topics(&topics.map(|(name, ..)| (name, 1))).expect("topics");
    let outbox = Outbox::new();
    for event in events() {
        outbox.record_alone(&event).await.expect("recorded");
    }
    let mut relay = Relay::new(&outbox);
    for (name, format, attributes) in topics {
        let sink = Kafka::builder(&broker.bootstrap()).topic(name).format(format);
        let sink = sink.attributes(attributes.iter().copied()).build().expect("a sink");
        relay = relay.subscribe(name, |s| s.sink(sink));
    }
    let relay = relay.start().await.expect("started");
    for (name, ..) in topics {
        until_quiet(&relay, name).await.expect("quiet");
    }
    relay.stop().await.expect("stopped");
    let recorded = outbox.recorded();
    for (name, format, attributes) in topics {
        let read = read_by_python(&Topic::new(&broker.bootstrap(), name, 1).arrivals());
        assert_eq!(read.len(), recorded.len());
        for (read, event) in read.iter().zip(&recorded) {
            assert_eq!(read["structured"], json!(format == Format::Structured));
            assert_same(read, event, !attributes.is_empty());
        }
    }
}
