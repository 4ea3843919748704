//! Transfers.

use time::OffsetDateTime;

use super::posting::{Draft, Receipt, post};
use crate::application::port::LedgerPort;
use crate::application::problem::Answer;
use crate::domain::transaction::Transaction;
use crate::domain::{AccountId, TransactionId};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct TransferCommand {
    /// The id of the transaction, chosen by the caller.
    pub transaction: TransactionId,
    /// Who gives.
    pub from: AccountId,
    /// Who gets.
    pub to: AccountId,
    /// How much.
    pub amount: i64,
    /// What the customer wrote.
    pub memo: Option<String>,
}

/// Moves money between two accounts; refused if the balance of the first would be below zero.
#[derive(Debug)]
pub struct TransferService<'a, L>(pub &'a L);

impl<L: LedgerPort> TransferService<'_, L> {
    /// Moves money between two accounts; refused if the balance of the first would be below zero.
    pub async fn transfer(&self, command: &TransferCommand, now: OffsetDateTime) -> Answer<Receipt> {
        let TransferCommand { transaction, from, to, amount, memo } = command;
        let posting = Transaction::transfer(*transaction, *from, *to, *amount, now)?;
        post(self.0, &Draft::Ready(posting.with_memo(memo.clone())?)).await
    }
}
