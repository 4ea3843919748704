//! The transaction service: a transfer and its event are one unit of work.

use std::fmt;

use uuid::Uuid;

use super::ports::{Fault, Origin, Unit, Units};
use crate::domain::{Account, Refusal, Transaction, TransferCompleteEvent};

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferCommand {
    /// The sender's account.
    pub from: String,
    /// The receiver's account.
    pub to: String,
    /// In won.
    pub amount: i64,
    /// What the sender writes to the receiver.
    pub memo: String,
    /// Where the command comes from.
    pub origin: Origin,
}

/// Why a transfer did not happen.
#[derive(Debug)]
pub enum TransferError {
    /// It is against the rules.
    Refused(Refusal),
    /// Something outside failed.
    Failed(Fault),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Failed(fault) => fault.fmt(f),
        }
    }
}

impl From<Refusal> for TransferError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for TransferError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

/// A transfer that has happened, and the event that tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transferred {
    /// The transfer.
    pub transaction: Transaction,
    /// The id of its event.
    pub event_id: Uuid,
}

/// Makes transfers.
#[derive(Debug, Clone)]
pub struct TransferService<U> {
    units: U,
}

impl<U: Units> TransferService<U> {
    /// A service on these units of work.
    pub fn new(units: U) -> Self {
        Self { units }
    }

    /// Makes a transfer at a time in milliseconds since 1970: both balances, the transfer and its event, or nothing.
    pub async fn transfer(&self, command: TransferCommand, now: i64) -> Result<Transferred, TransferError> {
        let TransferCommand { from, to, amount, memo, origin } = command;
        if from == to {
            return Err(Refusal::SameAccount.into());
        }
        let mut unit = self.units.begin().await?;
        let mut accounts = unit.lock([&from, &to]).await?;
        let mut sender = take(&mut accounts, from)?;
        let mut receiver = take(&mut accounts, to)?;
        let transaction = Transaction::between(&mut sender, &mut receiver, amount, memo, now)?;
        unit.save_accounts([&sender, &receiver]).await?;
        unit.save_transaction(&transaction).await?;
        // Recorded under the lock of the sender's account, so that the events of a sender have the order of its transfers.
        let event_id = unit.publish(&TransferCompleteEvent::from(&transaction), &origin).await?;
        unit.commit().await?;
        Ok(Transferred { transaction, event_id })
    }
}

fn take(accounts: &mut Vec<Account>, id: String) -> Result<Account, Refusal> {
    let found = accounts.iter().position(|account| account.id == id);
    found.map(|index| accounts.swap_remove(index)).ok_or(Refusal::NoSuchAccount(id))
}
