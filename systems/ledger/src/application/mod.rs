//! What the ledger does for others: services, and the ports that they need.

pub mod port;
pub mod problem;
pub mod projection;
pub mod service;
