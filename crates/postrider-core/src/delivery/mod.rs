//! Delivery: sinks, outcomes, and the rows of events that were not simply delivered.

mod change;
pub(crate) mod excerpt;
mod held_keys;
mod open_delivery;
mod outcome;
pub(crate) mod past_attempt;
mod settlement;
mod sink;
mod status_class;

pub use change::{DeliveryChange, DeliveryFailure, DeliveryState, Due, DueBatch, EventRef, ResolveDead};
pub use excerpt::Excerpt;
pub use held_keys::HeldKeys;
pub use open_delivery::{OpenDelivery, OpenDeliveryQuery};
pub use outcome::{Outcome, Unavailable};
pub use past_attempt::{PastAttempt, PastAttempts};
pub use settlement::{Settlement, UNWRITABLE};
pub use sink::{Attempt, Delivery, Report, Requests, Sink};
pub use status_class::StatusClass;
