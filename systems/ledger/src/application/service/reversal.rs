//! Reversals.

use time::OffsetDateTime;

use super::posting::{Draft, Receipt, post};
use crate::application::port::LedgerPort;
use crate::application::problem::Answer;
use crate::domain::TransactionId;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ReversalCommand {
    /// The id of the reversal, chosen by the caller.
    pub transaction: TransactionId,
    /// What it takes back.
    pub of: TransactionId,
}

/// Takes a transaction back by mirrored entries, once. A reversal can't be reversed, and no balance goes below zero.
#[derive(Debug)]
pub struct ReversalService<'a, L>(pub &'a L);

impl<L: LedgerPort> ReversalService<'_, L> {
    /// Takes a transaction back.
    pub async fn reverse(&self, command: &ReversalCommand, now: OffsetDateTime) -> Answer<Receipt> {
        let ReversalCommand { transaction, of } = command;
        post(self.0, &Draft::Reversal { id: *transaction, of: *of, now }).await
    }
}
