//! How often a bell asks a database that can't call.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::time::Instant;

const A_DAY: Duration = Duration::from_secs(86_400);

/// The pauses between two looks: short after work, half as long again each time, up to the longest.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    pause: Duration,
}

impl Pace {
    /// Begins with the shortest pause.
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, pause: shortest }
    }

    /// When a wait of at most `longest` ends.
    pub fn end(longest: Duration) -> Instant {
        Instant::now() + longest.min(A_DAY)
    }

    /// There was work, and there may be more.
    pub fn worked(&mut self) {
        self.pause = self.shortest;
    }

    /// Waits for the next look, but not longer than until `end`: for a pause, or until somebody has recorded and will probably commit
    /// soon. Gives the pause if it was one.
    pub async fn rest(&mut self, end: Instant, recorded: Notified<'_>) -> Option<Duration> {
        tokio::select! {
            () = tokio::time::sleep_until(end.min(Instant::now() + self.pause)) => {
                let pause = self.pause;
                self.pause = (pause * 3 / 2).min(self.longest);
                Some(pause)
            }
            () = recorded => {
                self.worked();
                tokio::time::sleep_until(end.min(Instant::now() + self.shortest)).await;
                None
            }
        }
    }
}
