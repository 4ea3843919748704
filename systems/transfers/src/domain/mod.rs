//! Accounts, transfers between them, and what fraud detection thinks of a transfer. It knows nothing of the outside.

pub mod account;
pub mod event;
pub mod risk;
pub mod transaction;

pub use account::{Account, Refusal};
pub use event::TransferCompleteEvent;
pub use risk::RiskLog;
pub use transaction::Transaction;
