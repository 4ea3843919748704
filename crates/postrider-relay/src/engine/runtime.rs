//! A subscription as this relay runs it: what its lanes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postrider_core::{
    Clock, Error, EventLog, Inspect, OffsetDateTime, OnDead, Order, PastAttempt, Report, Sink, chance,
};
use tokio::sync::watch;

use crate::engine::breaker::Breaker;
use crate::engine::contrast::{Contrast, DestinationState, Interpreted, Try};
use crate::engine::retry_policy::RetryPolicy;
use crate::engine::work::Item;
use crate::observe::death::OnDeath;
use crate::observe::metrics::RequestMetrics;
use crate::observe::presence::Run;

/// A subscription as this relay runs it.
pub(crate) struct SubscriptionRuntime {
    pub(crate) name: Arc<str>,
    /// What the lanes call.
    pub(crate) store: Arc<dyn EventLog>,
    /// What the gauges call.
    pub(crate) inspect: Arc<dyn Inspect>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Clock,
    pub(crate) owner: String,
    pub(crate) settings: Settings,
    pub(crate) batch: u32,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    /// How long a batch waits at most for its last events, once all are begun.
    pub(crate) patience: Duration,
    pub(crate) order: Order,
    pub(crate) on_dead: OnDead,
    /// After how many deaths of a process an event that it was handling is dead.
    pub(crate) deaths: u32,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) breaker: Breaker,
    pub(crate) contrast: Contrast,
    pub(crate) requests: Arc<RequestMetrics>,
    pub(crate) on_death: OnDeath,
    pub(crate) outage: Outage,
    pub(crate) run: Run,
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

impl SubscriptionRuntime {
    /// Decides by contrast what tries that ended mean. `refused`: the destination said of itself that it is away. `under_way` is
    /// what has no answer yet.
    pub(crate) fn interpret(
        &self,
        tries: Vec<Option<Try>>,
        refused: bool,
        under_way: Vec<(u64, Instant)>,
    ) -> Interpreted {
        let (open, back) = (self.breaker.is_open(), self.breaker.back_since());
        self.contrast.interpret(tries, DestinationState { open, refused, back, under_way })
    }

    /// Says what follows for an event from a try, and notes the try with the event if it failed.
    pub(crate) fn decide(&self, item: &mut Item, report: Report, now: OffsetDateTime) {
        let Report { outcome, began, ended } = report;
        // Chance costs a call of the system.
        let chance = if outcome.is_delivered() { 0.5 } else { chance() };
        let decision = self.retry_policy.retry_policy(item.case(now), outcome, chance);
        if let Some(failure) = decision.failure() {
            let at = now - began.elapsed();
            item.note(PastAttempt::new(
                at,
                &self.owner,
                Some(ended.saturating_duration_since(began)),
                failure,
            ));
        }
        item.decision = Some(decision);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Ends when the relay is to stop.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // When the relay was dropped, nothing else can stop this: then it stops, too.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Sleeps, unless the relay is to stop.
    pub(crate) async fn rest(&self, time: Duration) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.stopped() => {}
        }
    }

    /// How long a sleep may last: a test may move a manual clock at any moment.
    pub(crate) fn at_most(&self, time: Duration) -> Duration {
        match self.clock {
            Clock::Database => time,
            Clock::Manual(_) => time.min(Duration::from_millis(5)),
        }
    }
}

/// Whether the database answers: logged once when it stops answering and once when it is back.
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
                "a request to the database failed; retrying until it succeeds");
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
