//! The contract between the engine and a destination.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::{Lease, Order, Outcome, Recorded, Unavailable};

/// Where events go: typed handlers, Kafka, HTTP, stdout.
///
/// *Guarantees*: every event that was [reported](Delivery::report) as delivered is where it should be, whatever happens to
/// this process next; events of a key are tried in their order, and after a failure of a key no later event of it is tried
/// (under [`Order::Strict`], no later event at all). *Caller must*: give what was not reported again, later and in the
/// same order. *On failure*: `Unavailable` speaks of the destination itself; what was reported before stands.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Delivers what it is given and reports each event as soon as its outcome is known.
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

    /// Whether it runs the application's own code in this process, which an event may make it end.
    fn runs_handlers(&self) -> bool {
        false
    }
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
    outcomes: Mutex<Vec<Option<Outcome>>>,
    /// The places of events whose effects are committed with a mark in the inbox.
    effects: Mutex<HashSet<usize>>,
    stopping: AtomicBool,
}

impl Delivery {
    /// A delivery of events, in this order.
    pub fn new(subscription: impl Into<Arc<str>>, events: Vec<Attempt>) -> Self {
        Self {
            subscription: subscription.into(),
            lease: None,
            outcomes: Mutex::new(vec![None; events.len()]),
            events,
            order: Order::Key,
            concurrency: 16,
            timeout: Duration::from_secs(30),
            effects: Mutex::default(),
            stopping: AtomicBool::new(false),
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

    /// Says what became of an event. The first word counts.
    pub fn report(&self, index: usize, outcome: Outcome) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = outcomes.get_mut(index) {
            place.get_or_insert(outcome);
        }
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
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = vec![None; outcomes.len()];
        std::mem::replace(&mut *outcomes, empty)
    }

    /// Asks the destination to finish what it has begun and to begin nothing more.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether nothing more is to be begun.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::tests::event;

    #[test]
    fn a_key_is_a_chain_in_order() {
        let attempts =
            ["a", "b", "a", "c", "b"].map(|key| Attempt { event: Arc::new(event(key)), attempt: 1 });
        let mut delivery = Delivery::new("s", attempts.to_vec());
        assert_eq!(delivery.chains(), [vec![0, 2], vec![1, 4], vec![3]]);
        delivery.order = Order::Strict;
        assert_eq!(delivery.chains(), [vec![0, 1, 2, 3, 4]]);
        delivery.order = Order::None;
        assert_eq!(delivery.chains(), [[0], [1], [2], [3], [4]]);
        assert!(Delivery::new("s", Vec::new()).chains().is_empty());
    }
}
