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

/// Whose event it is: a customer whose address exists, so that a mail is due.
pub(crate) const CUSTOMER: &str = "customer-3";

impl Fault {
    /// Whether it is to happen at this change, and it is this fault.
    pub(crate) fn strikes(self, wanted: Option<Self>, change: &Change) -> bool {
        wanted == Some(self) && change.customer == CUSTOMER && change.number == 6
    }
}
