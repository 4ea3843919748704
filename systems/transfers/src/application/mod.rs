//! What the system does, in terms of ports: transfers, and the analysis of what was transferred.

pub mod fraud;
pub mod ports;
pub mod transfer;
