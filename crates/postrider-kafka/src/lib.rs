//! Postrider to Kafka, and from it.
//!
//! **To**: [`Kafka`] is a sink. A batch is produced at once, by an idempotent producer that waits for all in-sync replicas, and
//! confirmed in order. The first failure of a key stops that key: no later event of the key overtakes it. [`KafkaBus`] publishes
//! without an outbox. Topics are never created. A record carries the CloudEvents attributes that say something;
//! [`KafkaBuilder::attributes`] adds others.
//!
//! **From**: a [`Consumer`] runs the handlers of a subscription on topics. Records of a key are handled in their order, and
//! committed when they are done. A record that fails for good goes to a topic of [`DeadLetters`], which can requeue it.
//!
//! The folders follow an event: `produce` writes it, `consume` reads it, `dead_letter` keeps what was given up, `client` is librdkafka.
//!
//! The feature `tls` adds TLS and SCRAM, by the OpenSSL of the machine; `tls-vendored` brings an OpenSSL along. Without them
//! there is plain text, with a password (PLAIN) or without.

mod client;
mod consume;
mod dead_letter;
mod produce;

pub use client::config::KafkaBuilder;
pub use client::error_class::ErrorClass;
pub use client::security::Mechanism;
pub use client::topic_metadata::TopicHealth;
pub use consume::consumer::{Consumer, Offsets};
pub use consume::metrics::CONSUMER_METRICS;
pub use consume::running::RunningConsumer;
pub use consume::sequence::Gap;
pub use consume::unique::{Keep, Unique, unique};
pub use dead_letter::dead_letters::DeadLetters;
pub use dead_letter::letter::DeadLetter;
pub use produce::bus::KafkaBus;
pub use produce::record::Format;
pub use produce::sink::Kafka;
