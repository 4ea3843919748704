//! What an error of `sqlx` means to a handler.

use postrider_relay::Failure;
use sqlx_core::Error;

/// The failure of a handler with this error; `away` is what the store says of a database that can't be used.
pub(crate) fn of_sqlx(error: Error, away: Option<String>) -> Failure {
    match away {
        Some(reason) => Failure::unavailable(reason),
        None => Failure::from(error),
    }
}
