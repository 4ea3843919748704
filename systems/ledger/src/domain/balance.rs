//! What an account has, and the version that a writer must have seen.

use super::AccountId;
use super::journal::JournalEntry;
use super::refusal::Refusal;

/// The balance of a customer's account. It is never below zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// Whose.
    pub account: AccountId,
    /// How much.
    pub amount: i64,
    /// How often it was changed. A writer that saw another version must begin again.
    pub version: i64,
}

impl Balance {
    /// Of an account without entries.
    pub fn empty(account: AccountId) -> Self {
        Self { account, amount: 0, version: 0 }
    }

    /// The balance after an entry, of the version that was seen.
    pub fn after(&self, entry: &JournalEntry) -> Result<Self, Refusal> {
        let amount = self.amount.checked_add(entry.change()).filter(|amount| *amount >= 0);
        let amount = amount.ok_or(Refusal::InsufficientFunds(self.account))?;
        Ok(Self { amount, ..self.clone() })
    }
}
