//! A subscription as this relay runs it: what its lanes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider_core::{Clock, Error, OnDead, Order, Sink, Store};
use tokio::sync::watch;

use crate::breaker::Breaker;
use crate::death::OnDeath;
use crate::judge::Judge;

/// A subscription as this relay runs it.
pub(crate) struct Reader {
    pub(crate) name: Arc<str>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Clock,
    pub(crate) owner: String,
    pub(crate) settings: Settings,
    pub(crate) batch: u32,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) order: Order,
    pub(crate) on_dead: OnDead,
    /// After how many deaths of a process an event that it was handling is dead.
    pub(crate) deaths: u32,
    pub(crate) judge: Judge,
    pub(crate) breaker: Breaker,
    pub(crate) on_death: OnDeath,
    pub(crate) outage: Outage,
    pub(crate) stop: watch::Receiver<bool>,
}

/// What holds for all subscriptions of a relay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) lease: Duration,
    pub(crate) poll: Duration,
    pub(crate) grace: Duration,
    pub(crate) figures: Option<Duration>,
}

impl Reader {
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Ends when the relay is to stop.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // Nobody can stop it any more once the relay itself is gone: then it stops, too.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Sleeps, unless the relay is to stop.
    pub(crate) async fn rest(&self, time: Duration) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.stopped() => {}
        }
    }

    /// How long a sleep may last: with a clock that is turned by hand nobody knows when it is turned.
    pub(crate) fn at_most(&self, time: Duration) -> Duration {
        match self.clock {
            Clock::Database => time,
            Clock::Manual(_) => time.min(Duration::from_millis(5)),
        }
    }
}

/// Whether the database answers, said once when it stops and once when it is back.
pub(crate) struct Outage {
    subscription: Arc<str>,
    on: AtomicBool,
}

impl Outage {
    pub(crate) fn new(subscription: Arc<str>) -> Self {
        Self { subscription, on: AtomicBool::new(false) }
    }

    pub(crate) fn begins(&self, error: &Error) {
        if !self.on.swap(true, Ordering::AcqRel) {
            tracing::warn!(subscription = %self.subscription, error = %error,
                "the database does not answer as it should; trying again until it does");
        } else {
            tracing::debug!(subscription = %self.subscription, error = %error, "the database still does not answer");
        }
    }

    pub(crate) fn is_over(&self) {
        if self.on.load(Ordering::Acquire) && self.on.swap(false, Ordering::AcqRel) {
            tracing::info!(subscription = %self.subscription, "the database answers again");
        }
    }
}
