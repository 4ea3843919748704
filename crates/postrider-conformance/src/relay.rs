//! A relay reduced to its loop, for tests: claim, read, deliver, settle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postrider_core::{
    Batch, Clock, ErrorKind, Lease, LeaseStatus, ManualClock, NewEvent, OffsetDateTime, Recorded, Relane,
    Settlement, Store, Subscription, Uuid,
};

use crate::harness::{Harness, TestLog};

/// A lease that does not run out during a test.
pub const LONG: Duration = Duration::from_secs(300);

/// A log with the database's clock.
pub async fn log(harness: &dyn Harness) -> Arc<dyn TestLog> {
    harness.log(Clock::Database).await
}

/// A log with a clock to turn.
pub async fn log_with_clock(harness: &dyn Harness) -> (Arc<dyn TestLog>, ManualClock) {
    // Databases count microseconds.
    let micros = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000;
    let now = OffsetDateTime::from_unix_timestamp_nanos(micros * 1000).expect("a time");
    let clock = ManualClock::at(now);
    (harness.log(Clock::Manual(clock.clone())).await, clock)
}

/// An event of an aggregate, with its version as the payload.
pub fn event(aggregate: &str, version: i64) -> NewEvent {
    NewEvent::of("orders", "OrderChanged", "Order", aggregate, &version).expect("a number is JSON")
}

/// Subscribes to everything from the beginning in one lane.
pub async fn subscribe(store: &dyn Store, name: &str) {
    store.subscribe(&Subscription::new(name)).await.expect("subscribe");
}

/// Changes an aggregate and records it, in one transaction.
pub async fn commit_one(log: &dyn TestLog, aggregate: &str) -> Uuid {
    loop {
        let mut writer = log.begin().await;
        let version = match writer.change(aggregate).await {
            Ok(version) => version,
            // Another transaction was faster: begin anew.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                writer.rollback().await;
                continue;
            }
            Err(error) => panic!("change: {error}"),
        };
        let id = writer.record(&event(aggregate, version)).await.expect("record");
        writer.commit().await.expect("commit");
        return id;
    }
}

/// Claims a lane that must be free.
pub async fn claim(store: &dyn Store, subscription: &str) -> Lease {
    store.claim(subscription, "relay", LONG).await.expect("claim").expect("a free lane")
}

/// Reads once from the lease's position.
pub async fn read(store: &dyn Store, lease: &Lease, limit: u32) -> Batch {
    store.read(lease, &lease.position, limit).await.expect("read")
}

/// Settles all of a batch as delivered.
pub async fn settle(store: &dyn Store, lease: &mut Lease, batch: &Batch) -> LeaseStatus {
    store.settle(lease, &Settlement::of(batch)).await.expect("settle")
}

/// Reads and settles until a lane is idle or recalled.
pub async fn drain_lane(store: &dyn Store, lease: &mut Lease, limit: u32) -> Vec<Recorded> {
    let mut events = Vec::new();
    loop {
        let batch = read(store, lease, limit).await;
        if batch.is_idle() {
            return events;
        }
        assert!(
            batch.scanned <= 2 * limit,
            "{} rows were scanned, {limit} allowed of each kind",
            batch.scanned
        );
        let status = settle(store, lease, &batch).await;
        assert_ne!(status, LeaseStatus::Lost, "nobody else holds the lane");
        events.extend(batch.events.into_iter().map(|read| read.event));
    }
}

/// Claims every free lane of a subscription, drains them and gives them back.
pub async fn drain(store: &dyn Store, subscription: &str) -> Vec<Recorded> {
    let mut events = Vec::new();
    let mut leases = Vec::new();
    while let Some(mut lease) = store.claim(subscription, "drain", LONG).await.expect("claim") {
        events.extend(drain_lane(store, &mut lease, 100).await);
        leases.push(lease);
    }
    for lease in leases {
        store.release(lease).await.expect("release");
    }
    events
}

/// Changes the number of lanes, doing what relays do meanwhile. Returns what they delivered.
pub async fn change_lanes(store: &dyn Store, subscription: &str, lanes: u32) -> Vec<Recorded> {
    let mut events = Vec::new();
    for _ in 0..10 {
        let step = store.relane(subscription, lanes).await.expect("relane");
        if step == Relane::Done {
            return events;
        }
        events.extend(drain(store, subscription).await);
    }
    panic!("there are still not {lanes} lanes");
}

/// The ids of events, in their order.
pub fn ids(events: &[Recorded]) -> Vec<Uuid> {
    events.iter().map(|event| event.event_id).collect()
}

/// What was delivered, by everybody, in the order of deliveries.
#[derive(Default)]
pub struct Delivered(Mutex<Vec<(Uuid, String, i64)>>);

impl Delivered {
    /// Delivers an event whose payload is its aggregate's version.
    pub fn push(&self, event: &Recorded) {
        let version = event.payload.decode().unwrap_or(0);
        self.all().push((event.event_id, event.aggregate_id.clone(), version));
    }

    /// Takes the deliveries of a batch back that could not be settled: of two of the same event the first.
    pub fn take_back(&self, batch: &Batch) {
        let mut all = self.all();
        for read in &batch.events {
            if let Some(at) = all.iter().position(|(id, ..)| *id == read.event.event_id) {
                all.remove(at);
            }
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<(Uuid, String, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many deliveries there were.
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// Asserts that exactly these events were delivered, each once, those of an aggregate by their versions.
    pub fn assert_exactly(&self, committed: &[Uuid]) {
        let delivered = self.all();
        let mut times: HashMap<Uuid, u32> = HashMap::new();
        let mut versions: HashMap<&str, i64> = HashMap::new();
        let mut out_of_order = 0;
        for (id, aggregate, version) in delivered.iter() {
            *times.entry(*id).or_default() += 1;
            let last = versions.entry(aggregate).or_default();
            out_of_order += u32::from(*version <= *last);
            *last = *version;
        }
        let missing = committed.iter().filter(|id| !times.contains_key(id)).count();
        let twice = times.values().filter(|times| **times > 1).count();
        let strange = times.len() - (committed.len() - missing);
        assert!(
            missing == 0 && twice == 0 && strange == 0 && out_of_order == 0,
            "of {} committed: {missing} missing, {twice} more than once, {strange} never committed, {out_of_order} out of order",
            committed.len()
        );
    }
}

/// Waits until a condition holds, looking again and again; fails after a minute.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < Duration::from_secs(60), "waited a minute until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A small random number generator, so that runs differ and a seed can repeat one.
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as the seed says.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}
