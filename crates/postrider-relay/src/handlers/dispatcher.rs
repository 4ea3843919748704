//! The dispatcher: each event to the handler of its type. The same one serves a subscription and a broker's consumer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider_core::{Delivery, Error, ErrorKind, Event, OutboxSource, Result, Sink, Unavailable};
use tokio::task::JoinSet;

use crate::handlers::context::Recorder;
use crate::handlers::handler::Handler;
use crate::handlers::handler_batch;
use crate::handlers::route::Route;
use crate::{Decode, NewerVersion, Upcasters};

/// A handler of one event type, as data. The type `*` is all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerInfo {
    /// The version that it takes. Absent: any.
    pub version: Option<u32>,
    /// The events that it was declared to record.
    pub follow_ups: Vec<String>,
}

/// What happens to an event without a handler.
///
/// ```
/// use postrider::{Relay, Unknown, testing::Outbox};
///
/// # use postrider::{Event, Failure, Received};
/// # #[derive(serde::Serialize, serde::Deserialize, Event)]
/// # #[event(aggregate = "Order", id = order)]
/// # struct OrderPaid { order: i64 }
/// # async fn receipt(event: Received<OrderPaid>) -> Result<(), Failure> { Ok(()) }
/// // Each type of this stream must have a handler: one without is a mistake that should be seen.
/// let relay = Relay::new(&Outbox::new())
///     .subscribe("receipts", |s| s.streams(["orders"]).on(receipt).unknown(Unknown::Reject));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// It is skipped, and counts as delivered.
    #[default]
    Skip,
    /// It is dead at once; the reason names its type.
    Reject,
}

/// Dispatches events to typed handlers, by event type.
pub struct Dispatcher<S: OutboxSource> {
    pub(crate) routes: Arc<Routes<S>>,
}

pub(crate) struct Routes<S: OutboxSource> {
    pub(crate) source: S,
    pub(crate) recorder: Arc<dyn Recorder>,
    by_type: HashMap<String, Arc<Route<S>>>,
    other: Option<Arc<Route<S>>>,
    pub(crate) unknown: Unknown,
    pub(crate) upcasters: Upcasters,
    pub(crate) newer_version: NewerVersion,
    /// How many events a transaction may have.
    pub(crate) max_tx_batch: usize,
    /// Whether plain handlers keep an inbox.
    pub(crate) inbox: bool,
}

impl<S: OutboxSource> Routes<S> {
    pub(crate) fn find(&self, event_type: &str) -> Option<&Arc<Route<S>>> {
        self.by_type.get(event_type).or(self.other.as_ref())
    }
}

impl<S: OutboxSource> Dispatcher<S> {
    /// A builder without handlers.
    pub fn builder() -> DispatcherBuilder<S> {
        DispatcherBuilder::default()
    }
}

/// Builds a [`Dispatcher`].
pub struct DispatcherBuilder<S: OutboxSource> {
    by_type: HashMap<String, Route<S>>,
    other: Option<Route<S>>,
    timeouts: HashMap<String, Duration>,
    unknown: Unknown,
    upcasters: Option<Upcasters>,
    newer_version: NewerVersion,
    max_tx_batch: usize,
    inbox: bool,
    problem: Option<Error>,
    /// The aggregate type by event type, of the events that were added with `on`.
    aggregates: HashMap<&'static str, Arc<str>>,
    /// The events that handlers record, by the type that they handle.
    follow_ups: BTreeMap<String, Vec<String>>,
    /// The type of the handler that was added last.
    last: Option<String>,
}

impl<S: OutboxSource> Default for DispatcherBuilder<S> {
    fn default() -> Self {
        Self {
            by_type: HashMap::new(),
            other: None,
            timeouts: HashMap::new(),
            unknown: Unknown::Skip,
            upcasters: None,
            newer_version: NewerVersion::Wait,
            max_tx_batch: 1,
            inbox: false,
            problem: None,
            aggregates: HashMap::new(),
            follow_ups: BTreeMap::new(),
            last: None,
        }
    }
}

impl<S: OutboxSource> DispatcherBuilder<S> {
    /// Handles events of the type that the handler receives.
    pub fn on<H, Shape>(&mut self, handler: H)
    where
        H: Handler<S, Shape>,
        H::Payload: Event + Decode,
        Shape: 'static,
    {
        let version = Some(<H::Payload as Event>::VERSION);
        let name = <H::Payload as Event>::NAME;
        self.aggregates.insert(name, <H::Payload as Event>::AGGREGATE.into());
        self.add(name, Route::new(name, handler, version));
    }

    /// Handles events of this type, with any payload type that can be decoded.
    pub fn on_type<H, Shape>(&mut self, event_type: &str, handler: H)
    where
        H: Handler<S, Shape>,
        H::Payload: Decode,
        Shape: 'static,
    {
        self.add(event_type, Route::new(event_type, handler, None));
    }

    /// Handles events without a handler of their own.
    pub fn on_other<H, Shape>(&mut self, handler: H)
    where
        H: Handler<S, Shape>,
        H::Payload: Decode,
        Shape: 'static,
    {
        self.last = Some("*".to_owned());
        if self.other.replace(Route::new("*", handler, None)).is_some() {
            self.refuse("there are two handlers for all other events; there must be only one".to_owned());
        }
    }

    /// What happens to an event without a handler.
    pub fn unknown(&mut self, unknown: Unknown) {
        self.unknown = unknown;
    }

    /// The upcasters from old versions of payloads to the newest.
    pub fn upcasters(&mut self, upcasters: Upcasters) {
        self.upcasters = Some(upcasters);
    }

    /// The upcasters to use if it was given none of its own.
    pub(crate) fn default_upcasters(&mut self, upcasters: &Upcasters) {
        self.upcasters.get_or_insert_with(|| upcasters.clone());
    }

    /// What happens to an event of a newer version than its handler takes. Default: it waits.
    pub fn newer_version(&mut self, newer_version: NewerVersion) {
        self.newer_version = newer_version;
    }

    /// Maximum number of events per transaction of transactional handlers. Default: 1.
    pub fn max_tx_batch(&mut self, events: usize) {
        if events == 0 {
            self.refuse("max_tx_batch must be at least 1".to_owned());
        }
        self.max_tx_batch = events.max(1);
    }

    /// Whether plain handlers use an inbox, so that an event that was handled successfully is not handled again.
    pub fn inbox(&mut self, inbox: bool) {
        self.inbox = inbox;
    }

    /// The timeout of one event type. Default: the subscription's timeout.
    pub fn timeout_of(&mut self, event_type: &str, timeout: Duration) {
        self.timeouts.insert(event_type.to_owned(), timeout);
    }

    /// Declares that the handler that was added last records events of this type. The catalog shows it; nothing checks it.
    pub fn follow_up(&mut self, event_type: &str) {
        match &self.last {
            Some(handled) => self.follow_ups.entry(handled.clone()).or_default().push(event_type.to_owned()),
            None => {
                self.refuse(format!(
                    "the follow-up {event_type} must come after the handler that records it"
                ));
            }
        }
    }

    /// The aggregate type by event type, of the events that were added with [`on`](Self::on).
    pub fn aggregates(&self) -> HashMap<&'static str, Arc<str>> {
        self.aggregates.clone()
    }

    /// The handlers, as data.
    pub fn info(&self) -> BTreeMap<String, HandlerInfo> {
        let routes = self.by_type.iter().map(|(name, route)| (name.as_str(), route));
        let info = |(name, route): (&str, &Route<S>)| {
            let follow_ups = self.follow_ups.get(name).cloned().unwrap_or_default();
            (name.to_owned(), HandlerInfo { version: route.version, follow_ups })
        };
        routes.chain(self.other.iter().map(|route| ("*", route))).map(info).collect()
    }

    fn add(&mut self, event_type: &str, route: Route<S>) {
        self.last = Some(event_type.to_owned());
        if self.by_type.insert(event_type.to_owned(), route).is_some() {
            self.refuse(format!("there are two handlers for {event_type}; there must be only one"));
        }
    }

    fn refuse(&mut self, message: String) {
        self.problem.get_or_insert_with(|| Error::new(ErrorKind::Invalid, "subscribe", message));
    }

    /// Whether there are no handlers.
    pub fn is_empty(&self) -> bool {
        self.by_type.is_empty() && self.other.is_none()
    }

    /// Builds the dispatcher. `source` provides the transactions of transactional handlers.
    pub fn build(mut self, source: &S) -> Result<Dispatcher<S>> {
        for (event_type, timeout) in std::mem::take(&mut self.timeouts) {
            match self.by_type.get_mut(&event_type) {
                Some(route) if !timeout.is_zero() => route.timeout = Some(timeout),
                Some(_) => self.refuse(format!("the timeout of {event_type} must be greater than 0")),
                None => self.refuse(format!(
                    "{event_type} has a timeout but no handler; add a handler, or remove the timeout"
                )),
            }
        }
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let upcasters = self.upcasters.unwrap_or_default();
        for (event_type, route) in &self.by_type {
            if let Some(version) = route.version {
                upcasters.check(event_type, version)?;
            }
        }
        Ok(Dispatcher {
            routes: Arc::new(Routes {
                source: source.clone(),
                recorder: Arc::new(source.clone()),
                by_type: self.by_type.into_iter().map(|(name, route)| (name, Arc::new(route))).collect(),
                other: self.other.map(Arc::new),
                unknown: self.unknown,
                upcasters,
                newer_version: self.newer_version,
                max_tx_batch: self.max_tx_batch,
                inbox: self.inbox,
            }),
        })
    }
}

#[async_trait]
impl<S: OutboxSource> Sink for Dispatcher<S> {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let batches = batches(&self.routes, &delivery);
        let workers = delivery.concurrency.clamp(1, batches.len().max(1));
        if workers == 1 {
            for events in &batches {
                let _slot = delivery.slot().await;
                handler_batch::run(&self.routes, &delivery, events).await?;
            }
            return Ok(());
        }
        let (batches, next) = (Arc::new(batches), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let (routes, delivery) = (Arc::clone(&self.routes), Arc::clone(&delivery));
            let (batches, next) = (Arc::clone(&batches), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    // The slot first: what is taken without one would be begun by nobody else.
                    let _slot = delivery.slot().await;
                    let Some(events) = batches.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    handler_batch::run(&routes, &delivery, events).await?;
                }
                Ok::<(), Unavailable>(())
            });
        }
        let mut result = Ok(());
        while let Some(joined) = tasks.join_next().await {
            let ended = match joined {
                Ok(ended) => ended,
                // It panicked outside a handler, over one of the events: the engine finds out which.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(error) => Err(Unavailable::new(format!("a worker stopped: {error}"))),
            };
            if let Err(unavailable) = ended {
                delivery.stop();
                result = Err(unavailable);
            }
        }
        result
    }

    fn goes_on(&self) -> bool {
        let routes = &self.routes;
        !routes.source.has_one_writer()
            || !routes.by_type.values().chain(&routes.other).any(|route| route.transactional)
    }

    fn runs_handlers(&self) -> bool {
        true
    }
}

/// What may run at the same time: the events of a key together, in order. One at a time is the whole order.
fn batches<S: OutboxSource>(routes: &Routes<S>, delivery: &Delivery) -> Vec<Vec<usize>> {
    let events = &delivery.events;
    let several =
        || events.iter().any(|each| routes.find(&each.event.event_type).is_some_and(|route| route.several));
    if several() || delivery.concurrency == 1 {
        return vec![(0..events.len()).collect()];
    }
    let chains = delivery.chains();
    if routes.max_tx_batch <= 1 {
        return chains;
    }
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for chain in chains {
        match batches.last_mut() {
            Some(unit) if unit.len() + chain.len() <= routes.max_tx_batch => unit.extend(chain),
            _ => batches.push(chain),
        }
    }
    for unit in &mut batches {
        unit.sort_unstable();
    }
    batches
}
