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

use postrider_testkit::until_within;

/// Waits until a trouble is over.
async fn wait_for(trouble: &str, over: impl AsyncFnMut() -> bool) {
    until_within(&format!("this is over: {trouble}"), scene::PATIENCE, over).await;
}
