//! What the ledger tells others: one event per leg of a transaction.

use super::transaction::Transaction;
use super::{AccountId, TransactionId};

/// An event of the ledger, about one account.
pub trait LedgerEvent: Send + Sync {
    /// `LEDGER_POSTED` or `LEDGER_REVERSED`.
    fn event_type(&self) -> &'static str;
    /// The transaction that it is about.
    fn transaction(&self) -> &Transaction;
    /// The account whose leg this is.
    fn account(&self) -> AccountId;
}

/// An account was posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPostedEvent {
    /// By this transaction.
    pub transaction: Transaction,
    /// Which one.
    pub account: AccountId,
}

impl LedgerEvent for LedgerPostedEvent {
    fn event_type(&self) -> &'static str {
        "LEDGER_POSTED"
    }

    fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    fn account(&self) -> AccountId {
        self.account
    }
}

/// A posting to an account was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerReversedEvent {
    /// By this transaction.
    pub transaction: Transaction,
    /// What it takes back.
    pub reverses: TransactionId,
    /// Which account.
    pub account: AccountId,
}

impl LedgerEvent for LedgerReversedEvent {
    fn event_type(&self) -> &'static str {
        "LEDGER_REVERSED"
    }

    fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    fn account(&self) -> AccountId {
        self.account
    }
}

/// The events of a transaction, one per leg, by account.
pub fn events_of(transaction: &Transaction) -> Vec<Box<dyn LedgerEvent>> {
    let event = |account: AccountId| -> Box<dyn LedgerEvent> {
        let transaction = transaction.clone();
        match transaction.reverses {
            Some(reverses) => Box::new(LedgerReversedEvent { transaction, reverses, account }),
            None => Box::new(LedgerPostedEvent { transaction, account }),
        }
    };
    transaction.legs().into_iter().map(|leg| event(leg.account)).collect()
}
