//! No bell: what `bell = false` leaves of it.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Bell, Result};

const A_DAY: Duration = Duration::from_secs(86_400);

/// A bell that nobody rings, and that asks nobody: each wait lasts as long as it may. So a relay reads the log once per poll interval
/// while it is quiet, and neither a commit nor work that was found makes the next look come sooner.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentBell;

#[async_trait]
impl Bell for SilentBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        tokio::time::sleep(longest.min(A_DAY)).await;
        Ok(())
    }

    fn worked(&mut self) {}
}
