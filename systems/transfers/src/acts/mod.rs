//! The system acted out: the stage with its processes, the story, and the measured load.

pub mod client;
pub mod latency;
pub mod load;
pub mod outages;
pub mod refused;
pub mod stage;
pub mod tale;
