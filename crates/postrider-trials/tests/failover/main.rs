//! What a relay promises when its database moves to another server, or into its own past.
//!
//! Real servers, real promotions; the relay is in the test's process, so that what it has in hand at that moment is known.

mod ahead;
mod due;
mod effects;
mod late;
mod prepared;
mod promotion;
mod replica;
mod restore;
mod scene;
mod switchover;
mod windows;
