//! Stubs of the outside world: real servers on loopback, which count what they are asked for.

pub mod discord;
pub mod gate;
pub mod toss;
