//! How a relay learns of new events.
//!
//! A reader that has just worked looks again every millisecond, so that a busy relay is not rung for each commit. After
//! a quiet time it says that it sleeps, and only then does a commit ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Bell, Result};
use tokio::sync::Notify;
use tokio::time::Instant;

const PAUSE: Duration = Duration::from_millis(1);
const QUIET: Duration = Duration::from_millis(50);
const A_DAY: Duration = Duration::from_secs(86_400);

/// What the bells of a log share.
#[derive(Debug, Default)]
pub(crate) struct SharedBell {
    commits: AtomicU64,
    sleepers: AtomicU64,
    rings: AtomicU64,
    rung: Notify,
}

impl SharedBell {
    /// Events were committed. The count comes first: who falls asleep meanwhile looks at it once more.
    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.rings.fetch_add(1, Ordering::Relaxed);
            self.rung.notify_waiters();
        }
    }

    /// How often commits have rung.
    pub(crate) fn rings(&self) -> u64 {
        self.rings.load(Ordering::Relaxed)
    }
}

/// A reader that is asleep. Dropped, it is awake.
struct Asleep<'a>(&'a SharedBell);

impl<'a> Asleep<'a> {
    fn on(bell: &'a SharedBell) -> Self {
        bell.sleepers.fetch_add(1, Ordering::SeqCst);
        Self(bell)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The bell of one lane's reader.
pub(crate) struct MemoryBell {
    bell: Arc<SharedBell>,
    /// How many commits there had been when the last wait ended, and so before the read after it began.
    seen: Option<u64>,
    worked_at: Instant,
}

impl MemoryBell {
    pub(crate) fn new(bell: Arc<SharedBell>) -> Self {
        Self { bell, seen: None, worked_at: Instant::now() }
    }
}

#[async_trait]
impl Bell for MemoryBell {
    async fn wait(&mut self, longest: Duration) -> Result<()> {
        let bell = Arc::clone(&self.bell);
        let end = Instant::now() + longest.min(A_DAY);
        loop {
            let rung = bell.rung.notified();
            let commits = bell.commits.load(Ordering::SeqCst);
            let now = Instant::now();
            if self.seen != Some(commits) || now >= end {
                self.seen = Some(commits);
                return Ok(());
            }
            if now.saturating_duration_since(self.worked_at) < QUIET {
                tokio::time::sleep_until(end.min(now + PAUSE)).await;
                continue;
            }
            let _asleep = Asleep::on(&bell);
            if bell.commits.load(Ordering::SeqCst) == commits {
                let _ = tokio::time::timeout_at(end, rung).await;
            }
        }
    }

    fn worked(&mut self) {
        self.worked_at = Instant::now();
    }
}
