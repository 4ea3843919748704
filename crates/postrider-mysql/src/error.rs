//! What the server and sqlx say, as kinds and sentences that a program and a person can act on.

use std::error::Error as _;

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::session;
use sqlx_core::Error as SqlxError;
use sqlx_mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPool};

use crate::pools::Session;

const DEADLOCK: u16 = 1213;
/// A lock was waited for too long, or not at all.
const LOCKED: u16 = 1205;
const BUSY: u16 = 3572;
/// A table left the cache of table definitions while the statement was about to run. It did nothing.
const PREPARE_AGAIN: u16 = 1615;

/// What each constraint of the tables means, in the words of `record`.
const CONSTRAINTS: [(&str, &str); 8] = [
    ("event_stream_length", "the stream must have 1 to 200 bytes"),
    ("event_type_length", "the event type must have 1 to 200 bytes"),
    ("event_aggregate_type_length", "the aggregate type must have 1 to 200 bytes"),
    ("event_aggregate_id_length", "the aggregate id must have 1 to 500 bytes"),
    ("event_ordering_key_length", "the ordering key must have 1 to 500 bytes"),
    (
        "event_max_attempts_positive",
        "max_attempts must be at least 1. If you did not set it, run `postrider migrate` to restore the trigger",
    ),
    ("event_headers_are_an_object", "the headers must be a JSON object"),
    ("event_has_json_or_content", "an event must have either a JSON payload or a content type and content"),
];

/// Turns an error of sqlx during `op` into ours. What the server quotes of a row stays out.
pub(crate) fn failed(op: &'static str) -> impl Fn(SqlxError) -> Error {
    move |error| {
        let (kind, message) = meaning(op, &error);
        let ours = Error::new(kind, op, message);
        match &error {
            SqlxError::Database(_) => ours.caused_by(code(number_of(&error).unwrap_or(0))),
            SqlxError::Io(io) => ours.caused_by(io.to_string()),
            _ => ours,
        }
    }
}

fn meaning(op: &str, error: &SqlxError) -> (ErrorKind, String) {
    match error {
        SqlxError::Database(database) => explained(op, number_of(error).unwrap_or(0), database.message()),
        SqlxError::ColumnDecode { index, .. } => {
            (ErrorKind::Corrupt, format!("the database has an unexpected value in {index}"))
        }
        other => session::transport_error(other)
            .unwrap_or_else(|| (ErrorKind::Database, "unexpected answer from the database".to_owned())),
    }
}

/// What to say to a handler whose database is away: the connection broke or there was none, no connection became free in time, or the server
/// accepts no more of them or is ending. Nothing for any other error.
#[doc(hidden)]
pub fn away(error: &SqlxError) -> Option<String> {
    let (kind, message) = meaning("handle", error);
    matches!(kind, ErrorKind::Unreachable | ErrorKind::PoolExhausted).then_some(message)
}

/// The number that the server gives an error.
pub(crate) fn number_of(error: &SqlxError) -> Option<u16> {
    let SqlxError::Database(database) = error else { return None };
    database.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number)
}

fn code(number: u16) -> String {
    format!("error {number}")
}

/// Whether somebody else was in the way, and nothing is wrong beside that: a deadlock, or a lock that was waited for too long.
pub(crate) fn is_in_the_way(error: &Error) -> bool {
    let number = error.source().map(ToString::to_string);
    number.is_some_and(|number| [DEADLOCK, LOCKED, BUSY].iter().any(|known| number == code(*known)))
}

/// Whether the server chose this transaction to end a deadlock: all of it may be tried again at once.
pub(crate) fn is_deadlock(error: &Error) -> bool {
    error.source().is_some_and(|source| source.to_string() == code(DEADLOCK))
}

/// Whether the statement must be prepared again. It had no effect, so it can be sent again in the same transaction.
pub(crate) fn must_prepare_again(error: &SqlxError) -> bool {
    number_of(error) == Some(PREPARE_AGAIN)
}

fn explained(op: &str, number: u16, text: &str) -> (ErrorKind, String) {
    refused(op, number, text)
        .or_else(|| denied(op, number, text))
        .or_else(|| in_the_way(number, text))
        .unwrap_or_else(|| (ErrorKind::Database, format!("the database failed with error {number}")))
}

fn said(what: &str, text: &str) -> String {
    format!("{what} (the server says: {text})")
}

/// What is wrong with the values of a statement.
fn refused(op: &str, number: u16, text: &str) -> Option<(ErrorKind, String)> {
    Some(match number {
        1062 if text.contains("event_id_is_unique") => (
            ErrorKind::AlreadyRecorded,
            "an event with this id already exists; nothing was written".to_owned(),
        ),
        1062 if op == "record" => (
            ErrorKind::Corrupt,
            "the auto_increment of postrider_arrival is behind the log, as after a restore without that table; run `alter table \
             postrider_arrival auto_increment = …` with a value above the highest id in postrider_event"
                .to_owned(),
        ),
        1062 => (ErrorKind::Conflict, "another transaction wrote the same row; try again".to_owned()),
        3819 | 4025 => {
            let meant = CONSTRAINTS.iter().find(|(name, _)| text.contains(name));
            let meant = meant.map_or("a value violates a constraint", |(_, sentence)| sentence);
            (ErrorKind::Invalid, meant.to_owned())
        }
        1048 | 1364 => (
            ErrorKind::Invalid,
            "an event must have an event type, an aggregate type and an aggregate id".to_owned(),
        ),
        3140 | 3141 | 3143 | 3146 | 4036..=4038 => {
            (ErrorKind::Invalid, "the payload and the headers must be JSON".to_owned())
        }
        1264 | 1265 | 1292 | 1366 | 1406 | 1411 => {
            (ErrorKind::Invalid, "the database can't store this value: it is too long or out of range".to_owned())
        }
        1153 => (
            ErrorKind::Invalid,
            "the statement is larger than max_allowed_packet; raise that setting, or record fewer events at once"
                .to_owned(),
        ),
        // MySQL cuts what is said after 128 characters: one sentence goes without the name.
        1644 => match text
            .strip_prefix("postrider: ")
            .or_else(|| text.starts_with("the payload has ").then_some(text))
        {
            Some(sentence) => (ErrorKind::Invalid, sentence.to_owned()),
            None => (ErrorKind::Database, said("a trigger refused it", text)),
        },
        _ => return None,
    })
}

/// What this user may not do, or what is not there.
fn denied(op: &str, number: u16, text: &str) -> Option<(ErrorKind, String)> {
    let said = |what: &str| said(what, text);
    Some(match number {
        1054 | 1146 | 1305 | 1356 => (
            ErrorKind::NotMigrated,
            said("the tables are missing or too old; run `postrider migrate` or call Outbox::migrated"),
        ),
        1045 | 1698 => (ErrorKind::Denied, said("the database refused the login; check user and password")),
        1044 if op == "migrate" => (
            ErrorKind::Denied,
            said("the database does not exist, or this user may not use it or lock its tables (a migration on MySQL locks them); check \
                  the URL and the privileges"),
        ),
        1044 | 1049 => (
            ErrorKind::Denied,
            said("the database does not exist, or this user may not use it; check the URL"),
        ),
        1419 => (
            ErrorKind::Denied,
            "the server has a binary log, so only administrators may create triggers; migrate as an administrator, or set \
             log_bin_trust_function_creators = 1"
                .to_owned(),
        ),
        1142 | 1143 | 1227 | 1370 | 1410 => (
            ErrorKind::Denied,
            said("a privilege is missing; grant select, insert, update, delete and execute on the database, and for the \
                  migration create, alter, drop, index, trigger, create view and create routine, on MySQL also lock tables"),
        ),
        1290 | 1792 | 1836 | 3100 => {
            (ErrorKind::Denied, "the server is read-only; connect to the primary".to_owned())
        }
        1665 => (
            ErrorKind::Denied,
            "binlog_format is STATEMENT, which can't log a READ COMMITTED transaction; set it to ROW or MIXED"
                .to_owned(),
        ),
        _ => return None,
    })
}

/// Who else was in the way, or what ended the connection.
fn in_the_way(number: u16, text: &str) -> Option<(ErrorKind, String)> {
    Some(match number {
        PREPARE_AGAIN => (
            ErrorKind::Conflict,
            "the server had to prepare the statement again too often; try again, and if this repeats, raise \
             table_definition_cache and table_open_cache"
                .to_owned(),
        ),
        1412 => (ErrorKind::Conflict, "a table was altered during the transaction; try again".to_owned()),
        DEADLOCK | 1020 => (ErrorKind::Conflict, "conflict with another transaction; try again".to_owned()),
        LOCKED | BUSY => {
            (ErrorKind::Conflict, "another transaction kept a row locked for too long; try again".to_owned())
        }
        1317 | 1969 | 3024 => {
            (ErrorKind::Conflict, "the statement was cancelled because it took too long".to_owned())
        }
        1040 | 1203 | 1226 => (ErrorKind::Unreachable, said("the server accepts no more connections", text)),
        1053 | 1152 | 1158..=1161 | 1184 | 1927 | 4031 => {
            (ErrorKind::Unreachable, "the server closed the connection".to_owned())
        }
        _ => return None,
    })
}

/// A connection of the pool.
pub(crate) async fn acquire(pool: &MySqlPool, op: &'static str) -> Result<Session> {
    session::acquire(pool, place, failed(op), op).await
}

/// Where an address leads: host, port and database. Neither user nor password.
pub fn place(options: &MySqlConnectOptions) -> String {
    let database =
        options.get_database().map_or_else(|| "no database".to_owned(), |name| format!("database {name}"));
    match options.get_socket() {
        Some(socket) => format!("socket {}, {database}", socket.display()),
        None => format!("host {}, port {}, {database}", options.get_host(), options.get_port()),
    }
}
