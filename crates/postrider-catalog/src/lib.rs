//! The events of a system as data: which exist, who publishes and handles them, what is in them, and whether a change breaks
//! anyone.
//!
//! A [`Catalog`] is built from the types and the subscriptions of an application, and written to a file by one call. A [`Lock`] keeps
//! every schema that events were recorded with. [`Catalog::check`] compares the two as serde would read them, in both directions, and
//! gives a counterexample for each change that breaks a reader. [`check_log`] reads the events that are really there.
//!
//! Nothing of this runs when events are recorded or delivered.

mod catalog;
mod check_log;
mod cycles;
mod format;
mod gate;
mod lock;
mod model;
mod names;
mod payload;
mod problems;
mod quiet;
mod reader;
pub mod render;
mod report;
mod routes;
mod schema;
mod seen;
mod topics;

pub use catalog::Catalog;
pub use check_log::{LogCheck, LogReport, Unreadable, check_log};
pub use gate::check;
pub use lock::{LOCK_FORMAT, Lock, schema_hash};
pub use model::{CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, SubscriberEntry};
pub use names::{Convention, Conventions, NameRefusal, UnknownConvention};
pub use problems::{Problem, Severity, problems};
pub use report::{Finding, ReaderVersion, Report};
pub use seen::{LogContents, Seen};

use postrider_core::{Error, ErrorKind};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, "catalog", message.into())
}
