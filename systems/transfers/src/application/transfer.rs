//! The transaction service: a transfer and its event are one unit of work.

use std::fmt;

use uuid::Uuid;

use super::ports::{Fault, Origin, Unit, Units};
use crate::domain::{Account, Refusal, Transaction, TransferCompleteEvent};

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferCommand {
    /// The id of the transfer, chosen by the client. Whoever has no answer asks again with the same one.
    pub id: Uuid,
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
    /// Something outside failed. Whether the transfer happened is not known: the answer to the commit may be what was lost.
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
    /// Whether an earlier command had made it.
    pub repeated: bool,
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

    /// Makes a transfer at a time in milliseconds since 1970: both balances, the transfer and its event, or nothing. A command that
    /// comes again, with the same id and the same content, finds the transfer that is there.
    pub async fn transfer(&self, command: TransferCommand, now: i64) -> Result<Transferred, TransferError> {
        let TransferCommand { id, from, to, amount, memo, origin } = command;
        if from == to {
            return Err(Refusal::SameAccount.into());
        }
        let mut unit = self.units.begin().await?;
        let mut accounts = unit.lock([&from, &to]).await?;
        // Under the locks, so that of two commands with one id the second finds what the first one did.
        if let Some((transaction, event_id)) = unit.find(id).await? {
            if !transaction.is_repeated_by(&from, &to, amount, &memo) {
                return Err(Refusal::IdTaken(id).into());
            }
            return Ok(Transferred { transaction, event_id, repeated: true });
        }
        let mut sender = take(&mut accounts, from)?;
        let mut receiver = take(&mut accounts, to)?;
        let transaction = Transaction::between(id, &mut sender, &mut receiver, amount, memo, now)?;
        unit.save_accounts([&sender, &receiver]).await?;
        // Recorded under the lock of the sender's account, so that the events of a sender have the order of its transfers.
        let event_id = unit.publish(&TransferCompleteEvent::from(&transaction), &origin).await?;
        if !unit.save_transaction(&transaction, event_id).await? {
            // Between other accounts, at the same time.
            return Err(Refusal::IdTaken(id).into());
        }
        unit.commit().await?;
        Ok(Transferred { transaction, event_id, repeated: false })
    }
}

fn take(accounts: &mut Vec<Account>, id: String) -> Result<Account, Refusal> {
    let found = accounts.iter().position(|account| account.id == id);
    found.map(|index| accounts.swap_remove(index)).ok_or(Refusal::NoSuchAccount(id))
}
