//! What everbit trades: signals, intents, attempts, and the messages that say what happened. It knows no database and no network.

pub mod about;
pub mod messages;
pub mod order;
pub mod streams;

pub use about::About;
pub use messages::{
    BacktestFinished, CreateOrderAttempt, KillSwitchChanged, Message, OrderAccepted, OrderFilled,
    RunBacktest, StrayOrderSent,
};
pub use order::{Attempt, Intent, Placed, Reason, Reply, Side, Signal, Status, identifier, intent_id};

/// A point in time: milliseconds since 1970, UTC.
pub type Timestamp = i64;
