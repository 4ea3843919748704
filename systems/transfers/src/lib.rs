//! Money transfers whose events reach fraud detection through Kafka.
//!
//! `domain` and `application` know ports of their own alone. `adapters` connect them to PostgreSQL, Postrider, Kafka and HTTP.
//! `processes` are what the program runs, `acts` what the story and the measured load act out.

pub mod acts;
pub mod adapters;
pub mod application;
pub mod domain;
pub mod processes;
