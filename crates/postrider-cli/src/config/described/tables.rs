//! The settings, table by table.

use super::{Described, Setting};

const TIME: &str = "time";
const TEXT: &str = "text";
const FLAG: &str = "true or false";
const COUNT: &str = "number";
const LIST: &str = "list";
const BY_NAME: &str = "table";

/// A setting that has a value of its own unless set.
const fn usual(name: &'static str, kind: &'static str, usual: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, usual: Some(usual), what }
}

/// A setting that is not there unless set.
const fn other(name: &'static str, kind: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, usual: None, what }
}

/// Every table, in the order of the reference.
pub(crate) const TABLES: &[Described] = &[
    Described {
        place: "store",
        kind: None,
        head: "[store]",
        what: "The database with the log.",
        environment: true,
        settings: &[
            other(
                "url",
                TEXT,
                "Its address: `postgres://user@host/database`, `mysql://user@host/database` or `sqlite:shop.db`. Also `--store`.",
            ),
            usual("schema", TEXT, "\"postrider\"", "The schema, on PostgreSQL. Also `--schema`."),
            usual(
                "connections",
                COUNT,
                "10",
                "How many connections each of the relay's two pools may open; 2 or more. Alerts and retention have small ones of their own.",
            ),
            usual(
                "bell",
                FLAG,
                "true",
                "Whether publishers ring sleeping relays. Turn it off where they use two-phase commit.",
            ),
            other(
                "listen_url",
                TEXT,
                "Where the bell listens, on PostgreSQL; `url` unless set. LISTEN needs a session of its own: where `url` leads to a pooler in transaction mode, this is the address of the database itself. Without it the relay polls there.",
            ),
            other(
                "max_payload",
                COUNT,
                "The largest payload in bytes, on PostgreSQL and SQLite: `postrider migrate` writes it into the database, where every publisher meets it, in any language. Unless set it stays as it is: 1048576 (1 MiB) in a new log.",
            ),
            usual(
                "pooler",
                TEXT,
                "\"detect\"",
                "What is between the relay and its PostgreSQL: `transaction` for a pooler in transaction mode, `none` for no pooler or one in session mode. `detect` finds out when the relay starts, by a second connection. `pgbouncer=true` in `url` is `transaction`, unless this is set.",
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
            other("name", TEXT, "What it is called in leases and logs; made up unless set."),
            usual(
                "lease",
                TIME,
                "\"30s\"",
                "How long a lease lasts: a dead relay's lanes are taken over after this.",
            ),
            usual("poll_interval", TIME, "\"10s\"", "How long it sleeps at most when nobody rings."),
            usual(
                "shutdown_grace",
                TIME,
                "\"10s\"",
                "How long it may take to stop; what is not done then is given back.",
            ),
            usual("figures_every", TIME, "\"15s\"", "How often it counts what is pending, for metrics."),
            usual(
                "alerts_every",
                TIME,
                "\"1m\"",
                "How often one of all relays looks whether somebody is to be told.",
            ),
        ],
    },
    Described {
        place: "http",
        kind: None,
        head: "[http]",
        what: "Where `/metrics`, `/healthz` and `/readyz` are answered.",
        environment: true,
        settings: &[usual(
            "listen",
            TEXT,
            "\"127.0.0.1:7678\"",
            "The address; `\"off\"` for nowhere. Where it is not set and the port is taken, the relay takes a free port and logs which.",
        )],
    },
    Described {
        place: "log",
        kind: None,
        head: "[log]",
        what: "How the relay speaks, on standard error.",
        environment: true,
        settings: &[
            usual("format", "`human` or `json`", "\"human\"", "Lines for people, or a JSON object a line."),
            usual("level", TEXT, "\"info\"", "What is said: `info`, or a filter such as `postrider=debug`."),
        ],
    },
    Described {
        place: "subscription",
        kind: None,
        head: "[[subscription]]",
        what: "A named reader of the log. There may be any number of them.",
        environment: false,
        settings: &[
            other("name", TEXT, "Its name. Needed."),
            other("sink", TEXT, "Where its events go: the name of a `[sink.NAME]`. Needed."),
            usual("streams", LIST, "[\"*\"]", "Which streams; `*` stands for any run of characters."),
            usual("types", LIST, "[\"*\"]", "Which event types; `*` stands for any run of characters."),
            usual(
                "order",
                "`key`, `strict` or `none`",
                "\"key\"",
                "What a failing event holds up: later ones of its key, its whole lane, nothing.",
            ),
            usual("lanes", COUNT, "1", "How many relays can share it."),
            other("batch", COUNT, "How many events are read at once: 1000, or 5000 to Kafka, unless set."),
            usual(
                "start",
                "`beginning`, `now` or a time",
                "\"beginning\"",
                "Where it starts, the first time.",
            ),
            other("retry", BY_NAME, "When a failed event is tried again; see below."),
            usual(
                "on_dead",
                "`skip` or `hold`",
                "\"skip\"",
                "Whether a key goes on without an event that died, or waits for an operator.",
            ),
            usual(
                "while_unavailable",
                "`wait` or `expire`",
                "\"wait\"",
                "Whether an outage of the destination counts towards an event's age.",
            ),
            usual(
                "concurrency",
                COUNT,
                "16",
                "How many keys are delivered at once; within a key always one.",
            ),
            usual("timeout", TIME, "\"30s\"", "How long one event may take at the destination."),
            usual(
                "patience",
                TIME,
                "\"1s\"",
                "How long a batch waits at most for its last events, once all are begun; it waits for less where events \
                 usually take less. What takes longer runs on and holds only its key. Not under `order = \"strict\"` and not to \
                 Kafka: there a batch waits for its slowest event.",
            ),
            usual(
                "longest_pause",
                TIME,
                "\"30s\"",
                "How long an unavailable destination is left alone at most.",
            ),
            usual("replay", "`allow` or `forbid`", "\"allow\"", "Whether operators may have it replayed."),
        ],
    },
    Described {
        place: "subscription.retry",
        kind: None,
        head: "retry = { … }",
        what: "When a failed event is tried again, in a `[[subscription]]`. Either `every`, or `schedule`, or growing pauses by \
               `base`, `factor`, `max` and `jitter`; it ends by `max_attempts` or `max_age`, whichever comes first.",
        environment: false,
        settings: &[
            other("every", TIME, "Always after this."),
            other("schedule", LIST, "After these times, one after the other; then always after the last."),
            usual("base", TIME, "\"1s\"", "The first pause."),
            usual("factor", COUNT, "2", "What each pause is multiplied by."),
            usual("max", TIME, "\"5m\"", "The longest pause."),
            usual(
                "jitter",
                COUNT,
                "0.2",
                "By which part of itself a pause is made shorter or longer at random: 0 to 1.",
            ),
            usual(
                "max_attempts",
                COUNT,
                "10",
                "How often it is tried, the first time included; without end where only `max_age` is set.",
            ),
            other("max_age", TIME, "How long after its first failure it is given up."),
        ],
    },
    Described {
        place: "sink.*",
        kind: Some("kafka"),
        head: "[sink.NAME], type = \"kafka\"",
        what: "A Kafka cluster. Topics are never created.",
        environment: false,
        settings: &[
            other("type", TEXT, "`kafka`."),
            other("brokers", TEXT, "Its brokers, as in `127.0.0.1:9092`. Needed."),
            usual(
                "topic",
                TEXT,
                "\"{stream}\"",
                "What a topic's name is made of: `{stream}`, `{event_type}`, `{aggregate_type}`, `{domain}`, `{version}`, each also with `:kebab` or `:snake`.",
            ),
            other("topics", BY_NAME, "Topics by event type, where they are exceptions."),
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
                "How long a batch may take to be confirmed: two fifths of `relay.lease` at most, and a third of it where that is less than 10 s.",
            ),
            usual("tls", FLAG, "false", "Whether the connection is encrypted."),
            other("authority", "file", "The certificate of an authority of one's own; sets `tls`."),
            other(
                "login",
                "`plain`, `scram-sha-256` or `scram-sha-512`",
                "How it logs in: `scram-sha-256` unless set, where a user is.",
            ),
            other("user", TEXT, "Who logs in."),
            other("password", TEXT, "With which password."),
            other(
                "properties",
                BY_NAME,
                "Properties of librdkafka; those that would break a promise are refused.",
            ),
            other("source", TEXT, "The CloudEvents `source` of events that have none."),
            other("event_type", TEXT, "What the CloudEvents `type` is made of, as `topic`."),
        ],
    },
    Described {
        place: "sink.*",
        kind: Some("http"),
        head: "[sink.NAME], type = \"http\"",
        what: "An endpoint that takes CloudEvents.",
        environment: false,
        settings: &[
            other("type", TEXT, "`http`."),
            other("url", TEXT, "Its address. Needed."),
            usual(
                "format",
                "`binary`, `structured` or `batched`",
                "\"binary\"",
                "CloudEvents in headers, as JSON, or several in one request.",
            ),
            usual("batch", COUNT, "100", "How many events a batched request has at most."),
            other("secret", TEXT, "What requests are signed with, as Standard Webhooks: `whsec_…`."),
            other("token", TEXT, "What requests are authorised with, as a bearer token."),
            other("authority", "file", "The certificate of an authority of one's own, in PEM."),
            other(
                "statuses",
                BY_NAME,
                "Whose trouble a status is, as in `{ 404 = \"event\" }`: `endpoint` (its events wait while nothing succeeds, \
                 and lose an attempt while others do), `event` (the same, but dead at once while others succeed), `retry` \
                 (loses an attempt in any case), `reject` (dead at once in any case). 400, 409, 413, 415 and 422 are `event` unless set, all others `endpoint`.",
            ),
            usual("longest_retry_after", TIME, "\"1h\"", "How long a `Retry-After` is kept to at most."),
            usual(
                "keep_answers",
                FLAG,
                "true",
                "Whether the first 500 characters of an answer that is a failure are kept with the attempt, for `dead show`. Set it to \
                 `false` where the endpoint repeats what it is sent and that must not be kept.",
            ),
            other("source", TEXT, "The CloudEvents `source` of events that have none."),
            other("event_type", TEXT, "What the CloudEvents `type` is made of, as a Kafka `topic`."),
        ],
    },
    Described {
        place: "sink.*",
        kind: Some("stdout"),
        head: "[sink.NAME], type = \"stdout\"",
        what: "Standard output: a CloudEvents JSON object a line.",
        environment: false,
        settings: &[
            other("type", TEXT, "`stdout`."),
            other("source", TEXT, "The CloudEvents `source` of events that have none."),
            other("event_type", TEXT, "What the CloudEvents `type` is made of, as a Kafka `topic`."),
        ],
    },
    Described {
        place: "retention",
        kind: None,
        head: "[retention]",
        what: "What leaves the log, and when.",
        environment: true,
        settings: &[
            usual(
                "delivered",
                TIME,
                "\"30d\"",
                "How long events stay in the log after every subscription has settled them.",
            ),
            usual(
                "archive",
                FLAG,
                "false",
                "Whether they move to the archive then; otherwise they are deleted.",
            ),
            other(
                "archived",
                TIME,
                "How long after their recording they leave the archive, as in `5y`: by whole months, for ever unless set.",
            ),
            usual("inbox", TIME, "\"30d\"", "How long an inbox remembers what was handled."),
            usual(
                "at",
                "time of the day",
                "\"02:00\"",
                "When it runs, in UTC, by one of the relays; one that was away then does it when it is back.",
            ),
            usual("batch", COUNT, "1000", "How many rows are taken at once."),
            usual("pause", TIME, "\"50ms\"", "How long to wait between two batches, at least."),
            usual(
                "share",
                "share",
                "0.25",
                "The share of the time that it works: after a batch that took 30 ms it waits for 90 ms.",
            ),
            other(
                "mask",
                LIST,
                "Fields of payloads that are masked (`\"***\"`) on the way into the archive: a name at every depth (`email`), or a path (`card.number`, `*.phone`). A payload that is not JSON is left out.",
            ),
            usual(
                "by_month",
                FLAG,
                "false",
                "Whether the archive is partitioned by the month of recording, on MariaDB and MySQL; on PostgreSQL it always is.",
            ),
            other("target", BY_NAME, "A table of the application instead of the archive; see below."),
        ],
    },
    Described {
        place: "retention.target",
        kind: None,
        head: "[retention.target]",
        what: "A table of the application that archived events go to, in the transaction that takes them out of the log. Rows are only added, by the rights of the relay's role (`grant insert`); `events` can't look there.",
        environment: false,
        settings: &[
            other("table", TEXT, "Its name, as in `audit.events`, with capitals as they are."),
            other(
                "columns",
                BY_NAME,
                "Its columns and what goes into them, as in `{ id = \"event_id\", body = \"payload\" }`: `id`, `event_id`, `stream`, `event_type`, `aggregate_type`, `aggregate_id`, `ordering_key`, `sequence`, `payload`, `content_type`, `content`, `headers`, `occurred_at`, `recorded_at`, `archived_at`.",
            ),
        ],
    },
    Described {
        place: "alert",
        kind: None,
        head: "[[alert]]",
        what: "When somebody is told: once, again after `repeat`, and once more when it is over. One of all relays speaks. There may be any number of them.",
        environment: false,
        settings: &[
            other(
                "when",
                TEXT,
                "When: `>` or `>=` on `undelivered`, `undelivered_over(5m)`, `oldest_seconds`, `retrying`, `dead`, `mean_attempts`; or `event dies`.",
            ),
            other(
                "preset",
                "`saas`, `ledger` or `transfers`",
                "Several conditions at once, instead of `when`.",
            ),
            other(
                "name",
                TEXT,
                "What it is called; its condition unless set. Two that watch the same have names of their own.",
            ),
            usual("to", LIST, "[\"log\"]", "Who is told: names of `[notify.NAME]`, or `log`."),
            other("subscription", TEXT, "Of one subscription."),
            usual(
                "of",
                "`each` or `all`",
                "\"each\"",
                "Of each subscription by itself, or of all of them together.",
            ),
            other("repeat", TIME, "After how long it is said again while it lasts; never unless set."),
        ],
    },
    Described {
        place: "notify.*",
        kind: Some("slack"),
        head: "[notify.NAME], type = \"slack\"",
        what: "A Slack channel.",
        environment: false,
        settings: &[other("type", TEXT, "`slack`."), other("url", TEXT, "Its incoming webhook. Needed.")],
    },
    Described {
        place: "notify.*",
        kind: Some("pagerduty"),
        head: "[notify.NAME], type = \"pagerduty\"",
        what: "A PagerDuty service, by its events API v2.",
        environment: false,
        settings: &[
            other("type", TEXT, "`pagerduty`."),
            usual(
                "url",
                TEXT,
                "\"https://events.pagerduty.com/v2/enqueue\"",
                "The address of its events API.",
            ),
            other("key", TEXT, "Its integration key. Needed."),
        ],
    },
    Described {
        place: "notify.*",
        kind: Some("webhook"),
        head: "[notify.NAME], type = \"webhook\"",
        what: "Any endpoint that takes JSON.",
        environment: false,
        settings: &[
            other("type", TEXT, "`webhook`."),
            other("url", TEXT, "Its address. Needed."),
            other("token", TEXT, "What requests are authorised with, as a bearer token."),
        ],
    },
];
