//! Withdrawals.

use time::OffsetDateTime;

use super::posting::{Draft, Receipt, post};
use crate::application::port::LedgerPort;
use crate::application::problem::Answer;
use crate::domain::transaction::Transaction;
use crate::domain::{AccountId, TransactionId};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct WithdrawalCommand {
    /// The id of the transaction, chosen by the caller.
    pub transaction: TransactionId,
    /// The account.
    pub account: AccountId,
    /// How much.
    pub amount: i64,
    /// What the customer wrote.
    pub memo: Option<String>,
}

/// Takes cash from an account; refused if its balance would be below zero.
#[derive(Debug)]
pub struct WithdrawalService<'a, L>(pub &'a L);

impl<L: LedgerPort> WithdrawalService<'_, L> {
    /// Takes cash from an account; refused if its balance would be below zero.
    pub async fn withdraw(&self, command: &WithdrawalCommand, now: OffsetDateTime) -> Answer<Receipt> {
        let WithdrawalCommand { transaction, account, amount, memo } = command;
        let posting = Transaction::withdrawal(*transaction, *account, *amount, now)?;
        post(self.0, &Draft::Ready(posting.with_memo(memo.clone())?)).await
    }
}
