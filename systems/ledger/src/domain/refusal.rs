//! Why the ledger refuses a transaction.

use std::fmt;

use super::{AccountId, TransactionId};

/// The longest memo, in bytes.
pub const LONGEST_MEMO: usize = 60_000;

/// Why a transaction is refused. Asking again does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Zero or less was asked for.
    AmountNotPositive,
    /// No customer has this account.
    NoCustomer(AccountId),
    /// From an account to itself.
    SameAccount(AccountId),
    /// The balance would be below zero, or beyond what can be counted.
    InsufficientFunds(AccountId),
    /// What is to be reversed does not exist.
    UnknownTransaction(TransactionId),
    /// It was reversed before, by this one.
    AlreadyReversed(TransactionId, TransactionId),
    /// A reversal stays.
    ReversalOfReversal(TransactionId),
    /// Another transaction has this id.
    IdTaken(TransactionId),
    /// The memo is too long.
    MemoTooLong,
    /// The memo has a character that is none of a text.
    MemoHasNul,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AmountNotPositive => f.write_str("the amount must be greater than 0"),
            Self::NoCustomer(account) => write!(f, "account {account} belongs to no customer"),
            Self::SameAccount(account) => {
                write!(f, "a transfer needs two accounts; both are {account}")
            }
            Self::InsufficientFunds(account) => {
                write!(f, "the balance of account {account} does not allow it")
            }
            Self::UnknownTransaction(id) => write!(f, "there is no transaction {id}"),
            Self::AlreadyReversed(id, by) => write!(f, "transaction {id} was reversed by {by}"),
            Self::ReversalOfReversal(id) => {
                write!(f, "transaction {id} is a reversal, and a reversal can't be reversed")
            }
            Self::IdTaken(id) => write!(f, "another transaction has the id {id}"),
            Self::MemoHasNul => f.write_str("the memo must not contain a NUL character"),
            Self::MemoTooLong => write!(f, "the memo must have at most {LONGEST_MEMO} bytes"),
        }
    }
}

impl std::error::Error for Refusal {}
