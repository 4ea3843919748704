//! What people do with the log, and what relays tell each other through it.

use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Audit, AuditEntry, Coordinate, LeaderLease, OffsetDateTime, Operate, Pause, Paused, Relane, RelayInfo,
    RelayReport, ReplaceDead, Replay, Replayed, ResolveDead, Result, Subscription, Sweep, Swept, Uuid,
    refuse_to_remove,
};

use crate::log::{Data, Log};
use crate::store::MemoryStore;
use crate::{delivery, leader_lease, relane, relays, replace, replay, sweep};

#[async_trait]
impl Operate for MemoryStore {
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        pause.map_or(Ok(()), Pause::check)?;
        let mut data = self.log.data();
        let since = self.log.now();
        let reader = data.reader(subscription, "pause")?;
        reader.paused = match (pause, reader.paused.take()) {
            (None, _) => None,
            (Some(_), Some(first)) => Some(first),
            (Some(by), None) => Some(Paused { by: by.clone(), since }),
        };
        drop(data);
        self.log.bell.committed();
        Ok(())
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        relane::relane(&self.log, subscription, lanes)
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        remove(&self.log, subscription, force)
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        replay::replay(&self.log, replay)
    }

    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64> {
        delivery::resolve_dead(&self.log, action)
    }

    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        replace::replace(&self.log, replacement).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        sweep::sweep(&self.log, sweep)
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        entry.check()?;
        audit(&mut self.log.data(), entry.clone(), self.log.now());
        Ok(())
    }
}

#[async_trait]
impl Coordinate for MemoryStore {
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        relays::heartbeat(&self.log, relay)
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        relays::deregister(&self.log, relay);
        Ok(())
    }

    async fn acquire_leader_lease(
        &self,
        task: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>> {
        leader_lease::take(&self.log, task, owner, lease)
    }

    async fn save_leader_note(&self, task: &str, owner: &str, note: &str) -> Result<bool> {
        leader_lease::note(&self.log, task, owner, note)
    }

    async fn release_leader_lease(&self, task: &str, owner: &str) -> Result<()> {
        leader_lease::leave(&self.log, task, owner);
        Ok(())
    }
}

fn remove(log: &Log, subscription: &str, force: bool) -> Result<()> {
    const OP: &str = "remove";
    let mut data = log.data();
    let now = log.now();
    let reader = data.subscription(subscription, OP)?;
    let holder = reader.lanes.iter().find_map(|lane| lane.holder(now));
    if let Some((owner, _)) = holder.filter(|_| !force) {
        return Err(Subscription::held(subscription, owner));
    }
    if !force {
        refuse_to_remove(subscription, &relays::known(&data, now))?;
    }
    data.readers.remove(subscription);
    log.bell.committed();
    Ok(())
}

/// Writes down what an operator did.
pub(crate) fn audit(data: &mut Data, entry: AuditEntry, at: OffsetDateTime) {
    let id = i64::try_from(data.audits.len()).unwrap_or(i64::MAX) + 1;
    data.audits.push(Audit { id, at, entry });
}
