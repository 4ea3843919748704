//! What connects the application to the database, to Postrider, to Kafka, to the exchange and to HTTP.

pub mod api;
pub mod bus;
pub mod envelope;
pub mod events;
pub mod exchange;
pub mod push;
pub mod settings;
pub mod steps;
pub mod store;
pub mod workers;

use crate::domain::Timestamp;

/// The time of this machine.
pub fn now() -> Timestamp {
    (postrider::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000) as Timestamp
}
