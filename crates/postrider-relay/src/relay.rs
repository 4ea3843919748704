//! The relay: subscriptions on a log, started and stopped together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use postrider_core::{
    AuditEntry, Clock, Error, ErrorKind, History, Limits, OutboxSource, Result, Sink, Start, Store,
    Subscribed, Subscription, Uuid,
};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::bounded::{Bounded, within};
use crate::engine::breaker::Breaker;
use crate::engine::contrast::Contrast;
use crate::engine::lane_manager::LaneManager;
use crate::engine::retry_policy::RetryPolicy;
use crate::engine::runtime::{Outage, Settings, SubscriptionRuntime};
use crate::observe::death::{Death, OnDeath};
use crate::observe::metrics::{self, RequestMetrics};
use crate::observe::presence::{Health, Reporter, Run};
use crate::running::{Running, asked_to_end};
use crate::subscriber::Subscriber;
use crate::subscriber_info::SubscriberInfo;
use crate::{Upcasters, defaults};

/// How long a database may take to be opened, at least.
const OPEN: Duration = Duration::from_secs(30);
const A_YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// Runs subscriptions on a log.
///
/// Any number of relays, in one process or in many, may run the same subscriptions: they share the lanes, and take over the lanes
/// of a dead relay once its lease has expired.
///
/// ```
/// use postrider::testing::{Outbox, until_quiet};
/// use postrider::{Event, Failure, Received, Relay};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Event)]
/// #[event(stream = "orders", aggregate = "Order", id = order)]
/// struct OrderPaid {
///     order: i64,
/// }
///
/// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
///     println!("order {} is paid", event.order);
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> postrider::Result<()> {
/// let outbox = Outbox::new(); // in an application: the outbox of its database
/// let relay = Relay::new(&outbox).subscribe("receipts", |s| s.on(receipt)).start().await?;
///
/// let mut tx = outbox.begin().await?;
/// outbox.record(&mut tx, &OrderPaid { order: 7 }).await?;
/// tx.commit().await?;
///
/// until_quiet(&relay, "receipts").await?;
/// relay.stop().await
/// # }
/// ```
///
/// A program that only relays calls [`run`](Relay::run) instead of `start`: it ends with Ctrl-C or SIGTERM.
pub struct Relay<S: OutboxSource> {
    source: S,
    owner: String,
    settings: Settings,
    upcasters: Upcasters,
    on_death: OnDeath,
    hook: Option<BoxFuture<'static, ()>>,
    subscribers: Vec<Subscriber<S>>,
}

impl<S: OutboxSource> Relay<S> {
    /// A relay on the log of an outbox, without subscriptions.
    pub fn new(source: &S) -> Self {
        Self {
            source: source.clone(),
            owner: format!("relay-{}-{}", std::process::id(), &Uuid::now_v7().simple().to_string()[20..]),
            settings: Settings {
                lease: defaults::LEASE,
                poll: defaults::POLL_INTERVAL,
                grace: defaults::SHUTDOWN_GRACE,
                figures: Some(defaults::FIGURES_EVERY),
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

    /// The subscriptions as data, for a catalog.
    pub fn subscriber_infos(&self) -> Vec<SubscriberInfo> {
        self.subscribers.iter().map(Subscriber::info).collect()
    }

    /// The upcasters that all subscriptions share.
    pub fn shared_upcasters(&self) -> &Upcasters {
        &self.upcasters
    }

    /// The name of this relay in its leases. It must be unique. Default: made from the process id.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// How long a lane stays claimed without an extension. Default: 30 s.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long an idle relay waits before it reads the log even if no bell rings. Default: 10 s.
    #[must_use]
    pub fn poll_interval(mut self, poll: Duration) -> Self {
        self.settings.poll = poll;
        self
    }

    /// How long a stopping relay waits for deliveries in flight. Default: 10 s.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// How often the gauges are counted; `None` turns them off. Default: every 15 s.
    #[must_use]
    pub fn figures_every(mut self, every: Option<Duration>) -> Self {
        self.settings.figures = every;
        self
    }

    /// Upcasters from old versions of payloads to the newest, for all subscriptions without their own.
    #[must_use]
    pub fn upcasters(mut self, upcasters: Upcasters) -> Self {
        self.upcasters = upcasters;
        self
    }

    /// Calls `hook` for each event that dies, once its death is settled: one after the other, in parallel to deliveries. When the relay
    /// stops, the remaining calls finish within the grace period.
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
            return invalid("the relay has no subscription; add one with subscribe(…)".to_owned());
        }
        for (index, subscriber) in self.subscribers.iter().enumerate() {
            subscriber.check()?;
            let name = &subscriber.subscription.name;
            if self.subscribers[..index].iter().any(|other| other.subscription.name == *name) {
                return invalid(format!("two subscriptions are named {name:?}; names must be unique"));
            }
        }
        if self.owner.is_empty() || self.owner.len() > Limits::NAME || self.owner.contains('\0') {
            return invalid(format!(
                "the owner's name must have 1 to {} bytes and no NUL character",
                Limits::NAME
            ));
        }
        if self.settings.lease < Duration::from_millis(100) {
            return invalid("lease must be at least 100 ms".to_owned());
        }
        if self.settings.poll.is_zero() {
            return invalid("poll_interval must be greater than 0".to_owned());
        }
        let times = [self.settings.lease, self.settings.poll, self.settings.grace];
        if times.iter().chain(&self.settings.figures).any(|time| *time > A_YEAR) {
            return invalid(
                "lease, poll_interval, shutdown_grace and figures_every must be at most a year".to_owned(),
            );
        }
        Ok(())
    }

    /// Where the events of each subscription go.
    fn take_sinks(&mut self) -> Result<Vec<Arc<dyn Sink>>> {
        let mut sinks = Vec::with_capacity(self.subscribers.len());
        for subscriber in &mut self.subscribers {
            let sink = subscriber.take_sink(&self.source, &self.upcasters)?;
            let (least, name) = (sink.least_lease(), &subscriber.subscription.name);
            if self.settings.lease < least {
                let message = format!(
                    "subscription {name:?}: a lease of {:?} is too short for its destination, which could go on sending after the lease \
                     is lost; set the lease to {least:?} or more, or shorten the timeout of the destination",
                    self.settings.lease
                );
                return Err(Error::new(ErrorKind::Invalid, "start", message));
            }
            sinks.push(sink);
        }
        Ok(sinks)
    }

    /// Creates or updates the subscriptions, and starts to deliver.
    ///
    /// It fails before it contacts the database if the relay itself is wrong: a duplicate name, two handlers for one type, no lanes,
    /// an empty schedule, a gap between upcasters, a lease that is too short for its destination.
    pub async fn start(mut self) -> Result<Running> {
        self.check()?;
        let sinks = self.take_sinks()?;
        let store = within(self.settings.lease.max(OPEN), "start", self.source.open()).await?;
        let store: Arc<dyn Store> = Arc::new(Bounded::new(store, self.settings.lease));
        let (stop, stopping) = watch::channel(false);
        let changed = Arc::new(Notify::new());
        let shared = Shared {
            store: Arc::clone(&store),
            clock: self.source.clock(),
            owner: self.owner.clone(),
            settings: self.settings,
            on_death: self.on_death,
            stop: stopping,
            changed: Arc::clone(&changed),
        };
        let mut runtimes = Vec::with_capacity(sinks.len());
        let mut subscriptions = Vec::with_capacity(sinks.len());
        for (subscriber, sink) in self.subscribers.into_iter().zip(sinks) {
            let subscription = subscriber.subscription.clone();
            metrics::begin(&subscription, &*sink);
            runtimes.push(Arc::new(shared.runtime(subscriber, sink)));
            subscriptions.push(subscription);
        }
        let mut new = Vec::new();
        for subscription in &subscriptions {
            if store.subscribe(subscription).await? == Subscribed::New {
                new.push(subscription);
            }
        }
        // First of all: to count a long log takes a while, and nobody may remove meanwhile what this relay is about to run.
        let mut reporter = Reporter::new(&store, &self.owner, &runtimes, changed);
        reporter.say().await;
        let counting = async {
            for subscription in new {
                say_new(&*store, subscription, &self.owner).await;
            }
        };
        reporter.say_during(counting).await;
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

    /// Runs until the process gets SIGTERM, SIGINT or SIGHUP (unless that is ignored), then stops.
    pub async fn run(self) -> Result<()> {
        self.run_until(asked_to_end()).await
    }

    /// Runs until the future is ready, then stops. It also stops if the task of a subscription ends unexpectedly.
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

/// What the subscriptions of a relay share.
struct Shared {
    store: Arc<dyn Store>,
    clock: Clock,
    owner: String,
    settings: Settings,
    on_death: OnDeath,
    stop: watch::Receiver<bool>,
    changed: Arc<Notify>,
}

impl Shared {
    /// A subscription as this relay runs it.
    fn runtime<S: OutboxSource>(
        &self,
        subscriber: Subscriber<S>,
        sink: Arc<dyn Sink>,
    ) -> SubscriptionRuntime {
        let run = Run::new(subscriber.settings(sink.batch()), Arc::clone(&self.changed));
        let name: Arc<str> = subscriber.subscription.name.as_str().into();
        SubscriptionRuntime {
            store: self.store.clone(),
            inspect: self.store.clone(),
            clock: self.clock.clone(),
            owner: self.owner.clone(),
            settings: self.settings,
            batch: subscriber.batch.unwrap_or_else(|| sink.batch()),
            sink,
            concurrency: subscriber.concurrency,
            timeout: subscriber.timeout,
            patience: subscriber.patience,
            order: subscriber.subscription.order,
            on_dead: subscriber.subscription.on_dead,
            deaths: subscriber.deaths,
            retry_policy: RetryPolicy {
                retry: subscriber.retry,
                while_unavailable: subscriber.while_unavailable,
            },
            breaker: Breaker::new(&name, subscriber.longest_pause).telling(&self.changed),
            contrast: Contrast::default(),
            requests: Arc::new(RequestMetrics::new(&name)),
            on_death: self.on_death.clone(),
            outage: Outage::new(Arc::clone(&name)),
            stop: self.stop.clone(),
            run,
            name,
        }
    }
}

/// Logs that a subscription is new, and how much of the log it will read: after a rename everything is delivered again.
async fn say_new(store: &dyn Store, subscription: &Subscription, owner: &str) {
    let name = &subscription.name;
    let history = History::of(store, name).await;
    let start = match subscription.start {
        Start::Beginning => "the beginning".to_owned(),
        Start::Now => "now".to_owned(),
        Start::At(time) => time.to_string(),
    };
    match &history {
        Ok(history) if history.is_empty() => {
            tracing::info!(subscription = %name, start, "created the subscription; the log has no events for it yet");
        }
        Ok(History { events: 0, .. }) => tracing::warn!(subscription = %name, start,
            "created the subscription; none of the first events in the log is for it, but later ones may be"),
        Ok(History { events, exact }) => tracing::warn!(subscription = %name, start, events,
            exact, "created the subscription; it will receive events that are already in the log; was it renamed?"),
        Err(error) => tracing::warn!(subscription = %name, start, error = %error, "created the subscription"),
    }
    let why = match history {
        Ok(history) => {
            format!("created; starts at {start}; {history} events in the log will be delivered")
        }
        Err(_) => format!("created; starts at {start}"),
    };
    let entry = AuditEntry {
        who: owner.to_owned(),
        what: "subscribe".to_owned(),
        why: Some(why),
        subscription: Some(name.clone()),
        event_id: None,
    };
    if let Err(error) = store.audit(&entry).await {
        tracing::warn!(subscription = %name, error = %error, "could not write the new subscription to the audit log");
    }
}
