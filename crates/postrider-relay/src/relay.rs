//! The relay: subscriptions on a log, started and stopped together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider_core::{
    AuditEntry, Error, ErrorKind, Figures, Limits, Result, Source, Start, Store, Subscribed, Subscription,
    Uuid,
};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::bounded::{Bounded, within};
use crate::breaker::Breaker;
use crate::contrast::Contrast;
use crate::death::{Death, OnDeath};
use crate::lane_manager::LaneManager;
use crate::metrics::{self, RequestMetrics};
use crate::presence::{Health, Reporter, Run};
use crate::retry_policy::RetryPolicy;
use crate::runtime::{Outage, Settings, SubscriptionRuntime};
use crate::subscriber::Subscriber;
use crate::{Upcasters, wait};

/// How long a database may take to be opened, at least.
const OPEN: Duration = Duration::from_secs(30);
/// How long a report that is under way may take when the relay ends.
const LAST_WORD: Duration = Duration::from_secs(5);
/// More events than these are not counted.
const COUNTED: u64 = 1_000_000;
const A_YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// Subscriptions on a log, to be started together.
///
/// Any number of relays, in one process or in many, may run the same subscriptions: they share the lanes, and take over from
/// one that died when its lease has run out.
pub struct Relay<S: Source> {
    source: S,
    owner: String,
    settings: Settings,
    upcasters: Upcasters,
    on_death: OnDeath,
    hook: Option<BoxFuture<'static, ()>>,
    subscribers: Vec<Subscriber<S>>,
}

impl<S: Source> Relay<S> {
    /// A relay on the log of an outbox, without subscriptions yet.
    pub fn new(source: &S) -> Self {
        Self {
            source: source.clone(),
            owner: format!("relay-{}-{}", std::process::id(), &Uuid::now_v7().simple().to_string()[20..]),
            settings: Settings {
                lease: Duration::from_secs(30),
                poll: Duration::from_secs(10),
                grace: Duration::from_secs(10),
                figures: Some(Duration::from_secs(15)),
            },
            upcasters: Upcasters::new(),
            on_death: OnDeath::default(),
            hook: None,
            subscribers: Vec::new(),
        }
    }

    /// Adds a subscription.
    #[must_use]
    pub fn subscribe(mut self, name: &str, subscriber: impl FnOnce(Subscriber<S>) -> Subscriber<S>) -> Self {
        self.subscribers.push(subscriber(Subscriber::new(name)));
        self
    }

    /// What this relay is called where its leases are shown. It must be its own: made of the process id unless set.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// How long a lane stays claimed without a sign of life; 30 s unless set.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long a sleeping relay waits before it looks by itself, should nobody have been able to ring; 10 s unless set.
    #[must_use]
    pub fn poll_interval(mut self, poll: Duration) -> Self {
        self.settings.poll = poll;
        self
    }

    /// How long what is in flight may take to end when the relay stops; 10 s unless set.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// How often the gauges are counted; every 15 s unless set, never with nothing.
    #[must_use]
    pub fn figures_every(mut self, every: Option<Duration>) -> Self {
        self.settings.figures = every;
        self
    }

    /// The steps from old versions of payloads to the newest, for all subscriptions that have none of their own.
    #[must_use]
    pub fn upcasters(mut self, upcasters: Upcasters) -> Self {
        self.upcasters = upcasters;
        self
    }

    /// Calls this for each event that dies, once its death is settled: one after the other, beside the work, and to the end
    /// (within the grace period) when the relay stops.
    #[must_use]
    pub fn on_death<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Death) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (on_death, task) = OnDeath::new(hook);
        (self.on_death, self.hook) = (on_death, Some(task));
        self
    }

    fn check(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, "start", message));
        if self.subscribers.is_empty() {
            return invalid("the relay has no subscription: add one with subscribe(…)".to_owned());
        }
        for (index, subscriber) in self.subscribers.iter().enumerate() {
            subscriber.check()?;
            let name = &subscriber.subscription.name;
            if self.subscribers[..index].iter().any(|other| other.subscription.name == *name) {
                return invalid(format!("two subscriptions are called {name:?}; a name belongs to one"));
            }
        }
        if self.owner.is_empty() || self.owner.len() > Limits::NAME || self.owner.contains('\0') {
            return invalid(format!("the owner's name has 1 to {} bytes and no NUL", Limits::NAME));
        }
        if self.settings.lease < Duration::from_millis(100) {
            return invalid("a lease lasts at least 100 ms".to_owned());
        }
        if self.settings.poll.is_zero() {
            return invalid("the poll interval is longer than nothing".to_owned());
        }
        let times = [self.settings.lease, self.settings.poll, self.settings.grace];
        if times.iter().chain(&self.settings.figures).any(|time| *time > A_YEAR) {
            return invalid(
                "a lease, the poll interval, the grace period and the time between figures are at most a year"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Makes sure that the subscriptions exist, and begins to work on them.
    ///
    /// What can be wrong in the relay itself is said here: a name used twice, two handlers for one type, no lanes, an empty
    /// schedule, a gap between upcasters, a lease too short for its destination. The database is not asked then, and nothing is started.
    pub async fn start(mut self) -> Result<Running> {
        self.check()?;
        let mut sinks = Vec::with_capacity(self.subscribers.len());
        for subscriber in &mut self.subscribers {
            let sink = subscriber.take_sink(&self.source, &self.upcasters)?;
            let (least, name) = (sink.least_lease(), &subscriber.subscription.name);
            if self.settings.lease < least {
                let message = format!(
                    "subscription {name:?}: a lease of {:?} is too short for what its destination may still hold when it is \
                     lost; let it last {least:?} or more, or let the destination wait for less long",
                    self.settings.lease
                );
                return Err(Error::new(ErrorKind::Invalid, "start", message));
            }
            sinks.push(sink);
        }
        let store = within(self.settings.lease.max(OPEN), "start", self.source.open()).await?;
        let store: Arc<dyn Store> = Arc::new(Bounded::new(store, self.settings.lease));
        let (stop, stopping) = watch::channel(false);
        let changed = Arc::new(Notify::new());
        let mut runtimes = Vec::with_capacity(self.subscribers.len());
        let mut subscriptions = Vec::with_capacity(self.subscribers.len());
        for (subscriber, sink) in self.subscribers.into_iter().zip(sinks) {
            let run = Run::new(subscriber.settings(sink.batch()), Arc::clone(&changed));
            let subscription = subscriber.subscription;
            let name: Arc<str> = subscription.name.as_str().into();
            metrics::begin(&subscription, &*sink);
            runtimes.push(Arc::new(SubscriptionRuntime {
                store: Arc::clone(&store),
                clock: self.source.clock(),
                owner: self.owner.clone(),
                settings: self.settings,
                batch: subscriber.batch.unwrap_or_else(|| sink.batch()),
                sink,
                concurrency: subscriber.concurrency,
                timeout: subscriber.timeout,
                patience: subscriber.patience,
                order: subscription.order,
                on_dead: subscription.on_dead,
                deaths: subscriber.deaths,
                retry_policy: RetryPolicy {
                    retry: subscriber.retry,
                    while_unavailable: subscriber.while_unavailable,
                },
                breaker: Breaker::new(&name, subscriber.longest_pause).telling(&changed),
                contrast: Contrast::default(),
                requests: Arc::new(RequestMetrics::new(&name)),
                on_death: self.on_death.clone(),
                outage: Outage::new(Arc::clone(&name)),
                stop: stopping.clone(),
                run,
                name,
            }));
            subscriptions.push(subscription);
        }
        for subscription in &subscriptions {
            if store.subscribe(subscription).await? == Subscribed::New {
                say_new(&*store, subscription, &self.owner).await;
            }
        }
        let mut reporter = Reporter::new(Arc::clone(&store), &self.owner, &runtimes, changed);
        reporter.say().await;
        let health = Health::of(&runtimes);
        let mut managers = JoinSet::new();
        for runtime in runtimes {
            managers.spawn(LaneManager::new(runtime).keep());
        }
        let hook = self.hook.map(|task| (tokio::spawn(task), self.settings.grace));
        let relay = reporter.id();
        let end = Arc::new(Notify::new());
        let reporter = (tokio::spawn(reporter.keep_reporting(Arc::clone(&end))), end);
        Ok(Running { store, stop, managers, hook, health, relay, reporter })
    }

    /// Runs until the process is asked to end (SIGTERM, SIGINT, or SIGHUP unless that is ignored), and stops then.
    pub async fn run(self) -> Result<()> {
        self.run_until(asked_to_end()).await
    }

    /// Runs until the future is ready, and stops then. A subscription's task that ends by itself ends it, too.
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<()> {
        let mut running = self.start().await?;
        let failed = tokio::select! {
            () = end => None,
            error = running.failed() => Some(error),
        };
        let stopped = running.stop().await;
        failed.map_or(stopped, Err)
    }
}

/// Ready when the process is asked to end: SIGTERM, SIGINT, or SIGHUP, which a terminal sends when it is closed. Where SIGHUP was
/// ignored at the start, as under `nohup`, it stays ignored.
pub async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            let mut hangup = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
                Some(_) = async { hangup.as_mut()?.recv().await } => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Whether this process ignores SIGHUP. Where the system does not tell, it does not.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is number 1, the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A relay at work. Dropped, it is asked to stop, but nobody waits for it.
pub struct Running {
    store: Arc<dyn Store>,
    stop: watch::Sender<bool>,
    managers: JoinSet<()>,
    hook: Option<(JoinHandle<()>, Duration)>,
    health: Health,
    /// What the relay is known by, and who reports on it.
    relay: Uuid,
    reporter: (JoinHandle<()>, Arc<Notify>),
}

impl Running {
    /// Stops: what is in flight is finished, or given back when the grace period is over; lanes are given back. Nothing that
    /// was finished is delivered again.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.send_replace(true);
        let mut result = Ok(());
        while let Some(ended) = self.managers.join_next().await {
            if let Err(error) = ended {
                result = Err(ended_by_itself("stop", Some(&error)));
            }
        }
        if let Some((hook, grace)) = self.hook.take()
            && tokio::time::timeout(grace, hook).await.is_err()
        {
            tracing::warn!("the hook for deaths did not end within the grace period");
        }
        // It may be in the middle of a report, which must not come after the last word.
        self.reporter.1.notify_one();
        if tokio::time::timeout(LAST_WORD, &mut self.reporter.0).await.is_err() {
            self.reporter.0.abort();
        }
        if let Err(error) = self.store.deregister(self.relay).await {
            tracing::debug!(error = %error, "the relay could not say that it ends; it is taken for gone after a minute");
        }
        result
    }

    /// Ready when a subscription's task has ended though nobody stopped the relay, which is a defect. Its events are not
    /// delivered from then on: stop the relay, and start another. Cancelled, it loses nothing; without a subscription it is
    /// never ready.
    pub async fn failed(&mut self) -> Error {
        first_end(&mut self.managers).await
    }

    /// What keeps subscriptions of this relay from being delivered though the database answers.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The log, for whoever wants to look.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Waits until an event was delivered to a subscription: to read one's own writes. See [`wait::delivered`].
    pub async fn delivered(&self, subscription: &str, event_id: Uuid, within: Duration) -> Result<()> {
        wait::delivered(&*self.store, subscription, event_id, within).await
    }
}

/// Says that a subscription is new, and how much of the log it will read: who renames one has everything delivered again.
async fn say_new(store: &dyn Store, subscription: &Subscription, owner: &str) {
    let name = &subscription.name;
    let figures = store.figures(name).await;
    let events = figures.map(|figures| figures.iter().map(Figures::undelivered).sum::<u64>());
    let start = match subscription.start {
        Start::Beginning => "the beginning".to_owned(),
        Start::Now => "now".to_owned(),
        Start::At(time) => time.to_string(),
    };
    // Of a longer backlog, and of what a filter leaves out, only the beginning is looked at.
    let exact = subscription.filter.is_all() && events.as_ref().is_ok_and(|events| *events < COUNTED);
    let at_least = if exact { "" } else { "at least " };
    match &events {
        Ok(0) => {
            tracing::info!(subscription = %name, start, "the subscription is new; the log has no event for it yet");
        }
        Ok(events) => tracing::warn!(subscription = %name, start, events,
            exact, "the subscription is new, and will be sent events that are in the log already; was it renamed?"),
        Err(error) => tracing::warn!(subscription = %name, start, error = %error, "the subscription is new"),
    }
    let why = match events {
        Ok(events) => format!(
            "new to the log; it starts at {start}; events already in the log that it will be sent: {at_least}{events}"
        ),
        Err(_) => format!("new to the log; it starts at {start}"),
    };
    let entry = AuditEntry {
        who: owner.to_owned(),
        what: "subscribe".to_owned(),
        why: Some(why),
        subscription: Some(name.clone()),
        event_id: None,
    };
    if let Err(error) = store.audit(&entry).await {
        tracing::warn!(subscription = %name, error = %error, "the audit does not have the new subscription");
    }
}

async fn first_end(managers: &mut JoinSet<()>) -> Error {
    match managers.join_next().await {
        Some(ended) => ended_by_itself("run", ended.err().as_ref()),
        None => std::future::pending().await,
    }
}

fn ended_by_itself(operation: &'static str, why: Option<&JoinError>) -> Error {
    let message = match why {
        // What a panic says may quote an event.
        Some(error) if error.is_panic() => "a subscription's task panicked",
        _ => "a subscription's task ended unexpectedly",
    };
    Error::new(ErrorKind::Internal, operation, message)
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.managers.detach_all();
        self.reporter.0.abort();
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running({} subscriptions)", self.managers.len())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_keeper_that_panics_is_noticed_while_the_others_work() {
        let mut managers = JoinSet::new();
        managers.spawn(std::future::pending());
        managers.spawn(async { panic!("of order 4711") });
        let error = first_end(&mut managers).await;
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "a subscription's task panicked");
        assert_eq!(managers.len(), 1, "the other one goes on");
    }

    #[tokio::test]
    async fn a_keeper_that_just_ends_is_noticed() {
        let mut managers = JoinSet::new();
        managers.spawn(async {});
        assert_eq!(first_end(&mut managers).await.message(), "a subscription's task ended unexpectedly");
    }

    #[tokio::test]
    async fn a_relay_whose_keepers_work_has_not_failed() {
        let mut managers = JoinSet::new();
        assert!(first_end(&mut managers).now_or_never().is_none(), "without any");
        managers.spawn(std::future::pending());
        tokio::task::yield_now().await;
        assert!(first_end(&mut managers).now_or_never().is_none());
    }
}
