//! What a database error means, in one sentence that shows neither payload nor secret.

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::session;
use sqlx_core::error::Error as SqlxError;
use sqlx_postgres::{PgConnectOptions, PgDatabaseError, PgPool};

use crate::session::Session;

const NO_TRIGGER: &str = "the trigger before_record did not run, so the event has no number; session_replication_role must be \
     origin, and the trigger must be enabled: alter table event enable trigger user";

/// Whether the server failed while it made or sent an answer, by what is in a row: a character that UTF-8 lacks, a text too large.
pub(crate) fn is_unsendable(error: &Error) -> bool {
    let code = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let code = code.strip_prefix("SQLSTATE ").unwrap_or_default();
    code.starts_with("22") || matches!(code, "54000" | "53200")
}

/// Turns an error of the driver into ours. Details of a database error (which may quote values) stay out.
pub(crate) fn from_sqlx(op: &'static str, error: SqlxError) -> Error {
    // The driver's error shows, in its debug form, the row that failed: only its code goes along.
    let source = match &error {
        SqlxError::Database(database) => Some(format!("SQLSTATE {}", database.code().unwrap_or_default())),
        SqlxError::Io(io) => Some(io.to_string()),
        _ => None,
    };
    let (kind, message) = meaning(&error);
    let hint = hint(&error, &message);
    let error = Error::new(kind, op, message);
    let error = match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    match source {
        Some(source) => error.caused_by(source),
        None => error,
    }
}

fn meaning(error: &SqlxError) -> (ErrorKind, String) {
    match error {
        SqlxError::Database(database) => {
            let code = database.code().unwrap_or_default();
            let column = database.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::column);
            match (&*code, column, database.table()) {
                ("23502", Some("id" | "tx_id" | "recorded_at"), Some("event")) => {
                    (ErrorKind::Invalid, NO_TRIGGER.to_owned())
                }
                _ => explain(&code, database.message(), database.constraint()),
            }
        }
        other => session::transport_error(other)
            .unwrap_or_else(|| (ErrorKind::Database, "unexpected answer from the database".to_owned())),
    }
}

/// What to say to a handler whose database is away: the connection broke or there was none, no connection became free in time, or the server
/// accepts no more of them or is ending. Nothing for any other error.
#[doc(hidden)]
pub fn away(error: &SqlxError) -> Option<String> {
    let (kind, message) = meaning(error);
    matches!(kind, ErrorKind::Unreachable | ErrorKind::PoolExhausted).then_some(message)
}

/// What our own functions say, if the database says it in their name.
fn ours(message: &str) -> Option<&str> {
    message.strip_prefix("postrider: ")
}

/// What our own functions say about what to do, where the error has their message.
fn hint(error: &SqlxError, message: &str) -> Option<String> {
    let SqlxError::Database(database) = error else { return None };
    let hint = database.try_downcast_ref::<PgDatabaseError>()?.hint()?;
    (ours(database.message()) == Some(message)).then(|| hint.trim_end_matches('.').to_owned())
}

fn explain(code: &str, message: &str, constraint: Option<&str>) -> (ErrorKind, String) {
    let ours = ours(message).map(str::to_owned);
    let said = |what: &str| format!("{what}: {message}");
    if let Some(denied) = denied(code, said) {
        return denied;
    }
    match code {
        "23505" if constraint == Some("event_id_is_unique") => {
            (ErrorKind::AlreadyRecorded, "an event with this id already exists".to_owned())
        }
        "23514" | "23502" => (
            ErrorKind::Invalid,
            format!("the row violates the constraint {}", constraint.unwrap_or("not null")),
        ),
        "40001" | "40P01" | "55P03" => {
            let what = ours.map(|what| format!("{what}; try again"));
            (
                ErrorKind::Conflict,
                what.unwrap_or_else(|| said("conflict with another transaction; try again")),
            )
        }
        "25P02" => {
            (ErrorKind::Database, "an earlier statement of this transaction failed; roll it back".to_owned())
        }
        "26000" | "42P05" => (
            ErrorKind::Unreachable,
            said(
                "a pooler in transaction mode is between this program and the database; set store.pooler to transaction",
            ),
        ),
        "53300" => (ErrorKind::Unreachable, said("the database accepts no more connections")),
        "57014" => (ErrorKind::Conflict, said("the statement was cancelled")),
        "XX001" => (ErrorKind::Corrupt, ours.unwrap_or_else(|| said("the database is damaged"))),
        "23001" | "22P05" => (ErrorKind::Invalid, ours.unwrap_or_else(|| said("the database rejected it"))),
        _ if code.starts_with("57P") || code.starts_with("08") => {
            (ErrorKind::Unreachable, said("the database closed the connection"))
        }
        // What follows a colon quotes the value.
        _ if code.starts_with("22") => {
            let what = || {
                format!(
                    "the database can't store this value: {}",
                    message.split(':').next().unwrap_or_default()
                )
            };
            (ErrorKind::Invalid, ours.unwrap_or_else(what))
        }
        _ => (
            ErrorKind::Database,
            ours.unwrap_or_else(|| format!("the database answered with error {code}: {message}")),
        ),
    }
}

/// What this role may not do, or what is not there.
fn denied(code: &str, said: impl Fn(&str) -> String) -> Option<(ErrorKind, String)> {
    Some(match code {
        "3F000" | "42P01" | "42883" | "42703" => (
            ErrorKind::NotMigrated,
            said("the schema is missing or too old; run the migration (`postrider migrate`)"),
        ),
        "28P01" | "28000" => {
            (ErrorKind::Denied, said("the database refused the login; check user and password"))
        }
        "3D000" => (ErrorKind::Denied, said("there is no such database; check the URL")),
        "42501" => {
            (ErrorKind::Denied, said("a privilege is missing; grant it with grant_record or grant_relay"))
        }
        "25006" => (
            ErrorKind::Denied,
            said(
                "the transaction is read-only; connect to the primary, and set default_transaction_read_only to off or begin \
                 with `read write`",
            ),
        ),
        _ => return None,
    })
}

/// A connection of the pool.
pub(crate) async fn acquire(pool: &PgPool, op: &'static str) -> Result<Session> {
    session::acquire(pool, place, during(op), op).await
}

/// Where an address leads: host, port and database. Neither user nor password.
pub fn place(options: &PgConnectOptions) -> String {
    // As the server does where none is named.
    let database = options.get_database().unwrap_or(options.get_username());
    let (host, port) = (options.get_host(), options.get_port());
    match options.get_socket() {
        Some(socket) => format!("socket {}, port {port}, database {database}", socket.display()),
        None => format!("host {host}, port {port}, database {database}"),
    }
}

/// Shorthand for `map_err`.
pub(crate) fn during(op: &'static str) -> impl Fn(SqlxError) -> Error {
    move |error| from_sqlx(op, error)
}
