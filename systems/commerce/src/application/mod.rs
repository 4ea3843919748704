//! What the shop does: the services behind its API, what its four consumers do, and the ports that both need.

pub mod catalogue;
pub mod consumers;
pub mod likes;
pub mod orders;
pub mod ports;
