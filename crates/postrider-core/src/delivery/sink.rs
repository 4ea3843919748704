//! The contract between the engine and a destination.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::{Lease, Order, Outcome, Recorded, Subscription, Unavailable};

/// Where events go: typed handlers, Kafka, HTTP, stdout.
///
/// *Guarantees*: every event that was [reported](Delivery::report) as delivered has arrived, whatever happens to this process
/// next; events of a key are attempted in order, and after a failure no later event of that key is attempted (under
/// [`Order::Strict`], no later event at all). *Caller must*: pass events that were not reported again, later and in the same
/// order. *On failure*: `Unavailable` is about the destination itself; earlier reports stand.
///
/// ```
/// # mod postrider { pub mod store { pub use postrider_core::*; } }
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use postrider::store::{Delivery, Outcome, Sink, Unavailable};
///
/// /// Prints events, one after the other.
/// struct Printer;
///
/// #[async_trait]
/// impl Sink for Printer {
///     async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
///         for (index, attempt) in delivery.events.iter().enumerate() {
///             if delivery.is_stopping() {
///                 break;
///             }
///             println!("{} {}", attempt.event.event_id, attempt.event.event_type);
///             delivery.report(index, Outcome::Delivered);
///         }
///         Ok(())
///     }
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sink",
    label = "not a sink",
    note = "a sink is `Kafka`, `Http`, `Lines` or a type that implements `postrider::store::Sink`; a sink that is made by `connect().await?` is made before \
            `subscribe`, whose closure is not async"
)]
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Delivers the events and reports each one as soon as its outcome is known.
    ///
    /// A sink that [goes on](Sink::goes_on) takes a [slot](Delivery::slot) for each chain and calls [`begin`](Delivery::begin) before
    /// it attempts an event.
    ///
    /// The future may be dropped at any time (the lease is lost, the grace period is over): an event that is not reported by then
    /// counts as not attempted. Once the delivery [is stopping](Delivery::is_stopping), the sink finishes what it has started and
    /// starts nothing new.
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable>;

    /// The batch size if the subscription does not set one.
    fn batch(&self) -> u32 {
        Subscription::BATCH
    }

    /// The shortest lease that is safe: after this time the sink sends nothing that it was given under a lost lease, even if the
    /// process was frozen. Default: any lease.
    fn least_lease(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether a slow attempt may continue while the lane delivers later events of other keys. An attempt that is in progress when
    /// its batch is settled then becomes a [running](crate::DeliveryState::Running) delivery. Default: no.
    fn goes_on(&self) -> bool {
        false
    }

    /// The usual codes of its [requests](Delivery::requested). Their counters start at 0, so that the first one is an increase.
    fn codes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The topics that it sends to, for a catalog: a topic or a [`Template`](crate::Template) by event type, with `*` for all other
    /// types. Default: it has no topics.
    fn topics(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Whether it runs the application's code in this process, so that an event could crash the process.
    fn runs_handlers(&self) -> bool {
        false
    }
}

/// Is notified of every request that a sink makes.
pub trait Requests: Send + Sync + fmt::Debug {
    /// A request ended with this code after this time. The code is one of a few: a status, a class of errors.
    fn made(&self, code: &str, took: Duration);
}

/// An event to deliver, with the number of the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The event.
    pub event: Arc<Recorded>,
    /// The number of this attempt, counted from 1.
    pub attempt: u32,
}

/// Events on their way to a destination, and their outcomes so far.
#[derive(Debug)]
pub struct Delivery {
    /// The subscription, or the group of a consumer.
    pub subscription: Arc<str>,
    /// The lease of this delivery. A transactional handler checks it in its own transaction. A consumer of a broker has none.
    pub lease: Option<Lease>,
    /// The events, in order.
    pub events: Vec<Attempt>,
    /// What a failing event blocks.
    pub order: Order,
    /// Maximum number of keys at the same time.
    pub concurrency: usize,
    /// Timeout of one event.
    pub timeout: Duration,
    /// Limits the chains in progress over all deliveries that share it; [`concurrency`](Delivery::concurrency) limits those of one
    /// delivery.
    pub slots: Option<Arc<Semaphore>>,
    /// Notified of every reported event, once the delivery [is left running](Delivery::leave_running).
    pub progress: Arc<Notify>,
    /// Notified of every request.
    pub requests: Option<Arc<dyn Requests>>,
    progressed: Mutex<Progress>,
    made: Instant,
    /// Indexes of events whose effects were committed with an inbox mark.
    effects: Mutex<HashSet<usize>>,
    stopping: AtomicBool,
    /// Whether it is left running.
    left: AtomicBool,
    /// Whether somebody asked it to stop.
    halted: AtomicBool,
}

/// How far a delivery is.
#[derive(Debug)]
struct Progress {
    begun: Vec<Option<Instant>>,
    reports: Vec<Option<Report>>,
    /// How many failures in a row may be the destination's own.
    unclear: usize,
}

/// The outcome of an event, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The outcome.
    pub outcome: Outcome,
    /// When its attempt started, if the sink reported it; otherwise when the delivery was created.
    pub began: Instant,
    /// When it was reported.
    pub ended: Instant,
}

/// After this many unclear failures in a row, the sink starts no more events: the destination may be away, and each further attempt
/// would wait for it in vain. At least as many as run at once: then one of them began after the last success, which tells an outage from
/// attempts that were already in progress.
const UNCLEAR_IN_A_ROW: usize = 3;

impl Delivery {
    /// How many keys may be in progress at once, unless set.
    pub const CONCURRENCY: usize = 16;

    /// How long an event may take, unless set.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A delivery of events, in this order.
    pub fn new(subscription: impl Into<Arc<str>>, events: Vec<Attempt>) -> Self {
        Self {
            subscription: subscription.into(),
            lease: None,
            progressed: Mutex::new(Progress {
                begun: vec![None; events.len()],
                reports: vec![None; events.len()],
                unclear: 0,
            }),
            made: Instant::now(),
            events,
            order: Order::Key,
            concurrency: Self::CONCURRENCY,
            timeout: Self::TIMEOUT,
            slots: None,
            progress: Arc::default(),
            requests: None,
            effects: Mutex::default(),
            stopping: AtomicBool::new(false),
            left: AtomicBool::new(false),
            halted: AtomicBool::new(false),
        }
    }

    /// The indexes of the events, as chains: a chain runs in order, and in parallel with the others. One per key, one for all under
    /// [`Order::Strict`], one per event under [`Order::None`].
    pub fn chains(&self) -> Vec<Vec<usize>> {
        let all = 0..self.events.len();
        if all.is_empty() {
            return Vec::new();
        }
        match self.order {
            Order::Strict => vec![all.collect()],
            Order::None => all.map(|index| vec![index]).collect(),
            Order::Key => {
                let mut places: HashMap<u64, usize> = HashMap::with_capacity(self.events.len());
                let mut chains: Vec<Vec<usize>> = Vec::new();
                for (index, attempt) in self.events.iter().enumerate() {
                    let place = *places.entry(attempt.event.key_hash()).or_insert_with(|| {
                        chains.push(Vec::new());
                        chains.len() - 1
                    });
                    chains[place].push(index);
                }
                chains
            }
        }
    }

    /// Waits for a free slot for a chain. Keep it until the chain ends.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slots = Arc::clone(self.slots.as_ref()?);
        // Nobody closes it.
        slots.acquire_owned().await.ok()
    }

    /// Reports the result of a request and how long it took. The code must be one of a few, such as `200` or `timeout`.
    pub fn requested(&self, code: &str, took: Duration) {
        if let Some(requests) = &self.requests {
            requests.made(code, took);
        }
    }

    /// Announces that an event is about to be attempted, or attempted again. `false`: nothing more may start, and the event must not
    /// be attempted.
    #[must_use]
    pub fn begin(&self, index: usize) -> bool {
        self.begin_all(&[index])
    }

    /// Like [`begin`](Delivery::begin), for events that are attempted together: all of them or none.
    #[must_use]
    pub fn begin_all(&self, places: &[usize]) -> bool {
        let mut progress = self.progressed();
        // What is left running may be tried once more, each alone, where together it came to nothing.
        let once_more = |place: &usize| progress.begun.get(*place).is_some_and(Option::is_some);
        let is_left = self.left.load(Ordering::Acquire)
            && !self.halted.load(Ordering::Acquire)
            && progress.unclear < self.concurrency.max(UNCLEAR_IN_A_ROW);
        if self.is_stopping() && !(is_left && places.iter().all(once_more)) {
            return false;
        }
        let now = Some(Instant::now());
        for &index in places {
            if let Some(begun) = progress.begun.get_mut(index) {
                *begun = now;
            }
        }
        true
    }

    /// Whether an event was started.
    pub fn is_begun(&self, index: usize) -> bool {
        self.began(index).is_some()
    }

    /// When an event was started, if it was.
    pub fn began(&self, index: usize) -> Option<Instant> {
        self.progressed().begun.get(index).copied().flatten()
    }

    /// Whether the outcome of an event was reported and not taken yet.
    pub fn is_reported(&self, index: usize) -> bool {
        self.progressed().reports.get(index).is_some_and(Option::is_some)
    }

    /// Reports the outcome of an event. The first report counts. After several [unclear](Outcome::Unclear) failures in a row nothing
    /// more may start.
    pub fn report(&self, index: usize, outcome: Outcome) {
        let mut progress = self.progressed();
        if progress.reports.get(index).is_some_and(Option::is_none) {
            progress.unclear = match outcome {
                Outcome::Unclear { .. } => progress.unclear + 1,
                _ => 0,
            };
            if progress.unclear >= self.concurrency.max(UNCLEAR_IN_A_ROW) {
                self.stopping.store(true, Ordering::Release);
            }
            let began = progress.begun[index].unwrap_or(self.made);
            progress.reports[index] = Some(Report { outcome, began, ended: Instant::now() });
        }
        drop(progress);
        if self.left.load(Ordering::Acquire) {
            self.progress.notify_one();
        }
    }

    /// The average duration of the attempts that were started and reported.
    pub fn mean_try(&self) -> Option<Duration> {
        let progress = self.progressed();
        let both = progress.begun.iter().zip(&progress.reports);
        let times = both.filter_map(|(began, report)| Some(report.as_ref()?.ended - (*began)?));
        let (spent, tries) =
            times.fold((Duration::ZERO, 0), |(spent, tries), time| (spent + time, tries + 1));
        (tries > 0).then(|| spent / tries)
    }

    /// Whether something is in progress, and every event without a report is in progress or follows one of its key that is.
    pub fn is_all_begun(&self) -> bool {
        self.all_begun(&self.progressed())
    }

    /// If [all is begun](Delivery::is_all_begun), starts nothing more, notifies [`progress`](Delivery::progress) of every report from
    /// now on, and returns `true`. Otherwise nothing changes.
    pub fn leave_running(&self) -> bool {
        let progress = self.progressed();
        if !self.all_begun(&progress) {
            return false;
        }
        self.stopping.store(true, Ordering::Release);
        self.left.store(true, Ordering::Release);
        true
    }

    fn all_begun(&self, progress: &Progress) -> bool {
        let mut open: HashSet<u64> = HashSet::new();
        for (index, attempt) in self.events.iter().enumerate() {
            if progress.reports[index].is_some() {
                continue;
            }
            if progress.begun[index].is_some() {
                open.insert(attempt.event.key_hash());
            } else if self.is_stopping() {
                // It will not be.
            } else if self.order != Order::Key || !open.contains(&attempt.event.key_hash()) {
                return false;
            }
        }
        !open.is_empty()
    }

    fn progressed(&self) -> MutexGuard<'_, Progress> {
        self.progressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the outcome of an event whose effect was committed together with its mark in the subscription's inbox. A settle
    /// checks that the mark exists.
    pub fn report_effect(&self, index: usize, outcome: Outcome) {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
        self.report(index, outcome);
    }

    /// Whether the outcome of an event was reported as an effect.
    pub fn is_effect(&self, index: usize) -> bool {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).contains(&index)
    }

    /// Takes the outcomes so far; `None` for an event that was not attempted.
    pub fn take_outcomes(&self) -> Vec<Option<Outcome>> {
        self.take_reports().into_iter().map(|report| Some(report?.outcome)).collect()
    }

    /// Takes the reports so far; `None` for an event that was not attempted.
    pub fn take_reports(&self) -> Vec<Option<Report>> {
        let mut progress = self.progressed();
        let empty = vec![None; progress.reports.len()];
        std::mem::replace(&mut progress.reports, empty)
    }

    /// Takes the report of one event.
    pub fn take_report(&self, index: usize) -> Option<Report> {
        self.progressed().reports.get_mut(index)?.take()
    }

    /// Asks the sink to finish what it has started and to start nothing more.
    pub fn stop(&self) {
        let _progress = self.progressed();
        self.halted.store(true, Ordering::Release);
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether nothing more may start.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
