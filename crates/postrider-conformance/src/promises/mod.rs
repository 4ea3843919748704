//! The promises, by what they are about.

pub mod attempts;
pub mod bell;
pub mod bytes;
pub mod deliveries;
pub mod due;
pub mod history;
pub mod inbox;
pub mod keys;
pub mod lanes;
pub mod late;
pub mod leader_leases;
pub mod leases;
pub mod operating;
pub mod reading;
pub mod recording;
pub mod relays;
pub mod replacing;
pub mod replay;
pub mod replay_among_writers;
pub mod retention;
pub mod running;
mod scene;
pub mod search;
pub mod states;
pub mod writers;
