//! The whole system: real relays and consumers as processes, MariaDB and Kafka.

#[path = "../support/mod.rs"]
mod support;

mod alerts;
mod consumers;
mod giving_up;
mod outage;
mod pace;
mod refusals;
mod retention;
mod schema;
mod settings;
mod topics;
