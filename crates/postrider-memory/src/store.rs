//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Batch, Bell, DueBatch, EventLog, Lease, LeaseStatus, Position, Result, Settlement, Subscribed,
    Subscription, Uuid,
};

use crate::bell::MemoryBell;
use crate::log::Log;
use crate::{delivery, lane, read, settle, subscribe};

/// The log in memory, as relays use it. Clones share everything.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    pub(crate) log: Arc<Log>,
}

impl MemoryStore {
    pub(crate) fn new(log: &Arc<Log>) -> Self {
        Self { log: Arc::clone(log) }
    }

    /// How often a commit has rung for a reader that slept.
    #[doc(hidden)]
    pub fn rings(&self) -> u64 {
        self.log.bell.rings()
    }

    /// Sets the state of an event's delivery behind the engine's back, by its word. For tests of the state machine.
    #[doc(hidden)]
    pub fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<()> {
        delivery::force(&self.log, event_id, state)
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        subscribe::subscribe(&self.log, subscription)
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        lane::claim(&self.log, subscription, owner, lease)
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
        lane::extend(&self.log, lease, by, reading)
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        lane::release(&self.log, &lease);
        Ok(())
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        read::read(&self.log, lease, from, limit)
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        delivery::due(&self.log, lease, limit)
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        settle::settle(&self.log, lease, settlement)
    }

    fn bell(&self) -> Box<dyn Bell> {
        Box::new(MemoryBell::new(Arc::clone(&self.log.bell)))
    }
}
