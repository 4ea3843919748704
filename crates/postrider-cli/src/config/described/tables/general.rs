//! The database, the relay itself, its endpoints and its log.

use postrider::store::defaults;

use super::{COUNT, FLAG, TEXT, TIME, other, usual};
use crate::config::described::{Described, Usual};
use crate::config::general;

pub(super) const STORE: Described = Described {
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
            Usual::Text(general::SCHEMA),
            "PostgreSQL schema that holds the tables. Same as `--schema`.",
        ),
        usual(
            "connections",
            COUNT,
            Usual::Count(general::CONNECTIONS),
            "Maximum connections in each of the relay's two pools; at least 2. Alerts and retention open a few more of their own.",
        ),
        usual(
            "bell",
            FLAG,
            Usual::Flag(general::BELL),
            "Wake idle relays when an event is recorded. PostgreSQL: publishers send `NOTIFY`; MariaDB, MySQL and SQLite: the relay asks often whether anything was committed (MariaDB and MySQL 4 times a second while it is quiet, SQLite 20 times). `false` leaves `relay.poll_interval` alone: on MariaDB, MySQL and SQLite the relay reads the log once per interval while it is quiet; on PostgreSQL it reads sooner after work. PostgreSQL needs `false` if publishers use two-phase commit.",
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
            Usual::Text(general::POOLERS[0].0),
            "Pooler between the relay and PostgreSQL: `transaction` for one in transaction mode, `none` for no pooler or one in session mode. `detect` tests this with a second connection when the relay starts. `pgbouncer=true` in `url` means `transaction`, unless this is set.",
        ),
    ],
};

pub(super) const RELAY: Described = Described {
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
            Usual::Time(defaults::LEASE),
            "How long a lease lasts. Other relays take over the lanes of a dead relay after this time.",
        ),
        usual(
            "poll_interval",
            TIME,
            Usual::Time(defaults::POLL_INTERVAL),
            "Longest time between two reads of the log when no bell rings.",
        ),
        usual(
            "shutdown_grace",
            TIME,
            Usual::Time(defaults::SHUTDOWN_GRACE),
            "How long a stopping relay waits for deliveries in flight. It returns the rest to the log.",
        ),
        usual(
            "figures_every",
            TIME,
            Usual::Time(defaults::FIGURES_EVERY),
            "How often the relay counts events for the gauges in `/metrics`.",
        ),
        usual(
            "alerts_every",
            TIME,
            Usual::Time(general::ALERTS_EVERY),
            "How often alerts are evaluated, by one of all relays.",
        ),
    ],
};

pub(super) const HTTP: Described = Described {
    place: "http",
    kind: None,
    head: "[http]",
    what: "The HTTP server for `/metrics`, `/healthz` and `/readyz`.",
    environment: true,
    settings: &[usual(
        "listen",
        TEXT,
        Usual::Address(general::LISTEN),
        "Address to listen on, or `\"off\"`. If it is not set and the port is in use, the relay listens on a free port and logs it.",
    )],
};

pub(super) const LOG: Described = Described {
    place: "log",
    kind: None,
    head: "[log]",
    what: "Log output, on standard error.",
    environment: true,
    settings: &[
        usual(
            "format",
            "`human` or `json`",
            Usual::Text(general::LOG_FORMATS[0].0),
            "Lines for people, or one JSON object per line.",
        ),
        usual(
            "level",
            TEXT,
            Usual::Text(general::LOG_LEVEL),
            "Log level such as `info`, or a filter such as `postrider=debug`.",
        ),
    ],
};
