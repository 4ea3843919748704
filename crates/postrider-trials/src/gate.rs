//! Where a relay stands still: a store like any other, but for the point at which it says so and waits.

use std::io::{BufRead, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider::store::{
    Batch, Bell, Clock, DueBatch, Effect, EventLog, Lease, LeaseStatus, OutboxSource, Position, Settlement,
    Store, Subscribed, Subscription,
};
use postrider::{Error, ErrorKind, NewEvent, Recorded, Result, Uuid};
use tokio::sync::Semaphore;

use crate::relay_options::{Point, Stand};

/// Says something to the test that started this process. Nobody there to hear it is no trouble of ours.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The point at which a relay stands still, until it is told to go on.
#[derive(Debug)]
pub struct Gate {
    stand: Option<Stand>,
    times: AtomicU32,
    open: Semaphore,
}

impl Gate {
    /// A gate at that point, or none. The word `go` on stdin opens it; the end of stdin is the end of the process, because
    /// the test is gone.
    pub fn new(stand: Option<Stand>) -> Arc<Self> {
        let gate = Arc::new(Self { stand, times: AtomicU32::new(0), open: Semaphore::new(0) });
        let listener = Arc::clone(&gate);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                match line {
                    Ok(line) if line == "go" => listener.open.add_permits(1),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            std::process::exit(3);
        });
        gate
    }

    /// Whether it is now that the relay is to stand still there.
    fn is_here(&self, point: Point, subscription: &str) -> bool {
        self.stand.as_ref().is_some_and(|stand| {
            stand.point == point
                && stand.subscription == subscription
                && self.times.fetch_add(1, Ordering::AcqRel) + 1 == stand.nth
        })
    }

    async fn wait(&self, point: Point) {
        say(&format!("at {point}"));
        if let Ok(permit) = self.open.acquire().await {
            permit.forget();
        }
    }

    /// Comes to a point, and stands still there if that was asked for.
    pub async fn pass(&self, point: Point, subscription: &str) {
        if self.is_here(point, subscription) {
            self.wait(point).await;
        }
    }
}

/// An outbox with a gate in its log.
#[derive(Clone)]
pub struct Gated<S> {
    outbox: S,
    gate: Arc<Gate>,
}

impl<S: OutboxSource> Gated<S> {
    /// The outbox with the gate.
    pub fn new(outbox: &S, gate: &Arc<Gate>) -> Self {
        Self { outbox: outbox.clone(), gate: Arc::clone(gate) }
    }
}

#[async_trait]
impl<S: OutboxSource> OutboxSource for Gated<S> {
    type Connection = S::Connection;
    type Transaction = S::Transaction;

    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(GatedStore { store: self.outbox.open().await?, gate: Arc::clone(&self.gate) }))
    }

    fn clock(&self) -> Clock {
        self.outbox.clock()
    }

    async fn begin(&self, effect: Effect<'_>) -> Result<(S::Transaction, Vec<bool>)> {
        self.gate.pass(Point::Beginning, effect.consumer).await;
        self.outbox.begin(effect).await
    }

    async fn commit(transaction: S::Transaction) -> Result<()> {
        S::commit(transaction).await
    }

    async fn rollback(transaction: S::Transaction) -> Result<()> {
        S::rollback(transaction).await
    }

    async fn mark_in(&self, connection: &mut S::Connection, consumer: &str, id: Uuid) -> Result<bool> {
        self.outbox.mark_in(connection, consumer, id).await
    }

    async fn record_in(&self, connection: &mut S::Connection, event: &NewEvent) -> Result<Uuid> {
        self.outbox.record_in(connection, event).await
    }

    async fn record_alone(&self, event: &NewEvent) -> Result<Uuid> {
        self.outbox.record_alone(event).await
    }

    async fn recorded(&self, after: i64, limit: u32) -> Result<Vec<Recorded>> {
        self.outbox.recorded(after, limit).await
    }

    async fn handled(&self, consumer: &str, events: &[Uuid]) -> Result<Vec<bool>> {
        self.outbox.handled(consumer, events).await
    }
}

struct GatedStore {
    store: Arc<dyn Store>,
    gate: Arc<Gate>,
}

#[async_trait]
impl EventLog for GatedStore {
    async fn subscribe(&self, subscription: &Subscription) -> Result<Subscribed> {
        self.store.subscribe(subscription).await
    }

    async fn claim(&self, subscription: &str, owner: &str, lease: Duration) -> Result<Option<Lease>> {
        let lease = self.store.claim(subscription, owner, lease).await?;
        if let Some(Lease { lane, epoch, claims, .. }) = &lease {
            tracing::info!("{subscription} {lane}, epoch {epoch}: claimed, {claims} since the last word");
            self.gate.pass(Point::Claimed, subscription).await;
        }
        Ok(lease)
    }

    async fn extend(
        &self,
        lease: &mut Lease,
        by: Duration,
        reading: Option<&Position>,
    ) -> Result<LeaseStatus> {
        let status = self.store.extend(lease, by, reading).await;
        note("extended", lease, &status.as_ref().copied());
        status
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        let subscription = lease.subscription.clone();
        tracing::info!("{subscription} {}, epoch {}: released", lease.lane, lease.epoch);
        self.store.release(lease).await?;
        say(&format!("released {subscription}"));
        Ok(())
    }

    async fn read(&self, lease: &Lease, from: &Position, limit: u32) -> Result<Batch> {
        let batch = self.store.read(lease, from, limit).await;
        if let Err(error) = &batch {
            note("read", lease, &Err(error));
        }
        batch
    }

    async fn due(&self, lease: &Lease, limit: u32) -> Result<DueBatch> {
        self.store.due(lease, limit).await
    }

    async fn settle(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        let subscription = lease.subscription.clone();
        if settlement.from == settlement.to {
            let status = self.settle_aloud(lease, settlement).await?;
            return self.answer(status, Point::DeliveryUnanswered, &subscription);
        }
        if settlement.count == 0 {
            // The filter wanted none of what was looked at: nothing was delivered.
            return self.settle_aloud(lease, settlement).await;
        }
        self.gate.pass(Point::Delivered, &subscription).await;
        let status = {
            let mut settling = pin!(self.settle_aloud(lease, settlement));
            if self.gate.is_here(Point::Settling, &subscription) {
                // As far as it gets in a moment: the statement is on its way, or the transaction is open.
                let _ = tokio::time::timeout(Duration::from_micros(300), &mut settling).await;
                self.gate.wait(Point::Settling).await;
            }
            settling.await?
        };
        self.gate.pass(Point::Settled, &subscription).await;
        self.answer(status, Point::BatchUnanswered, &subscription)
    }

    fn bell(&self) -> Box<dyn Bell> {
        self.store.bell()
    }
}

postrider_conformance::pass_on!(GatedStore);

/// Whoever reads what a relay said wants to know when it lost a lane.
fn note(what: &str, lease: &Lease, status: &Result<LeaseStatus, &Error>) {
    let Lease { subscription, lane, epoch, .. } = lease;
    match status {
        Ok(LeaseStatus::Held) => {}
        Ok(status) => tracing::warn!("{subscription} {lane}, epoch {epoch}: {what}, {status:?}"),
        Err(error) => tracing::warn!("{subscription} {lane}, epoch {epoch}: not {what}: {error}"),
    }
}

impl GatedStore {
    async fn settle_aloud(&self, lease: &mut Lease, settlement: &Settlement) -> Result<LeaseStatus> {
        let status = self.store.settle(lease, settlement).await;
        note("settled", lease, &status.as_ref().copied());
        status
    }

    /// What the engine is told of a settle that was done: the truth, or that its answer was lost.
    fn answer(&self, status: LeaseStatus, point: Point, subscription: &str) -> Result<LeaseStatus> {
        if !self.gate.is_here(point, subscription) {
            return Ok(status);
        }
        say(&format!("at {point}"));
        Err(Error::new(
            ErrorKind::Unreachable,
            "settle",
            "the answer was lost on its way, as this trial wants it",
        ))
    }
}
