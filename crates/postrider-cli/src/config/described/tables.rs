//! The settings, table by table.

use super::{Described, Setting};

const TIME: &str = "duration";
const TEXT: &str = "text";
const FLAG: &str = "boolean";
const COUNT: &str = "number";
const LIST: &str = "list";
const BY_NAME: &str = "table";

/// A setting with a default.
const fn usual(name: &'static str, kind: &'static str, usual: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, usual: Some(usual), what }
}

/// A setting without a default that could be written.
const fn other(name: &'static str, kind: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, usual: None, what }
}

/// Every table, in the order of the reference.
pub(crate) const TABLES: &[Described] = &[
    Described {
        place: "store",
        kind: None,
        head: "[store]",
        what: "The database that holds the log.",
        environment: true,
        settings: &[
            other(
                "url",
                TEXT,
                "Database URL: `postgres://user@host/database`, `mysql://user@host/database` or `sqlite:shop.db`. Same as `--store`.",
            ),
            usual(
                "schema",
                TEXT,
                "\"postrider\"",
                "PostgreSQL schema that holds the tables. Same as `--schema`.",
            ),
            usual(
                "connections",
                COUNT,
                "10",
                "Maximum connections in each of the relay's two pools; at least 2. Alerts and retention open a few more of their own.",
            ),
            usual(
                "bell",
                FLAG,
                "true",
                "Wake idle relays when an event is recorded. Set it to `false` if publishers use two-phase commit.",
            ),
            other(
                "listen_url",
                TEXT,
                "PostgreSQL URL for the bell (`LISTEN`). Default: `url`. `LISTEN` needs a session of its own, so set this to the database itself if `url` points to a pooler in transaction mode; without it the relay polls.",
            ),
            other(
                "max_payload",
                COUNT,
                "Largest payload in bytes. `postrider migrate` stores it in the database, which enforces it for every publisher in every language. Default: keep the stored limit, which is 1048576 (1 MiB) in a new log.",
            ),
            usual(
                "pooler",
                TEXT,
                "\"detect\"",
                "Pooler between the relay and PostgreSQL: `transaction` for one in transaction mode, `none` for no pooler or one in session mode. `detect` tests this with a second connection when the relay starts. `pgbouncer=true` in `url` means `transaction`, unless this is set.",
            ),
        ],
    },
    Described {
        place: "relay",
        kind: None,
        head: "[relay]",
        what: "The relay itself.",
        environment: true,
        settings: &[
            other("name", TEXT, "Name of this relay in leases and logs. Default: a generated name."),
            usual(
                "lease",
                TIME,
                "\"30s\"",
                "How long a lease lasts. Other relays take over the lanes of a dead relay after this time.",
            ),
            usual(
                "poll_interval",
                TIME,
                "\"10s\"",
                "Longest time between two reads of the log when no bell rings.",
            ),
            usual(
                "shutdown_grace",
                TIME,
                "\"10s\"",
                "How long a stopping relay waits for deliveries in flight. It returns the rest to the log.",
            ),
            usual(
                "figures_every",
                TIME,
                "\"15s\"",
                "How often the relay counts events for the gauges in `/metrics`.",
            ),
            usual("alerts_every", TIME, "\"1m\"", "How often alerts are evaluated, by one of all relays."),
        ],
    },
    Described {
        place: "http",
        kind: None,
        head: "[http]",
        what: "The HTTP server for `/metrics`, `/healthz` and `/readyz`.",
        environment: true,
        settings: &[usual(
            "listen",
            TEXT,
            "\"127.0.0.1:7678\"",
            "Address to listen on, or `\"off\"`. If it is not set and the port is in use, the relay listens on a free port and logs it.",
        )],
    },
    Described {
        place: "log",
        kind: None,
        head: "[log]",
        what: "Log output, on standard error.",
        environment: true,
        settings: &[
            usual(
                "format",
                "`human` or `json`",
                "\"human\"",
                "Lines for people, or one JSON object per line.",
            ),
            usual(
                "level",
                TEXT,
                "\"info\"",
                "Log level such as `info`, or a filter such as `postrider=debug`.",
            ),
        ],
    },
    Described {
        place: "subscription",
        kind: None,
        head: "[[subscription]]",
        what: "A named reader of the log. Repeat the table for each subscription.",
        environment: false,
        settings: &[
            other("name", TEXT, "Name of the subscription. Required."),
            other("sink", TEXT, "Destination of its events: the NAME of a `[sink.NAME]`. Required."),
            usual("streams", LIST, "[\"*\"]", "Streams to deliver; `*` matches any characters."),
            usual("types", LIST, "[\"*\"]", "Event types to deliver; `*` matches any characters."),
            usual(
                "order",
                "`key`, `strict` or `none`",
                "\"key\"",
                "What a failing event blocks: later events of its key, its whole lane, or nothing.",
            ),
            usual("lanes", COUNT, "1", "Number of lanes: how many relays can share the subscription."),
            other("batch", COUNT, "Events per read. Default: 1000, or 5000 for Kafka."),
            usual(
                "start",
                "`beginning`, `now` or a time",
                "\"beginning\"",
                "Where a new subscription starts to read.",
            ),
            other("retry", BY_NAME, "When to retry a failed event; see below."),
            usual(
                "on_dead",
                "`skip` or `hold`",
                "\"skip\"",
                "After an event died: `skip` goes on with the next event of its key, `hold` blocks the key until an operator acts.",
            ),
            usual(
                "while_unavailable",
                "`wait` or `expire`",
                "\"wait\"",
                "During an outage of the destination: `wait` does not count the time toward `max_age`, `expire` does.",
            ),
            usual(
                "concurrency",
                COUNT,
                "16",
                "Keys that are delivered at the same time. Within a key, events are delivered one by one.",
            ),
            usual("timeout", TIME, "\"30s\"", "Longest time that the destination may take for one event."),
            usual(
                "patience",
                TIME,
                "\"1s\"",
                "Longest time that a batch waits for its slowest events once all have started; it waits less if events are \
                 usually faster. Slower events keep running and block only their own key. Has no effect with \
                 `order = \"strict\"` or on Kafka sinks, where a batch waits for its slowest event.",
            ),
            usual(
                "longest_pause",
                TIME,
                "\"30s\"",
                "Longest pause between two attempts to reach an unavailable destination.",
            ),
            usual("replay", "`allow` or `forbid`", "\"allow\"", "Whether operators may replay it."),
        ],
    },
    Described {
        place: "subscription.retry",
        kind: None,
        head: "retry = { … }",
        what: "When to retry a failed event, in a `[[subscription]]`. Set `every`, or `schedule`, or exponential backoff with \
               `base`, `factor`, `max` and `jitter`. An event is dead after `max_attempts` or `max_age`, whichever comes first.",
        environment: false,
        settings: &[
            other("every", TIME, "Fixed pause between attempts."),
            other("schedule", LIST, "Pauses between attempts, one after the other; the last one repeats."),
            usual("base", TIME, "\"1s\"", "First pause."),
            usual("factor", COUNT, "2", "Factor by which each pause grows."),
            usual("max", TIME, "\"5m\"", "Longest pause."),
            usual(
                "jitter",
                COUNT,
                "0.2",
                "Fraction by which a pause is randomly shortened or extended: 0 to 1.",
            ),
            usual(
                "max_attempts",
                COUNT,
                "10",
                "Number of attempts, including the first. Unlimited if only `max_age` is set.",
            ),
            other("max_age", TIME, "How long after its first failure an event is dead."),
        ],
    },
    Described {
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
                "\"{stream}\"",
                "Template of the topic name: `{stream}`, `{event_type}`, `{aggregate_type}`, `{domain}`, `{version}`, each optionally with `:kebab` or `:snake`.",
            ),
            other("topics", BY_NAME, "Topics of single event types, as exceptions to `topic`."),
            usual(
                "format",
                "`binary`, `structured` or `payload`",
                "\"binary\"",
                "CloudEvents in headers, CloudEvents as JSON, or the payload alone.",
            ),
            usual(
                "send_timeout",
                TIME,
                "\"10s\"",
                "How long Kafka may take to acknowledge a batch; at most two fifths of `relay.lease`. If a third of `relay.lease` is less than 10 s, that is the default.",
            ),
            usual("tls", FLAG, "false", "Use TLS."),
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
                "[]",
                "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. An attribute that is not listed is written only where a reader needs it: `partitionkey` if it differs from `subject`, `schemaversion` if it is not 1, `aggregatetype` if the event has a `sequence` within its aggregate. Not allowed with `format = \"payload\"`, which has no attributes.",
            ),
        ],
    },
    Described {
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
                "`binary`, `structured` or `batched`",
                "\"binary\"",
                "CloudEvents in headers, as JSON, or as a JSON array with several events per request.",
            ),
            usual("batch", COUNT, "100", "Maximum events per request, with `format = \"batched\"`."),
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
            usual("longest_retry_after", TIME, "\"1h\"", "Longest `Retry-After` that is honoured."),
            usual(
                "keep_answers",
                FLAG,
                "true",
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
                "[]",
                "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. As for Kafka.",
            ),
        ],
    },
    Described {
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
                "[]",
                "Optional CloudEvents attributes to write for every event: `aggregatetype`, `partitionkey`, `recordedtime`, `schemaversion`, `stream`. As for Kafka.",
            ),
        ],
    },
    Described {
        place: "retention",
        kind: None,
        head: "[retention]",
        what: "When events leave the log, and where they go.",
        environment: true,
        settings: &[
            usual(
                "delivered",
                TIME,
                "\"30d\"",
                "How long events stay in the log after every subscription has settled them.",
            ),
            usual("archive", FLAG, "false", "Move them to the archive then. With `false` they are deleted."),
            other(
                "archived",
                TIME,
                "How long archived events are kept after they were recorded, as in `5y`; they are dropped in whole months. Default: forever.",
            ),
            usual("inbox", TIME, "\"30d\"", "How long inboxes remember the events that were handled."),
            usual(
                "at",
                "time of day",
                "\"02:00\"",
                "When retention runs, in UTC, on one of the relays. A run that was missed happens when a relay is back.",
            ),
            usual("batch", COUNT, "1000", "Rows per batch."),
            usual("pause", TIME, "\"50ms\"", "Shortest pause between two batches."),
            usual(
                "share",
                "number",
                "0.25",
                "Fraction of the time that retention may work. With 0.25 it pauses for 90 ms after a batch that took 30 ms.",
            ),
            other(
                "mask",
                LIST,
                "Payload fields to replace with `\"***\"` in the archive: a name at any depth (`email`), or a path (`card.number`, `*.phone`). A payload that is not JSON is archived as an empty one.",
            ),
            usual(
                "by_month",
                FLAG,
                "false",
                "Partition the archive by the month of recording, on MariaDB and MySQL. On PostgreSQL it always is.",
            ),
            other("target", BY_NAME, "A table of your own instead of the archive; see below."),
        ],
    },
    Described {
        place: "retention.target",
        kind: None,
        head: "[retention.target]",
        what: "A table of your own that receives archived events, in the transaction that removes them from the log. Postrider only inserts into it, as the relay's role (`grant insert`). `postrider events` does not search it.",
        environment: false,
        settings: &[
            other("table", TEXT, "Table name, as in `audit.events`. Case-sensitive."),
            other(
                "columns",
                BY_NAME,
                "Its columns and the event fields to store in them, as in `{ id = \"event_id\", body = \"payload\" }`: `id`, `event_id`, `stream`, `event_type`, `aggregate_type`, `aggregate_id`, `ordering_key`, `sequence`, `payload`, `content_type`, `content`, `headers`, `occurred_at`, `recorded_at`, `archived_at`.",
            ),
        ],
    },
    Described {
        place: "alert",
        kind: None,
        head: "[[alert]]",
        what: "A condition and whom to notify: when it starts to fire, again after `repeat`, and when it is over. Only one of all relays notifies. Repeat the table for each alert.",
        environment: false,
        settings: &[
            other(
                "when",
                TEXT,
                "Condition: `>` or `>=` on `undelivered`, `undelivered_over(5m)`, `oldest_seconds`, `retrying`, `dead`, `mean_attempts`; or `event dies`.",
            ),
            other("preset", "`saas`, `ledger` or `transfers`", "A set of conditions, instead of `when`."),
            other(
                "name",
                TEXT,
                "Name of the alert. Default: its condition. Must be unique per subscription.",
            ),
            usual("to", LIST, "[\"log\"]", "Whom to notify: NAMEs of `[notify.NAME]`, or `log`."),
            other("subscription", TEXT, "Evaluate it for this subscription only."),
            usual(
                "of",
                "`each` or `all`",
                "\"each\"",
                "Evaluate it for each subscription, or for all of them together.",
            ),
            other("repeat", TIME, "Notify again after this time while it fires. Default: never."),
        ],
    },
    Described {
        place: "notify.*",
        kind: Some("slack"),
        head: "[notify.NAME], type = \"slack\"",
        what: "A Slack channel.",
        environment: false,
        settings: &[
            other("type", TEXT, "`slack`."),
            other("url", TEXT, "URL of the incoming webhook. Required."),
        ],
    },
    Described {
        place: "notify.*",
        kind: Some("pagerduty"),
        head: "[notify.NAME], type = \"pagerduty\"",
        what: "A PagerDuty service, through the Events API v2.",
        environment: false,
        settings: &[
            other("type", TEXT, "`pagerduty`."),
            usual("url", TEXT, "\"https://events.pagerduty.com/v2/enqueue\"", "URL of the Events API."),
            other("key", TEXT, "Integration key. Required."),
        ],
    },
    Described {
        place: "notify.*",
        kind: Some("webhook"),
        head: "[notify.NAME], type = \"webhook\"",
        what: "Any HTTP endpoint that accepts JSON.",
        environment: false,
        settings: &[
            other("type", TEXT, "`webhook`."),
            other("url", TEXT, "URL of the endpoint. Required."),
            other("token", TEXT, "Bearer token of each request."),
        ],
    },
];
