//! Trials of the engine: real processes that are killed, frozen, stopped and cut off, on real databases.
//!
//! The binary of this crate, `relay_process`, is an application with a relay. It has two subscriptions: `plain`, whose handler
//! leaves a row for each call, as an effect on the outside world would; and `effects`, whose handler does its change and
//! records a follow-up in its transaction. A relay that is sent to Kafka has the subscription `kafka` and no other. The tests start
//! relays, let eight writers change accounts meanwhile, do to the relays what the world does to processes, and judge by what the
//! relays left in the database.
//!
//! Nothing here knows how the engine does it: only what it promised.

pub mod dice;
pub mod endpoint;
pub mod gate;
pub mod log;
pub mod proxy;
pub mod relay_options;
pub mod relay_process;
pub mod relay_program;
pub mod test_store;
pub mod test_store_mysql;
pub mod test_store_postgres;
pub mod test_store_sqlite;
pub mod topic;
pub mod trial;
pub mod trial_report;
pub mod writers;

use postrider::Event;
use serde::{Deserialize, Serialize};

/// The subscription whose handler acts on the outside world.
pub const PLAIN: &str = "plain";
/// The subscription whose handler acts in its transaction.
pub const EFFECTS: &str = "effects";
/// The subscription that goes to Kafka, of relays that are sent there: they have no other.
pub const KAFKA: &str = "kafka";

/// An account changed.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(aggregate = "Account", id = account, stream = "moves")]
pub struct Moved {
    /// Which account.
    pub account: String,
    /// The account's version afterwards: 1, 2, 3, …
    pub version: i64,
    /// Whether it ends the process that handles it.
    pub poison: bool,
}

/// What follows from a change.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(aggregate = "Account", id = account, stream = "notes")]
pub struct Noted {
    /// Which account.
    pub account: String,
    /// Which version of it.
    pub version: i64,
}
