//! The outside world on loopback: the exchange, and the push service.

pub mod exchange;
pub mod push;
