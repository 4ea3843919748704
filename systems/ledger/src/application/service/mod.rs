//! The four operations, and what they share.

pub mod deposit;
pub mod outbox_event_recorder;
pub mod posting;
pub mod reversal;
pub mod transfer;
pub mod withdrawal;

pub use deposit::DepositService;
pub use posting::{Receipt, TRIES};
pub use reversal::ReversalService;
pub use transfer::TransferService;
pub use withdrawal::WithdrawalService;
