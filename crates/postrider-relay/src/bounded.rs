//! A store whose calls all end within a time limit.
//!
//! A database can keep its connections open and say nothing: one that is frozen, a network that drops what it is given, a proxy
//! in front of nothing. Whoever waits for it must not wait for ever: what is not answered in time counts as an outage.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{
    ArchiveOptions, Audit, AuditEntry, Batch, Bell, Check, Coordinate, DueBatch, Error, ErrorKind, EventLog,
    EventPage, EventQuery, EventRef, EventState, Figures, Inspect, LeaderLease, Lease, LeaseStatus,
    OffsetDateTime, OpenDelivery, OpenDeliveryQuery, Operate, PastAttempts, Pause, Position, Relane,
    RelayInfo, RelayReport, ReplaceDead, Replay, Replayed, ResolveDead, Result, Settlement, StateQuery,
    Store, Subscribed, Subscription, SubscriptionInfo, Sweep, Sweepable, Swept, Uuid,
};

/// A call is not given up sooner than this, however short the lease.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest wait for the release of a lane: after that its lease expires by itself.
const RELEASE: Duration = Duration::from_secs(5);
/// How long what no lane waits for may take: looking, counting, making a subscription.
const UNHURRIED: Duration = Duration::from_secs(30);
/// How long a round of retention may take.
const SWEEP: Duration = Duration::from_secs(300);
/// How long what goes through many rows in one transaction may take.
const LONG: Duration = Duration::from_secs(600);

/// A store whose every call has a timeout, and fails with [`Unreachable`](ErrorKind::Unreachable) after it.
///
/// *Guarantees*: the calls of a lane (claim, extend, read, due, settle) end within the limit, which is the lease for a relay;
/// everything else within 30 s or the limit, whichever is longer, and a sweep within five minutes. *Caller must*: treat a timeout
/// as a lost answer: the call may or may not have taken effect. *On failure*: as the store defines for each call.
pub struct Bounded {
    store: Arc<dyn Store>,
    limit: Duration,
    unhurried: Duration,
}

impl Bounded {
    /// Limits the calls of a store to `limit`, at least one second: for relays.
    pub fn new(store: Arc<dyn Store>, limit: Duration) -> Self {
        let limit = limit.max(SHORTEST);
        Self { store, limit, unhurried: limit.max(UNHURRIED) }
    }

    /// Limits the calls of a store to `limit`, except those that process many rows: for interactive commands.
    pub fn for_people(store: Arc<dyn Store>, limit: Duration) -> Self {
        Self { store, limit, unhurried: limit }
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
            "the database did not answer within {limit:?}; check that it is running and reachable from here"
        );
        Err(Error::new(ErrorKind::Unreachable, op, message))
    })
}

#[async_trait]
impl EventLog for Bounded {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        within(self.unhurried, "subscribe", self.store.subscribe(subscription)).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        within(self.limit, "claim", self.store.claim(subscription, owner, lease)).await
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
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

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        within(self.limit, "settle", self.store.settle(lease, settlement)).await
    }

    /// Not limited: the caller gives the longest wait.
    fn bell(&self) -> Box<dyn Bell> {
        self.store.bell()
    }
}

#[async_trait]
impl Inspect for Bounded {
    async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>> {
        within(self.unhurried, "subscriptions", self.store.subscriptions()).await
    }

    async fn relays(&self) -> Result<Vec<RelayInfo>> {
        within(self.unhurried, "relays", self.store.relays()).await
    }

    async fn states(&self, query: &StateQuery) -> Result<Vec<EventState>> {
        within(self.unhurried, "states", self.store.states(query)).await
    }

    async fn figures(&self, subscription: &str) -> Result<Vec<Figures>> {
        within(self.unhurried, "figures", self.store.figures(subscription)).await
    }

    async fn figures_up_to(&self, subscription: &str, most: u32) -> Result<Vec<Figures>> {
        within(self.unhurried, "figures", self.store.figures_up_to(subscription, most)).await
    }

    async fn undelivered_over(&self, subscription: &str, age: Duration) -> Result<u64> {
        within(self.unhurried, "figures", self.store.undelivered_over(subscription, age)).await
    }

    async fn unread_since(&self, subscription: &str) -> Result<Option<OffsetDateTime>> {
        within(self.unhurried, "figures", self.store.unread_since(subscription)).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        within(self.unhurried, "events", self.store.events(query)).await
    }

    async fn open_deliveries(&self, query: &OpenDeliveryQuery) -> Result<Vec<OpenDelivery>> {
        within(self.unhurried, "dead", self.store.open_deliveries(query)).await
    }

    async fn attempts(&self, event: EventRef) -> Result<Vec<PastAttempts>> {
        within(self.unhurried, "attempts", self.store.attempts(event)).await
    }

    async fn audits(&self, limit: u32) -> Result<Vec<Audit>> {
        within(self.unhurried, "audit", self.store.audits(limit)).await
    }

    async fn sweepable(&self, sweep: &Sweep) -> Result<Sweepable> {
        within(LONG, "sweep", self.store.sweepable(sweep)).await
    }

    async fn check_archive(&self, archiving: &ArchiveOptions) -> Result<()> {
        within(self.unhurried, "archive", self.store.check_archive(archiving)).await
    }

    async fn checks(&self, now: OffsetDateTime) -> Result<Vec<Check>> {
        within(self.unhurried, "doctor", self.store.checks(now)).await
    }
}

#[async_trait]
impl Operate for Bounded {
    async fn pause(&self, subscription: &str, pause: Option<&Pause>) -> Result<()> {
        within(self.unhurried, "pause", self.store.pause(subscription, pause)).await
    }

    async fn relane(&self, subscription: &str, lanes: u32) -> Result<Relane> {
        within(self.unhurried, "relane", self.store.relane(subscription, lanes)).await
    }

    async fn remove(&self, subscription: &str, force: bool) -> Result<()> {
        within(LONG, "remove", self.store.remove(subscription, force)).await
    }

    async fn replay(&self, replay: &Replay) -> Result<Replayed> {
        within(LONG, "replay", self.store.replay(replay)).await
    }

    async fn resolve_dead(&self, action: &ResolveDead) -> Result<u64> {
        within(self.unhurried, "resolve", self.store.resolve_dead(action)).await
    }

    async fn replace_dead(&self, replacement: &ReplaceDead) -> Result<Vec<String>> {
        within(self.unhurried, "replace", self.store.replace_dead(replacement)).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        within(self.limit.max(SWEEP), "sweep", self.store.sweep(sweep)).await
    }

    async fn audit(&self, entry: &AuditEntry) -> Result<()> {
        within(self.unhurried, "audit", self.store.audit(entry)).await
    }
}

#[async_trait]
impl Coordinate for Bounded {
    async fn heartbeat(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        within(self.unhurried, "heartbeat", self.store.heartbeat(relay)).await
    }

    async fn deregister(&self, relay: Uuid) -> Result<()> {
        within(self.limit.min(RELEASE), "deregister", self.store.deregister(relay)).await
    }

    async fn acquire_leader_lease(
        &self,
        task: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<LeaderLease>> {
        within(self.unhurried, "lead", self.store.acquire_leader_lease(task, owner, lease)).await
    }

    async fn save_leader_note(&self, task: &str, owner: &str, note: &str) -> Result<bool> {
        within(self.unhurried, "lead", self.store.save_leader_note(task, owner, note)).await
    }

    async fn release_leader_lease(&self, task: &str, owner: &str) -> Result<()> {
        within(self.unhurried, "lead", self.store.release_leader_lease(task, owner)).await
    }
}
