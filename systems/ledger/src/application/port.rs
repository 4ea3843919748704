//! What the services need of the outside.

use std::future::Future;

use crate::application::problem::Answer;
use crate::domain::balance::Balance;
use crate::domain::event::LedgerEvent;
use crate::domain::transaction::Transaction;
use crate::domain::{AccountId, TransactionId};

/// Where the ledger is kept.
pub trait LedgerPort: Send + Sync {
    /// One database transaction.
    type Unit: UnitOfWork;

    /// Begins one.
    fn begin(&self) -> impl Future<Output = Answer<Self::Unit>> + Send;
}

/// One database transaction. All of it happens at [`commit`](Self::commit), or nothing: dropped, it is rolled back.
pub trait UnitOfWork: OutboxEventPort + Send {
    /// A transaction with its entries.
    fn find_transaction(
        &mut self,
        id: TransactionId,
    ) -> impl Future<Output = Answer<Option<Transaction>>> + Send;

    /// A balance, with its version.
    fn balance(&mut self, account: AccountId) -> impl Future<Output = Answer<Balance>> + Send;

    /// Writes a transaction. One that another writer has just written is a conflict.
    fn save_transaction(&mut self, transaction: &Transaction) -> impl Future<Output = Answer<()>> + Send;

    /// Writes its entries.
    fn save_entries(&mut self, transaction: &Transaction) -> impl Future<Output = Answer<()>> + Send;

    /// Writes a balance over the version that it has. Another version is a conflict.
    fn save_balance(&mut self, balance: &Balance) -> impl Future<Output = Answer<()>> + Send;

    /// Writes which transaction took another back. One that is taken back already is a conflict.
    fn mark_reversed(
        &mut self,
        id: TransactionId,
        by: TransactionId,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Makes all of it happen.
    fn commit(self) -> impl Future<Output = Answer<()>> + Send;
}

/// Where events wait until they are published.
pub trait OutboxEventPort {
    /// Keeps an event, in the same database transaction as the change that it tells of.
    fn save_event(&mut self, event: &dyn LedgerEvent) -> impl Future<Output = Answer<()>> + Send;
}
