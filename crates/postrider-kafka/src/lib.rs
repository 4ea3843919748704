//! Postrider to Kafka.
//!
//! A batch is produced at once, by an idempotent producer that waits for all in-sync replicas, and confirmed in order. The
//! first failure of a key stops that key: nothing later of it is in its topic before it. Topics are never created.

mod config;
mod producer;
mod record;
mod remedy;
mod sink;
mod topic;

pub use config::KafkaBuilder;
pub use record::Format;
pub use remedy::Remedy;
pub use sink::Kafka;
