//! MariaDB, Postrider, Kafka and HTTP behind the ports.

pub mod api;
pub mod consumers;
pub mod figures;
pub mod inbox;
pub mod outbox;
pub mod persistence;
pub mod processes;
pub mod schema;
pub mod wire;
