//! The rules of bookkeeping.

pub mod balance;
pub mod event;
pub mod journal;
pub mod refusal;
pub mod transaction;

/// The id of an account. Customers have positive ones.
pub type AccountId = i64;
/// The id of a transaction, chosen by whoever asks for it: a request that is repeated has the same.
pub type TransactionId = i64;

/// The bank's own cash account, the other side of deposits and withdrawals. It has entries and no balance row: every deposit of the
/// day would wait for that one row.
pub const CASH: AccountId = 0;
