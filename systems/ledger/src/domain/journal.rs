//! An entry of the journal: one side of a transaction.

use super::AccountId;

/// Debit or credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Lowers what the bank owes to a customer.
    Debit,
    /// Raises it.
    Credit,
}

impl Side {
    /// As it is stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debit => "DEBIT",
            Self::Credit => "CREDIT",
        }
    }

    /// The side with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Debit, Self::Credit].into_iter().find(|side| side.as_str() == name)
    }

    /// The other side.
    pub fn other(self) -> Self {
        match self {
            Self::Debit => Self::Credit,
            Self::Credit => Self::Debit,
        }
    }
}

/// One side of a transaction, on one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Whose.
    pub account: AccountId,
    /// Which side.
    pub side: Side,
    /// How much, always positive, in the smallest unit of the currency.
    pub amount: i64,
}

impl JournalEntry {
    /// What it does to the balance of a customer.
    pub fn change(&self) -> i64 {
        match self.side {
            Side::Debit => -self.amount,
            Side::Credit => self.amount,
        }
    }

    /// The entry that takes this one back.
    pub fn mirrored(&self) -> Self {
        Self { side: self.side.other(), ..self.clone() }
    }
}
