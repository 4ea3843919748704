//! Relays and writers that run beside each other until told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{ErrorKind, LeaseStatus, Store, Uuid};
use tokio::task::JoinSet;

use crate::harness::TestLog;
use crate::relay::{Delivered, Dice, event, settle};

/// Relays and writers on one log.
pub struct Crew {
    log: Arc<dyn TestLog>,
    /// What the relays delivered.
    pub delivered: Arc<Delivered>,
    stop: Arc<AtomicBool>,
    relays: JoinSet<()>,
    losses: Arc<AtomicU64>,
}

/// How a relay behaves.
#[derive(Clone, Copy)]
pub struct Manner {
    /// How long its leases last.
    pub lease: Duration,
    /// In one of so many turns it goes away with a claimed lane, having delivered nothing of its batch.
    pub walks_away: u64,
    /// How many rows it reads at once.
    pub batch: u32,
}

impl Crew {
    /// A crew on a log, with nobody in it yet.
    pub fn new(log: &Arc<dyn TestLog>) -> Self {
        Self {
            log: Arc::clone(log),
            delivered: Arc::default(),
            stop: Arc::default(),
            relays: JoinSet::new(),
            losses: Arc::default(),
        }
    }

    /// How often a relay walked away with a lane.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Adds a relay of another process.
    pub async fn relay(&mut self, subscription: &'static str, number: u64, manner: Manner) {
        let store = self.log.second_store().await;
        let (delivered, stop, losses) =
            (Arc::clone(&self.delivered), Arc::clone(&self.stop), Arc::clone(&self.losses));
        self.relays.spawn(async move {
            let mut dice = Dice::new(number);
            while !stop.load(Ordering::Relaxed) {
                if !turn(
                    &*store,
                    subscription,
                    &format!("relay {number}"),
                    manner,
                    &mut dice,
                    &delivered,
                    &losses,
                )
                .await
                {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        });
    }

    /// Runs writers until each has done its transactions; a third of them roll back. Returns what they committed.
    pub async fn write(&self, writers: u64, transactions: u64, aggregates: u64) -> Vec<Uuid> {
        let mut tasks = JoinSet::new();
        for number in 0..writers {
            let log = Arc::clone(&self.log);
            tasks.spawn(async move {
                let mut dice = Dice::new(1000 + number);
                let mut committed = Vec::new();
                for _ in 0..transactions {
                    committed.extend(transaction(&*log, &mut dice, aggregates).await);
                }
                committed
            });
        }
        tasks.join_all().await.into_iter().flatten().collect()
    }

    /// Waits until so many deliveries were made, and stops the relays.
    pub async fn finish(mut self, deliveries: usize) -> Arc<Delivered> {
        crate::relay::until(
            &format!("{deliveries} events are delivered ({})", self.delivered.count()),
            || async { self.delivered.count() >= deliveries },
        )
        .await;
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.relays.join_next().await {
            ended.expect("a relay must not fail");
        }
        self.delivered
    }
}

/// One transaction of an application: one to three changes of aggregates, each with its event. They are taken in
/// order, so that writers don't deadlock.
async fn transaction(log: &dyn TestLog, dice: &mut Dice, aggregates: u64) -> Vec<Uuid> {
    let mut writer = log.begin().await;
    let mut ids = Vec::new();
    let mut chosen: Vec<u64> = (0..=dice.roll(3)).map(|_| dice.roll(aggregates)).collect();
    chosen.sort_unstable();
    if dice.roll(4) == 0 {
        writer.touch().await.expect("touch");
        tokio::task::yield_now().await;
    }
    for aggregate in chosen {
        let aggregate = format!("a{aggregate}");
        let version = match writer.change(&aggregate).await {
            Ok(version) => version,
            // Another transaction was faster: an application begins anew.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                writer.rollback().await;
                return Vec::new();
            }
            Err(error) => panic!("change: {error}"),
        };
        ids.push(writer.record(&event(&aggregate, version)).await.expect("record"));
    }
    if dice.roll(5) == 0 {
        tokio::time::sleep(Duration::from_millis(dice.roll(20))).await;
    }
    if dice.roll(3) == 0 {
        writer.rollback().await;
        return Vec::new();
    }
    writer.commit().await.expect("commit");
    ids
}

/// One turn of a relay: claims a lane and works on it for a while. Whether there was anything to do.
async fn turn(
    store: &dyn Store,
    subscription: &str,
    owner: &str,
    manner: Manner,
    dice: &mut Dice,
    delivered: &Delivered,
    losses: &AtomicU64,
) -> bool {
    let mut held_since = Instant::now();
    let mut lease = match store.claim(subscription, owner, manner.lease).await {
        Ok(Some(lease)) => lease,
        Ok(None) => return false,
        // Another relay was just doing the same: SQLite has one writer, PostgreSQL may time a lock out.
        Err(error) if error.kind() == ErrorKind::Conflict => return false,
        Err(error) => panic!("claim: {error}"),
    };
    let mut worked = false;
    for _ in 0..10 {
        let batch = match store.read(&lease, &lease.position, manner.batch).await {
            Ok(batch) => batch,
            // The machine stood still for longer than the lease, and another relay has the lane.
            Err(error) if error.kind() == ErrorKind::LeaseLost && held_since.elapsed() >= manner.lease => {
                return true;
            }
            Err(error) => panic!("read: {error}"),
        };
        if dice.roll(manner.walks_away) == 0 {
            losses.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        if batch.is_idle() {
            break;
        }
        worked = true;
        // The lease is extended first, as a relay does that was slow: a stale one must not deliver.
        held_since = Instant::now();
        if store.extend(&mut lease, manner.lease, None).await.expect("extend") == LeaseStatus::Lost {
            return true;
        }
        for read in &batch.events {
            delivered.push(&read.event);
        }
        match settle(store, &mut lease, &batch).await {
            LeaseStatus::Held => {}
            LeaseStatus::Recalled => break,
            LeaseStatus::Lost if held_since.elapsed() < manner.lease => {
                panic!("the lease was extended a moment ago")
            }
            // The server stood still for longer than the lease: what was delivered comes again, as it must.
            LeaseStatus::Lost => {
                delivered.take_back(&batch);
                return true;
            }
        }
    }
    store.release(lease).await.expect("release");
    worked
}
