//! A store whose every call ends.
//!
//! A database can keep its connections open and say nothing: one that is frozen, a network that drops what it is given, a proxy
//! in front of nothing. Whoever waits for it must not wait for ever: what is not answered in time counts as an outage.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    Amend, AuditEntry, Batch, Bell, DueBatch, Error, ErrorKind, EventState, Figures, Lease, Position, Relane,
    RelayInfo, RelayReport, Result, Settlement, Standing, StateQuery, Store, Subscribed, Subscription, Sweep,
    Swept, Uuid,
};

/// A call is not given up sooner than this, however short the lease.
const SHORTEST: Duration = Duration::from_secs(1);
/// Nobody waits longer for a lane to be given back: its lease runs out by itself.
const RELEASE: Duration = Duration::from_secs(5);
/// How long what no lane waits for may take: looking, counting, making a subscription.
const UNHURRIED: Duration = Duration::from_secs(30);
/// How long a round of retention may take.
const SWEEP: Duration = Duration::from_secs(300);

/// A store whose every call ends, well or with [`Unreachable`](ErrorKind::Unreachable).
///
/// *Guarantees*: what a lane needs (claim, extend, read, due, settle) ends within the limit, which is the lease for a relay; everything
/// else within half a minute or the limit, whichever is longer, and a sweep within five minutes. *Caller must*: treat what was not
/// answered as an answer that was lost: it may or may not have come to pass. *On failure*: as the store says of each call.
pub struct Bounded {
    store: Arc<dyn Store>,
    limit: Duration,
}

impl Bounded {
    /// The same store with calls of at most `limit`, and a second at least.
    pub fn new(store: Arc<dyn Store>, limit: Duration) -> Self {
        Self { store, limit: limit.max(SHORTEST) }
    }

    fn unhurried(&self) -> Duration {
        self.limit.max(UNHURRIED)
    }
}

/// What is answered within a time.
pub(crate) async fn within<T>(
    limit: Duration,
    op: &'static str,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        let message = format!(
            "the database did not answer within {limit:?}; check that it runs, and what is between it and here"
        );
        Err(Error::new(ErrorKind::Unreachable, op, message))
    })
}

#[async_trait]
impl Store for Bounded {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        within(self.unhurried(), "subscribe", self.store.subscribe(subscription)).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        within(self.limit, "claim", self.store.claim(subscription, owner, lease)).await
    }

    async fn extend(&self, lease: &mut Lease, by: Duration, reading: Option<&Position>) -> Result<Standing> {
        within(self.limit, "extend", self.store.extend(lease, by, reading)).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        within(self.limit.min(RELEASE), "release", self.store.release(lease)).await
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        within(self.limit, "read", self.store.read(lease, from, limit)).await
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        within(self.limit, "due", self.store.due(lease, limit)).await
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<Standing> {
        within(self.limit, "settle", self.store.settle(lease, settlement)).await
    }

    /// Whoever sleeps on it ends the wait by itself.
    fn bell(&self) -> Box<dyn Bell> {
        self.store.bell()
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        within(self.unhurried(), "relane", self.store.relane(subscription, lanes)).await
    }

    async fn amend(&self, amend: &Amend) -> Result<u64> {
        within(self.unhurried(), "amend", self.store.amend(amend)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        within(self.limit.max(SWEEP), "sweep", self.store.sweep(sweep)).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        within(self.unhurried(), "states", self.store.states(query)).await
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        within(self.unhurried(), "figures", self.store.figures(subscription)).await
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        within(self.unhurried(), "figures", self.store.figures_up_to(subscription, most)).await
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        within(self.unhurried(), "figures", self.store.undelivered_over(subscription, age)).await
    }

    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        within(self.unhurried(), "heartbeat", self.store.heartbeat(relay)).await
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        within(self.limit.min(RELEASE), "deregister", self.store.deregister(relay)).await
    }

    async fn record_audit(&self, entry: &AuditEntry) -> Result<()> {
        within(self.unhurried(), "audit", self.store.record_audit(entry)).await
    }
}
