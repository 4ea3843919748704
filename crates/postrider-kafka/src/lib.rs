//! Postrider to Kafka.
//!
//! A batch is produced at once, by an idempotent producer that waits for all in-sync replicas, and confirmed in order. The
//! first failure of a key stops that key: nothing later of it is in its topic before it. Topics are never created.
//!
//! The feature `tls` adds TLS and SCRAM, by the OpenSSL of the machine; `tls-vendored` brings an OpenSSL along. Without them
//! there is plain text, with a password (PLAIN) or without.

mod complaint;
mod config;
mod producer;
mod record;
mod remedy;
mod security;
mod sink;
mod topic;

pub use config::KafkaBuilder;
pub use record::Format;
pub use remedy::Remedy;
pub use security::Mechanism;
pub use sink::Kafka;
