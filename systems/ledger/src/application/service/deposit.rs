//! Deposits.

use time::OffsetDateTime;

use super::posting::{Draft, Receipt, post};
use crate::application::port::LedgerPort;
use crate::application::problem::Answer;
use crate::domain::transaction::Transaction;
use crate::domain::{AccountId, TransactionId};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct DepositCommand {
    /// The id of the transaction, chosen by the caller.
    pub transaction: TransactionId,
    /// The account.
    pub account: AccountId,
    /// How much.
    pub amount: i64,
    /// What the customer wrote.
    pub memo: Option<String>,
}

/// Puts cash into an account.
#[derive(Debug)]
pub struct DepositService<'a, L>(pub &'a L);

impl<L: LedgerPort> DepositService<'_, L> {
    /// Puts cash into an account.
    pub async fn deposit(&self, command: &DepositCommand, now: OffsetDateTime) -> Answer<Receipt> {
        let DepositCommand { transaction, account, amount, memo } = command;
        let posting = Transaction::deposit(*transaction, *account, *amount, now)?;
        post(self.0, &Draft::Ready(posting.with_memo(memo.clone())?)).await
    }
}
