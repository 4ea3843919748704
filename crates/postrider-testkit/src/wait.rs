//! Waiting for what must happen.

use std::time::{Duration, Instant};

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until a condition holds, at most for [`PATIENCE`]. `what` continues "it took too long until".
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_within(what, PATIENCE, condition).await;
}

/// The same for a condition that needs no `await`.
pub async fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, async || condition()).await;
}

/// Waits until a condition holds, at most this long.
pub async fn until_within(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + within;
    while !condition().await {
        assert!(Instant::now() < end, "it took too long until {what}: more than {within:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
