//! Commerce: a shop whose events go from PostgreSQL to Kafka, in one order, and to four consumers.
//!
//! [`domain`] and [`application`] know neither Kafka nor JSON nor a database; [`adapters`] connect them, and [`processes`] are what
//! the program `commerce` starts.

pub mod adapters;
pub mod application;
pub mod domain;
pub mod processes;
