//! The contract between the engine and a destination.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::{Lease, Order, Outcome, Recorded, Unavailable};

/// Where events go: typed handlers, Kafka, HTTP, stdout.
///
/// *Guarantees*: every event that was [reported](Delivery::report) as delivered is where it should be, whatever happens to
/// this process next; events of a key are tried in their order, and after a failure of a key no later event of it is tried
/// (under [`Order::Strict`], no later event at all). *Caller must*: give what was not reported again, later and in the
/// same order. *On failure*: `Unavailable` speaks of the destination itself; what was reported before stands.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sink",
    label = "not a sink",
    note = "a sink is `Kafka`, `Http`, `Lines` or a type that implements `postrider::store::Sink`; a sink that is made by `connect().await?` is made before \
            `subscribe`, whose closure is not async"
)]
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Delivers what it is given and reports each event as soon as its outcome is known.
    ///
    /// One that [goes on](Sink::goes_on) takes a [slot](Delivery::slot) for each chain and [begins](Delivery::begin) each event
    /// before it is tried.
    ///
    /// It may be dropped at any moment (the lease was lost, the grace period is over): what is not reported by then was
    /// not tried, as far as anybody knows. Once the delivery [is stopping](Delivery::is_stopping) it finishes what it has
    /// begun and begins nothing.
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable>;

    /// How many events it likes to be given at once, where the subscription does not say.
    fn batch(&self) -> u32 {
        1000
    }

    /// How long a lease has to last at least: so long that nothing of what it was given is sent any more once the lease is
    /// lost, also by a process that stood still. Any will do unless it says.
    fn least_lease(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether a try that takes long may go on while the lane delivers later events of other keys. What is under way when a
    /// batch is settled is then a [running](crate::DeliveryState::Running) delivery. No unless it says.
    fn goes_on(&self) -> bool {
        false
    }

    /// The codes with which it usually [tells](Delivery::requested) of its requests: counted from 0 on, so that the first one is an increase.
    fn codes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it runs the application's own code in this process, which an event may make it end.
    fn runs_handlers(&self) -> bool {
        false
    }
}

/// Who is told of every request that a sink makes.
pub trait Requests: Send + Sync + fmt::Debug {
    /// A request came to this, after so long. The code is one of few words: a status, a class of errors.
    fn made(&self, code: &str, took: Duration);
}

/// An event on its way, with how often it was tried before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The event.
    pub event: Arc<Recorded>,
    /// Which try this is, counted from 1.
    pub attempt: u32,
}

/// Events on their way to a destination, and what has become of them so far.
#[derive(Debug)]
pub struct Delivery {
    /// The subscription, or the group of a consumer.
    pub subscription: Arc<str>,
    /// The lease it happens under. A transactional handler checks it in its own transaction; behind a broker there is none.
    pub lease: Option<Lease>,
    /// The events, in order.
    pub events: Vec<Attempt>,
    /// What a failing event holds up.
    pub order: Order,
    /// How many keys at once, at most.
    pub concurrency: usize,
    /// How long one event may take.
    pub timeout: Duration,
    /// How many chains may be under way at once in all deliveries that share it; [`concurrency`](Delivery::concurrency) bounds
    /// those of one delivery.
    pub slots: Option<Arc<Semaphore>>,
    /// Told of every event that is reported, once the delivery [is left running](Delivery::leave_running).
    pub progress: Arc<Notify>,
    /// Told of every request that is made for it.
    pub requests: Option<Arc<dyn Requests>>,
    progressed: Mutex<Progress>,
    made: Instant,
    /// The places of events whose effects are committed with a mark in the inbox.
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

/// What became of an event, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What became of it.
    pub outcome: Outcome,
    /// When its try began, where the sink said so; otherwise when the delivery was made.
    pub began: Instant,
    /// When it was reported.
    pub ended: Instant,
}

/// So many failures in a row that may be the destination's own, with no success in between, and nothing more is begun: the
/// destination may be away, and each further try would wait for it in vain. Not before there were as many as run at once: one of
/// them then began after the last success, which tells an outage from what was under way.
const UNCLEAR_IN_A_ROW: usize = 3;

impl Delivery {
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
            concurrency: 16,
            timeout: Duration::from_secs(30),
            slots: None,
            progress: Arc::default(),
            requests: None,
            effects: Mutex::default(),
            stopping: AtomicBool::new(false),
            left: AtomicBool::new(false),
            halted: AtomicBool::new(false),
        }
    }

    /// The places of the events, in chains: a chain runs in order, and beside the others. One for each key, one for all under
    /// [`Order::Strict`], one for each event under [`Order::None`].
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

    /// A place for a chain among those that may be under way at once: kept until the chain ends. Waits until one is free.
    pub async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slots = Arc::clone(self.slots.as_ref()?);
        // Nobody closes it.
        slots.acquire_owned().await.ok()
    }

    /// Says what came of a request, and how long it took until that was known. The code must be one of few: `200`, `timeout`.
    pub fn requested(&self, code: &str, took: Duration) {
        if let Some(requests) = &self.requests {
            requests.made(code, took);
        }
    }

    /// Says that an event is about to be tried, or tried once more. `false`: nothing more is to be begun, and it must not be
    /// tried.
    #[must_use]
    pub fn begin(&self, index: usize) -> bool {
        self.begin_all(&[index])
    }

    /// The same for events that are tried together: all of them or none.
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

    /// Whether an event was begun.
    pub fn is_begun(&self, index: usize) -> bool {
        self.began(index).is_some()
    }

    /// When an event was begun, if it was.
    pub fn began(&self, index: usize) -> Option<Instant> {
        self.progressed().begun.get(index).copied().flatten()
    }

    /// Whether it was reported what became of an event, and not taken yet.
    pub fn is_reported(&self, index: usize) -> bool {
        self.progressed().reports.get(index).is_some_and(Option::is_some)
    }

    /// Says what became of an event. The first word counts. After several failures in a row that may be the destination's own
    /// ([`Outcome::Unclear`]) nothing more is to be begun.
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

    /// How long the tries took on average that were begun and reported.
    pub fn mean_try(&self) -> Option<Duration> {
        let progress = self.progressed();
        let both = progress.begun.iter().zip(&progress.reports);
        let times = both.filter_map(|(began, report)| Some(report.as_ref()?.ended - (*began)?));
        let (spent, tries) =
            times.fold((Duration::ZERO, 0), |(spent, tries), time| (spent + time, tries + 1));
        (tries > 0).then(|| spent / tries)
    }

    /// Whether something is under way, and all that is not reported is, or is behind an event of its key that is.
    pub fn is_all_begun(&self) -> bool {
        self.all_begun(&self.progressed())
    }

    /// If [all is begun](Delivery::is_all_begun), nothing more will be: from now on [`progress`](Delivery::progress) is told of
    /// every event that is reported, and it is `true`. Otherwise nothing changes.
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

    /// Says what became of an event whose effect was committed together with its mark in the subscription's inbox. A settle
    /// proves that the mark is there.
    pub fn report_effect(&self, index: usize, outcome: Outcome) {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
        self.report(index, outcome);
    }

    /// Whether what became of an event was reported as an effect.
    pub fn is_effect(&self, index: usize) -> bool {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).contains(&index)
    }

    /// Takes what was reported so far; what is missing was not tried.
    pub fn take_outcomes(&self) -> Vec<Option<Outcome>> {
        self.take_reports().into_iter().map(|report| Some(report?.outcome)).collect()
    }

    /// Takes what was reported so far, with its times; what is missing was not tried.
    pub fn take_reports(&self) -> Vec<Option<Report>> {
        let mut progress = self.progressed();
        let empty = vec![None; progress.reports.len()];
        std::mem::replace(&mut progress.reports, empty)
    }

    /// Takes what was reported of one event, with its times.
    pub fn take_report(&self, index: usize) -> Option<Report> {
        self.progressed().reports.get_mut(index)?.take()
    }

    /// Asks the destination to finish what it has begun and to begin nothing more.
    pub fn stop(&self) {
        let _progress = self.progressed();
        self.halted.store(true, Ordering::Release);
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether nothing more is to be begun.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
