//! What connects the application to PostgreSQL, Postrider, Kafka and HTTP.

pub mod http;
pub mod kafka;
pub mod outbox;
pub mod postgres;
pub mod risk_logs;
pub mod steps;
