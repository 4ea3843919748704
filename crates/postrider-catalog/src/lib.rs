//! The events of a system as data: which exist, who publishes and handles them, what is in them, and whether a change breaks
//! anyone.

mod model;
mod names;

pub use model::{CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, SubscriberEntry};
pub use names::{Convention, Conventions, NameRefusal, UnknownConvention};
