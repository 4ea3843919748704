//! The ledger: deposits, withdrawals, transfers and reversals, each one database transaction with its events.
//!
//! [`domain`] has the rules of bookkeeping, [`application`] the services and their ports; both know nothing of databases and brokers.
//! [`adapters`] are MariaDB, Postrider, Kafka and HTTP. [`story`] acts it all out.

pub mod adapters;
pub mod application;
pub mod domain;
pub mod story;
