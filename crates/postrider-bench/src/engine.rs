//! The engine: a relay with handlers, on the same logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Delivery, Sink, Unavailable};
use postrider_postgres::Outbox;
use postrider_relay::{Received, Relay, Subscriber};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::AnyError;
use crate::data::OrderPaid;

pub mod drain;
pub mod effects;
mod endpoint;
pub mod idle;
pub mod latency;
pub mod memory;
pub mod open;
pub mod slow;

/// Nothing that is measured here takes as long: a relay that has not handled all by then has lost something.
const LONGEST: Duration = Duration::from_secs(600);

/// How many events were handled, for who waits until all are.
pub(crate) struct Tally {
    handled: AtomicU64,
    all: u64,
    done: Notify,
}

impl Tally {
    pub(crate) fn new(all: u64) -> Arc<Self> {
        Arc::new(Self { handled: AtomicU64::new(0), all, done: Notify::new() })
    }

    /// One more.
    pub(crate) fn add(&self) {
        self.add_many(1);
    }

    /// So many more.
    pub(crate) fn add_many(&self, events: u64) {
        let before = self.handled.fetch_add(events, Ordering::Relaxed);
        if before < self.all && before + events >= self.all {
            self.done.notify_one();
        }
    }

    /// Waits until all are handled.
    pub(crate) async fn wait(&self) -> Result<(), AnyError> {
        let waited = tokio::time::timeout(LONGEST, self.done.notified()).await;
        waited
            .map_err(|_| format!("{} of {} events were handled in {LONGEST:?}", self.now(), self.all).into())
    }

    fn now(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// Makes sure that none was handled twice, once the relays have stopped.
    pub(crate) fn check(&self) -> Result<(), AnyError> {
        match self.now() {
            handled if handled == self.all => Ok(()),
            handled => Err(format!("{handled} events were handled where there were {}", self.all).into()),
        }
    }
}

/// A sink that counts what its destination has confirmed.
pub(crate) struct Counted<S> {
    pub(crate) sink: S,
    pub(crate) tally: Arc<Tally>,
}

#[async_trait]
impl<S: Sink> Sink for Counted<S> {
    fn batch(&self) -> u32 {
        self.sink.batch()
    }

    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let events = delivery.events.len() as u64;
        self.sink.deliver(delivery).await?;
        self.tally.add_many(events);
        Ok(())
    }
}

/// A name that no subscription has.
pub(crate) fn new_name() -> String {
    format!("bench {}", Uuid::now_v7())
}

/// A subscription whose handler does nothing but count.
pub(crate) fn counting(subscriber: Subscriber<Outbox>, tally: &Arc<Tally>, lanes: u32) -> Subscriber<Outbox> {
    let tally = Arc::clone(tally);
    subscriber.lanes(lanes).on(move |event: Received<OrderPaid>| {
        let tally = Arc::clone(&tally);
        async move {
            std::hint::black_box(event.into_inner());
            tally.add();
        }
    })
}

/// A relay whose handler does nothing but count.
pub(crate) fn counting_relay(outbox: &Outbox, name: &str, tally: &Arc<Tally>, lanes: u32) -> Relay<Outbox> {
    Relay::new(outbox).subscribe(name, |subscriber| counting(subscriber, tally, lanes))
}
