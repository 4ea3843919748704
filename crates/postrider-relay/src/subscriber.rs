//! The builder of a subscription.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{
    Error, ErrorKind, OnDead, Order, OutboxSource, Result, Retry, Sink, Start, Subscription,
};

use crate::engine::retry_policy::WhileUnavailable;
use crate::handlers::dispatcher::DispatcherBuilder;
use crate::subscriber_info::SubscriberInfo;
use crate::{Upcasters, defaults};

/// Configures a subscription: what it reads, where it delivers, and what happens on failure.
///
/// Defaults: all events from the beginning, one lane, ordered by key, 16 keys at the same time, retries after 1 s, 2 s, 4 s, … up to
/// 5 minutes, dead after 10 attempts, and a dead event does not block its key.
///
/// ```
/// use postrider::{Event, Failure, OnDead, Received, Relay, Retry, testing::Outbox};
///
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(stream = "orders", aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> {
///     println!("order {} is paid", event.order);
///     Ok(())
/// }
///
/// let relay = Relay::new(&Outbox::new()).subscribe("receipts", |s| {
///     s.on(receipt)
///         .streams(["orders"])
///         .retry(Retry::exponential().max_attempts(5))
///         .on_dead(OnDead::Hold)
/// });
/// ```
pub struct Subscriber<S: OutboxSource> {
    pub(crate) subscription: Subscription,
    pub(crate) handlers: DispatcherBuilder<S>,
    pub(crate) sink: Option<Arc<dyn Sink>>,
    pub(crate) retry: Retry,
    pub(crate) while_unavailable: WhileUnavailable,
    pub(crate) longest_pause: Duration,
    pub(crate) concurrency: usize,
    pub(crate) batch: Option<u32>,
    pub(crate) timeout: Duration,
    pub(crate) patience: Duration,
    pub(crate) deaths: u32,
    pub(crate) shown: BTreeMap<String, String>,
}

impl<S: OutboxSource> Subscriber<S> {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            subscription: Subscription::new(name),
            handlers: DispatcherBuilder::default(),
            sink: None,
            retry: Retry::default(),
            while_unavailable: WhileUnavailable::Wait,
            longest_pause: defaults::LONGEST_PAUSE,
            concurrency: defaults::CONCURRENCY,
            batch: None,
            timeout: defaults::TIMEOUT,
            patience: defaults::PATIENCE,
            deaths: defaults::MAX_DEATHS,
            shown: BTreeMap::new(),
        }
    }

    /// A setting of the destination that all relays with this subscription should have in common, such as its address. Operators see
    /// it with the subscription's own settings, so it must not be a secret.
    #[must_use]
    pub fn shown(mut self, name: &str, value: impl Into<String>) -> Self {
        self.shown.insert(name.to_owned(), value.into());
        self
    }

    /// The settings that two relays with this subscription should agree on; `batch` is the destination's.
    pub(crate) fn settings(&self, batch: u32) -> BTreeMap<String, String> {
        let Subscription { filter, lanes, order, on_dead, replay, .. } = &self.subscription;
        let patterns = |patterns: &[postrider_core::Pattern]| {
            let words: Vec<_> = patterns.iter().map(postrider_core::Pattern::as_str).collect();
            if words.is_empty() { "*".to_owned() } else { words.join(" ") }
        };
        let own = [
            ("streams", patterns(&filter.streams)),
            ("types", patterns(&filter.types)),
            ("lanes", lanes.to_string()),
            ("order", order.to_string()),
            ("on_dead", on_dead.to_string()),
            ("replay", replay.to_string()),
            ("retry", self.retry.to_string()),
            ("while_unavailable", format!("{:?}", self.while_unavailable).to_lowercase()),
            ("concurrency", self.concurrency.to_string()),
            ("batch", self.batch.unwrap_or(batch).to_string()),
            ("timeout", format!("{:?}", self.timeout)),
            ("patience", format!("{:?}", self.patience)),
            ("longest_pause", format!("{:?}", self.longest_pause)),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.shown.clone()).collect()
    }

    crate::handler_methods!();

    /// The subscription as data, for a catalog.
    pub(crate) fn info(&self) -> SubscriberInfo {
        let words = |patterns: &[postrider_core::Pattern]| {
            patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
        };
        let mut topics_by_type = self.sink.as_ref().map(|sink| sink.topics()).unwrap_or_default();
        SubscriberInfo {
            name: self.subscription.name.clone(),
            streams: words(&self.subscription.filter.streams),
            types: words(&self.subscription.filter.types),
            handlers: self.handlers.info(),
            destination: self
                .sink
                .as_ref()
                .map(|_| self.shown.get("sink").cloned().unwrap_or_else(|| "sink".to_owned())),
            topics: topics_by_type.remove("*").into_iter().collect(),
            topics_by_type,
        }
    }

    /// Sends events to a sink instead of handlers.
    #[must_use]
    pub fn sink(mut self, sink: impl Sink) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }

    /// Only events of these streams; `*` matches any characters.
    #[must_use]
    pub fn streams<T: Into<String>>(mut self, streams: impl IntoIterator<Item = T>) -> Self {
        self.subscription = self.subscription.streams(streams);
        self
    }

    /// Only events of these types; `*` matches any characters.
    #[must_use]
    pub fn types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.subscription = self.subscription.types(types);
        self
    }

    /// Where a new subscription starts.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.subscription = self.subscription.start(start);
        self
    }

    /// The number of lanes that its keys are distributed over: how many relays can work on it at the same time.
    #[must_use]
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.subscription = self.subscription.lanes(lanes);
        self
    }

    /// What a failing event blocks.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.subscription = self.subscription.order(order);
        self
    }

    /// What happens to a key when one of its events dies.
    #[must_use]
    pub fn on_dead(mut self, on_dead: OnDead) -> Self {
        self.subscription = self.subscription.on_dead(on_dead);
        self
    }

    /// Whether operators may replay it. Default: they may.
    #[must_use]
    pub fn replay(mut self, allowed: bool) -> Self {
        self.subscription = self.subscription.replay(allowed);
        self
    }

    /// When a failed event is retried, and when it is dead.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Whether an outage of the destination counts toward an event's age.
    #[must_use]
    pub fn while_unavailable(mut self, rule: WhileUnavailable) -> Self {
        self.while_unavailable = rule;
        self
    }

    /// The longest pause between two attempts to reach an unavailable destination. Default: 30 s.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// Maximum number of keys that are delivered at the same time; 1 keeps the order of the whole lane.
    #[must_use]
    pub fn concurrency(mut self, keys: usize) -> Self {
        self.concurrency = keys;
        self
    }

    /// Events per read. Default: 1,000, or 5,000 for Kafka. Two batches are in memory at a time. With several lanes, each reads this
    /// many on average, and up to four times as many if keys are distributed unevenly.
    #[must_use]
    pub fn batch(mut self, events: u32) -> Self {
        self.batch = Some(events);
        self
    }

    /// The timeout of one event at the destination.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The longest time that a batch waits for its slowest events, once all have started. Default: 1 s. It waits less if events are
    /// usually faster. A slower event continues as a running delivery and blocks only its key; the lane reads on.
    ///
    /// It has no effect under [`Order::Strict`], with Kafka, and for transactional handlers on SQLite, which block all other writers:
    /// there a batch waits for its slowest event.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// An event is dead after this many processes died while they handled it. Default: 3.
    #[must_use]
    pub fn max_deaths(mut self, deaths: u32) -> Self {
        self.deaths = deaths;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.subscription.check()?;
        self.retry.check().map_err(|error| self.invalid(error.message()))?;
        let zero = |what: &str| Err(self.invalid(&format!("{what} must be at least 1")));
        if self.concurrency == 0 {
            return zero("concurrency");
        }
        if self.batch == Some(0) {
            return zero("batch");
        }
        if self.deaths == 0 {
            return zero("max_deaths");
        }
        if self.timeout.is_zero() {
            return Err(self.invalid("timeout must be greater than 0"));
        }
        if self.longest_pause.is_zero() {
            return Err(self.invalid("longest_pause must be greater than 0"));
        }
        match (&self.sink, self.handlers.is_empty()) {
            (None, true) => {
                Err(self.invalid("it has neither a handler nor a sink; add one with on(…) or sink(…)"))
            }
            (Some(_), false) => Err(self.invalid("it has both handlers and a sink; make two subscriptions")),
            _ => Ok(()),
        }
    }

    /// Where its events go: its sink, or its handlers with the upcasters of the relay unless it has its own.
    pub(crate) fn take_sink(&mut self, source: &S, upcasters: &Upcasters) -> Result<Arc<dyn Sink>> {
        if let Some(sink) = self.sink.take() {
            return Ok(sink);
        }
        let mut handlers = std::mem::take(&mut self.handlers);
        handlers.default_upcasters(upcasters);
        let dispatcher = handlers.build(source).map_err(|error| self.invalid(error.message()))?;
        Ok(Arc::new(dispatcher))
    }

    fn invalid(&self, what: &str) -> Error {
        let message = format!("subscription {:?}: {what}", self.subscription.name);
        Error::new(ErrorKind::Invalid, "subscribe", message)
    }
}
