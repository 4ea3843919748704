//! The store: what the engine calls, each method in the module of its noun.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Amend, AuditEntry, Batch, Bell, Desk, DueBatch, EventState, Figures, Lease, Position, Relane, RelayInfo,
    RelayReport, Result, Settlement, Standing, StateQuery, Store, Subscribed, Subscription, Sweep, Swept,
};
use uuid::Uuid;

use crate::bell::MemoryBell;
use crate::log::Log;
use crate::{delivery, figures, lane, read, relane, relays, settle, state, subscribe, sweep};

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
        self.log.tower.rings()
    }

    /// Sets the state of an event's delivery behind the engine's back, by its word. For tests of the state machine.
    #[doc(hidden)]
    pub fn force_delivery(&self, event_id: Uuid, state: &str) -> Result<()> {
        delivery::force(&self.log, event_id, state)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        subscribe::subscribe(&self.log, subscription)
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        lane::claim(&self.log, subscription, owner, lease)
    }

    async fn extend(&self, lease: &mut Lease, by: Duration, reading: Option<&Position>) -> Result<Standing> {
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

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<Standing> {
        settle::settle(&self.log, lease, settlement)
    }

    fn bell(&self) -> Box<dyn Bell> {
        Box::new(MemoryBell::new(Arc::clone(&self.log.tower)))
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        relane::relane(&self.log, subscription, lanes)
    }

    async fn amend(&self, amend: &Amend) -> Result<u64> {
        delivery::amend(&self.log, amend)
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        sweep::sweep(&self.log, sweep)
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        Ok(state::states(&self.log, query))
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        figures::figures(&self.log, subscription, figures::MOST_UNREAD)
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        figures::figures(&self.log, subscription, most)
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        figures::undelivered_over(&self.log, subscription, age)
    }

    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        relays::heartbeat(&self.log, relay)
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        relays::deregister(&self.log, relay);
        Ok(())
    }

    async fn record_audit(&self, entry: &AuditEntry) -> Result<()> {
        Desk::audit(self, entry).await
    }
}
