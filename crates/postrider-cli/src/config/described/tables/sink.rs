//! Where events go.

use postrider::http::HttpBuilder;
use postrider::kafka::KafkaBuilder;

use super::{BY_NAME, COUNT, FLAG, LIST, TEXT, TIME, other, usual};
use crate::config::described::{Described, Usual};
use crate::config::sink;

pub(super) const KAFKA: Described = Described {
    place: "sink.*",
    kind: Some("kafka"),
    head: "[sink.NAME], type = \"kafka\"",
    what: "A Kafka cluster. Postrider never creates topics.",
    environment: false,
    settings: &[
        other("type", TEXT, "`kafka`."),
        other("brokers", TEXT, "Brokers, as in `127.0.0.1:9092`. Required."),
        usual(
            "topic",
            TEXT,
            Usual::Text(KafkaBuilder::TOPIC),
            "Template of the topic name: `{stream}`, `{event_type}`, `{aggregate_type}`, `{domain}`, `{version}`, each optionally with `:kebab` or `:snake`.",
        ),
        other("topics", BY_NAME, "Topics of single event types, as exceptions to `topic`."),
        usual(
            "tombstones",
            LIST,
            Usual::List(&[]),
            "Event types that are written without a value, so that a compacted topic forgets the key.",
        ),
        usual(
            "format",
            "`binary`, `structured`, `payload` or `envelope`",
            Usual::Text(sink::KAFKA_FORMATS[0].0),
            "CloudEvents in headers, CloudEvents as JSON, the payload alone, or JSON with fields of your own (`envelope`).",
        ),
        other(
            "envelope",
            BY_NAME,
            "The fields of the JSON object, with `format = \"envelope\"`, in their order. A text may have placeholders: `{id}`, `{type}`, `{event_type}`, `{source}`, `{stream}`, `{aggregate_type}`, `{aggregate_id}`, `{time}`, `{recorded_time}`, `{key}`, `{sequence}`, `{schema_version}`, `{trace_id}`, `{correlation_id}`, `{causation_id}`, `{content_type}`, `{payload}`, `{header.NAME}`. A table is an object; numbers, `true` and `false` are constants.",
        ),
        usual(
            "send_timeout",
            TIME,
            Usual::Time(KafkaBuilder::SEND_TIMEOUT),
            "How long Kafka may take to acknowledge a batch; at most two fifths of `relay.lease`. If a third of `relay.lease` is less than 10 s, that is the default.",
        ),
        usual("tls", FLAG, Usual::Flag(sink::TLS), "Use TLS."),
        other(
            "authority",
            "file",
            "PEM file with the certificate of your own certificate authority. Turns on `tls`.",
        ),
        other(
            "login",
            "`plain`, `scram-sha-256` or `scram-sha-512`",
            "SASL mechanism. Default with a `user`: `scram-sha-256`.",
        ),
        other("user", TEXT, "SASL user."),
        other("password", TEXT, "SASL password."),
        other(
            "properties",
            BY_NAME,
            "librdkafka properties. Postrider rejects those that would break a guarantee.",
        ),
        other("source", TEXT, "CloudEvents `source` of events that have none."),
        other(
            "event_type",
            TEXT,
            "Template of the CloudEvents `type`, with the same placeholders as `topic`.",
        ),
        usual(
            "attributes",
            LIST,
            Usual::List(&[]),
            "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. An attribute that is not listed is written only where a reader needs it: `partitionkey` if it differs from `subject`, `schemaversion` if it is not 1, `aggregatetype` if the event has a `sequence` within its aggregate. Not allowed with `format = \"payload\"` or `\"envelope\"`, which have no attributes.",
        ),
        other(
            "dataschema",
            TEXT,
            "URI of the payload's schema, as CloudEvents `dataschema`, for events in the catalog file (`catalog.file`) that have a schema: a template with `{hash}` (SHA-256 of the schema), `{name}` and `{version}`, as in `urn:sha256:{hash}`. Not allowed with `format = \"payload\"` or `\"envelope\"`.",
        ),
    ],
};

pub(super) const HTTP: Described = Described {
    place: "sink.*",
    kind: Some("http"),
    head: "[sink.NAME], type = \"http\"",
    what: "An HTTP endpoint that accepts CloudEvents.",
    environment: false,
    settings: &[
        other("type", TEXT, "`http`."),
        other("url", TEXT, "URL of the endpoint. Required."),
        usual(
            "format",
            "`binary`, `structured`, `batched` or `envelope`",
            Usual::Text(sink::HTTP_FORMATS[0].0),
            "CloudEvents in headers, as JSON, or as a JSON array with several events per request; or JSON with fields of your own (`envelope`), one event per request.",
        ),
        other(
            "envelope",
            BY_NAME,
            "The fields of the JSON object, with `format = \"envelope\"`. As for Kafka.",
        ),
        usual(
            "batch",
            COUNT,
            Usual::Count(sink::HTTP_BATCH),
            "Maximum events per request, with `format = \"batched\"`.",
        ),
        other("secret", TEXT, "Key that signs requests by Standard Webhooks: `whsec_…`."),
        other("token", TEXT, "Bearer token of each request."),
        other("authority", "file", "PEM file with the certificate of your own certificate authority."),
        other(
            "statuses",
            BY_NAME,
            "What an HTTP status means, as in `{ 404 = \"event\" }`. `endpoint`: the endpoint fails; the event waits while \
             nothing succeeds, and loses an attempt while other events succeed. `event`: like `endpoint`, but the event is dead \
             at once while other events succeed. `retry`: the event always loses an attempt. `reject`: the event is \
             always dead at once. Default: `event` for 400, 409, 413, 415 and 422, `endpoint` for all others.",
        ),
        usual(
            "longest_retry_after",
            TIME,
            Usual::Time(HttpBuilder::LONGEST_RETRY_AFTER),
            "Longest `Retry-After` that is honoured.",
        ),
        usual(
            "keep_answers",
            FLAG,
            Usual::Flag(sink::KEEP_ANSWERS),
            "Store the first 500 characters of each failure response with the attempt, for `dead show`. Set it to `false` if \
             the endpoint echoes data that must not be stored.",
        ),
        other("source", TEXT, "CloudEvents `source` of events that have none."),
        other(
            "event_type",
            TEXT,
            "Template of the CloudEvents `type`, with the same placeholders as a Kafka `topic`.",
        ),
        usual(
            "attributes",
            LIST,
            Usual::List(&[]),
            "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. As for Kafka.",
        ),
        other("dataschema", TEXT, "Template of the CloudEvents `dataschema`. As for Kafka."),
    ],
};

pub(super) const STDOUT: Described = Described {
    place: "sink.*",
    kind: Some("stdout"),
    head: "[sink.NAME], type = \"stdout\"",
    what: "Standard output: one CloudEvents JSON object per line.",
    environment: false,
    settings: &[
        other("type", TEXT, "`stdout`."),
        other("source", TEXT, "CloudEvents `source` of events that have none."),
        other(
            "event_type",
            TEXT,
            "Template of the CloudEvents `type`, with the same placeholders as a Kafka `topic`.",
        ),
        usual(
            "attributes",
            LIST,
            Usual::List(&[]),
            "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. As for Kafka.",
        ),
        other("dataschema", TEXT, "Template of the CloudEvents `dataschema`. As for Kafka."),
    ],
};
