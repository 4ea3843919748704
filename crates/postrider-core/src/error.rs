//! The error type: its kind, the operation that failed, and the cause.

use std::error::Error as StdError;
use std::fmt;

/// A result of this crate family.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in a form that a program can act on.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::{ErrorKind, Result, Uuid};
///
/// /// A request that comes again finds its event in the log: that is no failure.
/// fn once(recorded: Result<Uuid>) -> Result<()> {
///     match recorded {
///         Err(error) if error.kind() == ErrorKind::AlreadyRecorded => Ok(()),
///         other => other.map(drop),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Invalid input or configuration: a name that is empty or too long, a NUL character, a payload above the
    /// limit. Nothing was written.
    Invalid,
    /// The event id is already in the log. Nothing was written.
    AlreadyRecorded,
    /// The schema is missing or too old for this program: run the migration.
    NotMigrated,
    /// The schema is newer than this program: upgrade the program.
    SchemaTooNew,
    /// The database rejected the user or the password, or a privilege is missing.
    Denied,
    /// The database is unreachable, or the connection broke.
    Unreachable,
    /// No connection became free in the pool in time.
    PoolExhausted,
    /// A conflict with another transaction (a lock, a deadlock, a serialization failure): retry.
    Conflict,
    /// The lease is no longer held, or the database went back in time (failover, restore): claim again.
    LeaseLost,
    /// There is no subscription, event or delivery with that name or id.
    NotFound,
    /// The awaited event is dead or discarded; the message says why. It will not be delivered without an operator.
    NotDelivered,
    /// A wait timed out. What it waited for may still happen.
    TimedOut,
    /// The request would lose or repeat something; the message says what. Nothing was changed.
    Refused,
    /// The log contradicts itself; an operator must check it.
    Corrupt,
    /// A task ended unexpectedly. This is a bug in Postrider.
    Internal,
    /// Any other error of the database.
    Database,
}

/// An error: its kind, the operation that failed, and a message.
///
/// It never contains a payload or a secret.
///
/// ```
/// # extern crate postrider_core as postrider;
/// use postrider::{Error, ErrorKind};
///
/// /// The HTTP status for an error of `outbox.record`.
/// fn status(error: &Error) -> u16 {
///     match error.kind() {
///         ErrorKind::Invalid => 422,
///         _ if error.is_retryable() => 503,
///         _ => 500,
///     }
/// }
///
/// let busy = Error::new(ErrorKind::PoolExhausted, "record", "no connection became free within 10 s");
/// assert_eq!((status(&busy), busy.message()), (503, "no connection became free within 10 s"));
/// ```
pub struct Error {
    kind: ErrorKind,
    op: &'static str,
    message: String,
    hint: Option<Hint>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What to do about an error, and its message without that.
struct Hint {
    problem: String,
    text: String,
}

impl Error {
    /// An error of `kind` during `op`, with a message for people.
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<String>) -> Self {
        Self { kind, op, message: message.into(), hint: None, source: None }
    }

    /// Adds the error that caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds what to do about it. The message ends with it, and [`hint`](Error::hint) returns it alone.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        let (problem, text) = (self.message, hint.into());
        self.message = format!("{problem}; to fix it: {text}");
        self.hint = Some(Hint { problem, text });
        self
    }

    /// Adds the address of the database, which must not contain a password.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{}; the address is {place}", self.message);
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operation that failed: `record`, `claim`, `read`, `settle`, `migrate`, …
    pub fn operation(&self) -> &'static str {
        self.op
    }

    /// The message, without the operation.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The message without the [hint](Error::hint).
    pub fn problem(&self) -> &str {
        self.hint.as_ref().map_or(&self.message, |hint| &hint.problem)
    }

    /// What to do about it, where the database says so.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_ref().map(|hint| hint.text.as_str())
    }

    /// Whether the same call may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Unreachable | ErrorKind::PoolExhausted | ErrorKind::Conflict | ErrorKind::LeaseLost
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("op", &self.op)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_operation_and_keeps_its_source() {
        let error = Error::new(ErrorKind::Unreachable, "claim", "the database does not answer")
            .caused_by(std::io::Error::other("refused"));
        assert_eq!(error.to_string(), "claim: the database does not answer");
        assert_eq!((error.operation(), error.message()), ("claim", "the database does not answer"));
        assert!(error.is_retryable());
        assert_eq!(StdError::source(&error).map(ToString::to_string).as_deref(), Some("refused"));
    }

    #[test]
    fn a_hint_is_part_of_the_message_and_stands_alone() {
        let error =
            Error::new(ErrorKind::Corrupt, "open", "the sequence is behind the log").with_hint("run setval");
        let error = error.at("host db");
        assert_eq!(
            error.message(),
            "the sequence is behind the log; to fix it: run setval; the address is host db"
        );
        assert_eq!((error.problem(), error.hint()), ("the sequence is behind the log", Some("run setval")));
        let bare = Error::new(ErrorKind::Corrupt, "open", "damaged");
        assert_eq!((bare.problem(), bare.hint()), ("damaged", None));
    }

    #[test]
    fn an_error_with_a_place_keeps_all_else() {
        let error = Error::new(ErrorKind::Unreachable, "claim", "the database does not answer")
            .caused_by(std::io::Error::other("refused"))
            .at("host db, port 5432");
        assert_eq!(
            error.to_string(),
            "claim: the database does not answer; the address is host db, port 5432"
        );
        assert_eq!((error.operation(), error.kind()), ("claim", ErrorKind::Unreachable));
        assert_eq!(StdError::source(&error).map(ToString::to_string).as_deref(), Some("refused"));
    }

    #[test]
    fn an_invalid_event_is_not_worth_a_retry() {
        assert!(!Error::new(ErrorKind::Invalid, "record", "stream is empty").is_retryable());
    }
}
