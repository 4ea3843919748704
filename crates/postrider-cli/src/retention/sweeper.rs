//! One sweep after another, in batches with pauses, for as long as the leader lease is held.

use std::time::{Duration, Instant};

use postrider::store::{Backoff, Pacing};
use postrider::{Error, ErrorKind};
use tokio::sync::watch;

use super::{LEASE_NAME, Task};
use crate::database::SharedStore;

/// How often a round that another transaction is in the way of is tried again, and after how long at first.
const TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is left to take.
    Done,
    /// The process is to end.
    Stopped,
    /// Another process has the leader lease: it goes on.
    Lost,
}

/// Who sweeps.
pub(super) struct Sweeper {
    pub(super) log: SharedStore,
    pub(super) owner: String,
    pub(super) lease: Duration,
    pub(super) pacing: Pacing,
    pub(super) ended: watch::Receiver<bool>,
    /// When the leader lease was last acquired or extended.
    prolonged: Instant,
}

impl Sweeper {
    pub(super) fn new(
        log: SharedStore,
        owner: String,
        lease: Duration,
        pacing: Pacing,
        ended: watch::Receiver<bool>,
    ) -> Self {
        Self { log, owner, lease, pacing, ended, prolonged: Instant::now() }
    }

    /// Does a task to its end, and says after each batch how many rows it took.
    pub(super) async fn sweep(&mut self, task: &Task, mut took: impl FnMut(u64)) -> Result<Ended, Error> {
        loop {
            if *self.ended.borrow() {
                return Ok(Ended::Stopped);
            }
            if !self.prolong().await? {
                return Ok(Ended::Lost);
            }
            let began = Instant::now();
            let Some(swept) = self.round(task).await? else { return Ok(Ended::Stopped) };
            let busy = began.elapsed();
            took(swept.taken);
            if !swept.more {
                return Ok(Ended::Done);
            }
            if self.wait(self.pacing.after(busy)).await {
                return Ok(Ended::Stopped);
            }
        }
    }

    /// One round, tried again while others are in its way; nothing if the process is to end meanwhile.
    async fn round(&mut self, task: &Task) -> Result<Option<postrider::store::Swept>, Error> {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        for _ in 1..TRIES {
            match self.log.sweep(&task.sweep).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    if self.wait(backoff.next_delay()).await {
                        return Ok(None);
                    }
                }
                done => return done.map(Some),
            }
        }
        self.log.sweep(&task.sweep).await.map(Some)
    }

    /// Whether the leader lease is still held; extended in time.
    async fn prolong(&mut self) -> Result<bool, Error> {
        if self.prolonged.elapsed() < self.lease / 3 {
            return Ok(true);
        }
        let leader = self.log.acquire_leader_lease(LEASE_NAME, &self.owner, self.lease).await?;
        self.prolonged = Instant::now();
        Ok(leader.is_some())
    }

    /// Waits; whether the process is to end meanwhile.
    async fn wait(&mut self, pause: Duration) -> bool {
        // Longer waits than the lease lasts are cut: the next batch extends it.
        let pause = pause.min(self.lease / 3);
        if pause.is_zero() {
            return *self.ended.borrow();
        }
        tokio::select! {
            _ = self.ended.wait_for(|ended| *ended) => true,
            () = tokio::time::sleep(pause) => false,
        }
    }
}
