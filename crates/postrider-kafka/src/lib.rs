//! Postrider to Kafka, and from it.
//!
//! **To**: [`Kafka`] is a sink. A batch is produced at once, by an idempotent producer that waits for all in-sync replicas, and
//! confirmed in order. The first failure of a key stops that key: nothing later of it is in its topic before it. [`KafkaBus`]
//! publishes without an outbox. Topics are never created.
//!
//! **From**: a [`Consumer`] runs the handlers of a subscription behind topics. Records are handled in the order of their keys
//! and committed when they are done; what fails for good goes to a topic of [`DeadLetters`], from where it can be put back.
//!
//! The way of a record is in `worker`; what follows from an outcome in `round`; who holds which partition in `group`.
//!
//! The feature `tls` adds TLS and SCRAM, by the OpenSSL of the machine; `tls-vendored` brings an OpenSSL along. Without them
//! there is plain text, with a password (PLAIN) or without.

mod arrived;
mod bus;
mod client_error;
mod config;
mod consumer;
mod dead_letter;
mod dead_letters;
mod error_class;
mod giving_up;
mod group;
mod locked_properties;
mod offsets;
mod partition;
mod partition_batch;
mod producer;
mod receipt_producer;
mod record;
mod running;
mod security;
mod sequence;
mod sink;
mod start;
mod tally;
mod topic;
mod topic_metadata;
mod unique;
mod worker;

pub use bus::KafkaBus;
pub use config::KafkaBuilder;
pub use consumer::{Consumer, Offsets};
pub use dead_letters::{DeadLetter, DeadLetters};
pub use error_class::ErrorClass;
pub use record::Format;
pub use running::RunningConsumer;
pub use security::Mechanism;
pub use sequence::Gap;
pub use sink::Kafka;
pub use tally::CONSUMER_METRICS;
pub use topic_metadata::TopicHealth;
pub use unique::{Keep, Unique, unique};
