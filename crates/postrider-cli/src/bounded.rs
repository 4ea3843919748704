//! Timeouts for operator commands.

use std::time::Duration;

use postrider::{Error, ErrorKind};

use crate::Failure;

/// How long a database may take to be opened.
pub(crate) const OPEN: Duration = Duration::from_secs(10);
/// How long a database may take to answer what costs it little. With [`OPEN`] it makes the half minute that the documents name.
pub(crate) const ANSWER: Duration = Duration::from_secs(20);
fn silent(op: &'static str, limit: Duration) -> Error {
    let message = format!(
        "the database did not answer within {limit:?}; check that it is running and reachable from here"
    );
    Error::new(ErrorKind::Unreachable, op, message)
}

/// What is done with a database that may not answer while it is opened.
pub(crate) async fn opened<T>(
    limit: Duration,
    place: impl FnOnce() -> String,
    opening: impl Future<Output = std::result::Result<T, Failure>>,
) -> std::result::Result<T, Failure> {
    let opened = tokio::time::timeout(limit, opening).await;
    opened.unwrap_or_else(|_| Err(silent("connect", limit).at(place()).into()))
}
