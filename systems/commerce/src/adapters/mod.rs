//! What connects the shop to PostgreSQL, Kafka, HTTP and its cache.

pub mod avro;
pub mod cache;
pub mod consumers;
pub mod counts;
pub mod http;
pub mod mapping;
pub mod payload;
pub mod postgres;
