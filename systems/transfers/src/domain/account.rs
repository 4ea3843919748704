//! An account and the rules of its balance.

use std::fmt;

use uuid::Uuid;

/// An account. Amounts are whole won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub id: String,
    /// What is on it; never less than nothing.
    pub balance: i64,
}

/// Why a transfer is refused. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The amount must be positive.
    NoAmount,
    /// Sender and receiver are the same account.
    SameAccount,
    /// There is no such account.
    NoSuchAccount(String),
    /// The sender has less than the amount.
    TooLittle,
    /// The receiver can't hold more.
    TooMuch,
    /// Another transfer has this id.
    IdTaken(Uuid),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAmount => f.write_str("the amount must be greater than 0"),
            Self::SameAccount => f.write_str("sender and receiver must be different accounts"),
            Self::NoSuchAccount(id) => write!(f, "there is no account {id}"),
            Self::TooLittle => f.write_str("the balance of the sender is too low"),
            Self::TooMuch => f.write_str("the balance of the receiver is too high"),
            Self::IdTaken(id) => write!(f, "another transfer has the id {id}"),
        }
    }
}

impl Account {
    /// Takes an amount from it.
    pub fn debit(&mut self, amount: i64) -> Result<(), Refusal> {
        if self.balance < amount {
            return Err(Refusal::TooLittle);
        }
        self.balance -= amount;
        Ok(())
    }

    /// Adds an amount to it.
    pub fn credit(&mut self, amount: i64) -> Result<(), Refusal> {
        self.balance = self.balance.checked_add(amount).ok_or(Refusal::TooMuch)?;
        Ok(())
    }
}
