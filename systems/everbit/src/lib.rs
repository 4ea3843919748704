//! everbit: live trading with a queue in PostgreSQL. Signals become orders at an exchange, each placed once.
//!
//! `domain` and `application` know ports of their own alone. `adapters` connects them to the database, to Postrider, to the exchange
//! and to people; `stubs` are the exchange and the push service on loopback; `story` acts it all out.

pub mod adapters;
pub mod application;
pub mod domain;
pub mod story;
pub mod stubs;
