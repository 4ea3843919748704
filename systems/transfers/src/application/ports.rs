//! What the application needs of the outside.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::future::Future;

use uuid::Uuid;

use crate::domain::risk::Observed;
use crate::domain::{Account, RiskLog, Transaction, TransferCompleteEvent};

/// Something outside failed: the database, most likely.
pub type Fault = Box<dyn Error + Send + Sync>;

/// Where a command comes from. It goes along with the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The trace that the command is part of, as a W3C `traceparent`.
    pub trace: Option<String>,
    /// What else is to be known of it, by name: the channel, the device.
    pub attributes: BTreeMap<String, String>,
}

/// Begins units of work.
pub trait Units: Send + Sync {
    /// A unit of work.
    type Unit: Unit;

    /// Begins one.
    fn begin(&self) -> impl Future<Output = Result<Self::Unit, Fault>> + Send;
}

/// A unit of work: all of it happens at [`commit`](Self::commit), or nothing. Dropped, it has not happened.
pub trait Unit: Send {
    /// The accounts of these numbers that there are, locked until the unit ends.
    fn lock(&mut self, ids: [&str; 2]) -> impl Future<Output = Result<Vec<Account>, Fault>> + Send;

    /// The transfer with this id, and the id of its event.
    fn find(&mut self, id: Uuid) -> impl Future<Output = Result<Option<(Transaction, Uuid)>, Fault>> + Send;

    /// Writes the two accounts as they are now.
    fn save_accounts(&mut self, accounts: [&Account; 2]) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Writes the transfer with the id of its event, unless another one has its id; whether it did.
    fn save_transaction(
        &mut self,
        transaction: &Transaction,
        event: Uuid,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Publishes the event, if and only if the unit happens. Its id.
    fn publish(
        &mut self,
        event: &TransferCompleteEvent,
        origin: &Origin,
    ) -> impl Future<Output = Result<Uuid, Fault>> + Send;

    /// Makes all of it happen.
    fn commit(self) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// The risk logs, one for each event.
pub trait RiskLogs: Send + Sync {
    /// Those of these events that have one.
    fn known(&self, events: &[Uuid]) -> impl Future<Output = Result<Vec<Uuid>, Fault>> + Send;

    /// For each of these events, how many transfers of its sender the logs have within [`WINDOW`](crate::domain::risk::WINDOW) up to
    /// its own time. Nobody has to count further than [`FAST`](crate::domain::risk::FAST).
    fn recent(&self, events: &[Observed]) -> impl Future<Output = Result<HashMap<Uuid, u32>, Fault>> + Send;

    /// Keeps logs, all or none; skips events that have one already. The events that were new.
    fn keep(&self, logs: &[RiskLog]) -> impl Future<Output = Result<Vec<Uuid>, Fault>> + Send;
}
