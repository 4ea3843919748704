//! The event of a transfer.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Transaction;

/// A transfer is complete: both balances have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferCompleteEvent {
    /// The transfer.
    pub transaction_id: Uuid,
    /// The sender's account.
    pub from_account: String,
    /// The receiver's account.
    pub to_account: String,
    /// In won.
    pub amount: i64,
    /// What the sender wrote to the receiver.
    pub memo: String,
    /// When, in milliseconds since 1970.
    pub completed_at: i64,
}

impl From<&Transaction> for TransferCompleteEvent {
    fn from(transaction: &Transaction) -> Self {
        Self {
            transaction_id: transaction.id,
            from_account: transaction.from_account.clone(),
            to_account: transaction.to_account.clone(),
            amount: transaction.amount,
            memo: transaction.memo.clone(),
            completed_at: transaction.completed_at,
        }
    }
}
