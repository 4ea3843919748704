//! Handlers that misbehave on purpose: how developers see that the summary tells.

use clap::ValueEnum;

use super::shop::Change;

/// The promise that a handler breaks, for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// A mail is said to be sent and is not.
    Loss,
    /// A mail goes out after the one that follows it.
    Order,
    /// The books get an entry twice.
    Effects,
}

impl Fault {
    /// Whether it is to happen at this change, and it is this fault.
    pub(crate) fn strikes(self, wanted: Option<Self>, change: &Change) -> bool {
        wanted == Some(self) && change.customer == "customer-3" && change.number == 6
    }
}
