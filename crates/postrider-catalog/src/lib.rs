//! The events of a system as data: which exist, who publishes and handles them, what is in them, and whether a change breaks
//! anyone.

mod cycles;
mod model;
mod names;
mod problems;
pub mod render;
mod routes;
mod topics;

pub use model::{CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, SubscriberEntry};
pub use names::{Convention, Conventions, NameRefusal, UnknownConvention};
pub use problems::{Problem, Severity, problems};
