//! The story of the ledger, and what it and the tests share.

use std::process::ExitCode;

use story::Options;

pub mod proxy;
pub mod stage;
pub mod topic;

/// Tells it.
pub async fn tell(_options: Options) -> ExitCode {
    ExitCode::SUCCESS
}
