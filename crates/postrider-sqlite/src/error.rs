//! What SQLite and sqlx say, as kinds and sentences that a program and a person can act on.

use postrider_core::{Error, ErrorKind};
use postrider_sql::session::transport_error;
use sqlx_core::Error as SqlxError;
use sqlx_core::error::DatabaseError;
use sqlx_sqlite::{SqliteConnectOptions, SqlitePool};

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const BUSY_SNAPSHOT: i32 = 517;

/// What each constraint of the tables means, in the words of `record`.
const CONSTRAINTS: [(&str, &str); 13] = [
    ("event_id_has_16_bytes", "event_id must be a blob of 16 bytes"),
    ("event_stream_length", "the stream must have 1 to 200 bytes and no NUL"),
    ("event_type_length", "the event type must have 1 to 200 bytes and no NUL"),
    ("event_aggregate_type_length", "the aggregate type must have 1 to 200 bytes and no NUL"),
    ("event_aggregate_id_length", "the aggregate id must have 1 to 500 bytes and no NUL"),
    ("event_ordering_key_length", "the ordering key must have 1 to 500 bytes and no NUL"),
    (
        "event_max_attempts_positive",
        "max_attempts must be at least 1 and below 2^31; it includes the first attempt",
    ),
    ("event_times_are_microseconds", "times must be microseconds since 1970, within the years -9999 to 9999"),
    ("event_headers_are_an_object", "the headers must be a JSON object"),
    ("event_payload_is_json", "the payload must be JSON"),
    ("event_has_json_or_content", "an event must have either a JSON payload or a content type and content"),
    ("length(cast(consumer as blob))", "a consumer's name must have 1 to 200 bytes"),
    ("NOT NULL", "an event must have an event type, an aggregate type and an aggregate id"),
];

/// Turns an error of sqlx during `op` into ours.
pub(crate) fn failed(op: &'static str) -> impl Fn(SqlxError) -> Error {
    move |error| {
        let (kind, message) = meaning(&error);
        Error::new(kind, op, message).caused_by(error)
    }
}

fn meaning(error: &SqlxError) -> (ErrorKind, String) {
    match error {
        SqlxError::Database(database) => of_sqlite(&**database),
        SqlxError::ColumnDecode { index, .. } => {
            (ErrorKind::Corrupt, format!("the database has an unexpected value in {index}"))
        }
        SqlxError::InvalidSavePointStatement => {
            (ErrorKind::Invalid, "the connection is already in a transaction".to_owned())
        }
        other => transport_error(other)
            .unwrap_or_else(|| (ErrorKind::Database, "the database driver failed".to_owned())),
    }
}

/// What to say to a handler whose database is away: the connection broke or there was none, no connection became free in time, or the server
/// accepts no more of them or is ending. Nothing for any other error.
#[doc(hidden)]
pub fn away(error: &SqlxError) -> Option<String> {
    let (kind, message) = meaning(error);
    matches!(kind, ErrorKind::Unreachable | ErrorKind::PoolExhausted).then_some(message)
}

/// The error of a file that can't be opened or used, with its name.
pub(crate) fn placed(pool: &SqlitePool) -> impl Fn(Error) -> Error {
    let options = pool.connect_options();
    move |error| match error.kind() {
        ErrorKind::Unreachable | ErrorKind::Denied | ErrorKind::Corrupt => error.at(place(&options)),
        _ => error,
    }
}

/// Where an address leads: the file.
pub fn place(options: &SqliteConnectOptions) -> String {
    format!("the file {}", options.get_filename().display())
}

fn of_sqlite(error: &dyn DatabaseError) -> (ErrorKind, String) {
    let code = error.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or(0);
    let text = error.message();
    let (kind, message) = match (code, code & 0xff) {
        (BUSY_SNAPSHOT, _) => (
            ErrorKind::Conflict,
            "the transaction read before it wrote, and another one wrote in between; \
             begin it with outbox.begin() (BEGIN IMMEDIATE) and try again",
        ),
        (_, BUSY | LOCKED) => (
            ErrorKind::Conflict,
            "another transaction locked the database for longer than the busy timeout; try again",
        ),
        (_, 1) if text.contains("no such table: postrider_") || text.contains("no such column") => (
            ErrorKind::NotMigrated,
            "the Postrider tables are missing or too old; run `postrider migrate` or call Outbox::migrated",
        ),
        (_, 3 | 23) => (ErrorKind::Denied, "access to the database file was denied"),
        (_, 8) => (ErrorKind::Denied, "the database is read-only"),
        (_, 10) => (ErrorKind::Unreachable, "can't read or write the database file"),
        (_, 11 | 26) => (ErrorKind::Corrupt, "the file is damaged, or is not an SQLite database"),
        (_, 13) => (ErrorKind::Database, "the disk is full"),
        (_, 14) => (ErrorKind::Unreachable, "can't open the database file; check the path and its folder"),
        (_, 18) => (ErrorKind::Invalid, "a value is too large for SQLite"),
        (_, 19) => return of_constraint(text),
        _ => return (ErrorKind::Database, format!("the database failed with code {code}")),
    };
    (kind, message.to_owned())
}

/// SQLite names a constraint or quotes our own triggers; neither shows what was to be written.
fn of_constraint(text: &str) -> (ErrorKind, String) {
    if text.contains("postrider_event.event_id") && text.contains("UNIQUE")
        || text.contains("already in the log")
    {
        return (
            ErrorKind::AlreadyRecorded,
            "an event with this id already exists; nothing was written".to_owned(),
        );
    }
    if let Some(sentence) = text.strip_prefix("postrider: ") {
        return (ErrorKind::Invalid, sentence.to_owned());
    }
    let meant = CONSTRAINTS.iter().find(|(name, _)| text.contains(name)).map(|(_, sentence)| *sentence);
    (ErrorKind::Invalid, meant.unwrap_or("a value has the wrong type or violates a constraint").to_owned())
}
