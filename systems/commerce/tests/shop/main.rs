//! The shop on a real PostgreSQL and a real Kafka: what it publishes, how the relay and the consumers fail, and what they never lose.

mod caching;
mod cluster;
mod consumer_failures;
mod consumers;
mod dead_letters;
mod envelope;
mod feed;
mod figures;
mod inside;
mod logs;
mod outage;
mod publishing;
mod relay;
mod requests;
mod settings;
mod topic;
mod tuning;
mod world;
