//! A destination in the hands of a test: it answers when it is told to, and remembers what it was given.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use postrider::store::{Delivery, DeliveryFailure, Outcome, Sink, Unavailable};
use postrider::{Recorded, Uuid};
use tokio::sync::watch;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(30);

/// A destination. Its clones are the same one.
#[derive(Clone)]
pub struct Endpoint(Arc<Shared>);

struct Shared {
    open: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What it has and has not answered, by delivery.
    in_hand: HashMap<usize, Vec<Arc<Recorded>>>,
    given: usize,
    /// What it took, in order.
    took: Vec<Arc<Recorded>>,
    /// What it refuses, by the aggregate.
    refuses: HashSet<String>,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self(Arc::new(Shared { open: watch::channel(true).0, state: Mutex::default() }))
    }
}

impl Endpoint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what it is given from now on, without an answer.
    pub fn close(&self) {
        self.0.open.send_replace(false);
    }

    /// Answers, what it has as well.
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Fails events of this aggregate from now on, so that they are tried again later.
    pub fn refuse(&self, aggregate: &str) {
        self.state().refuses.insert(aggregate.to_owned());
    }

    /// Takes all again.
    pub fn refuse_nothing(&self) {
        self.state().refuses.clear();
    }

    /// Waits until it has an event that fits in its hands.
    pub async fn holds(&self, fits: impl Fn(&Recorded) -> bool) {
        self.until("was not given what the trial waits for", |state| {
            state.in_hand.values().flatten().any(|event| fits(event))
        })
        .await;
    }

    /// Waits until it has answered all it was given.
    pub async fn is_empty(&self) {
        self.until("has not answered", |state| state.in_hand.is_empty()).await;
    }

    /// Waits until it took all of these, and gives those it did not take in time.
    pub async fn missing(&self, events: &[Uuid], within: Duration) -> Vec<Uuid> {
        let end = Instant::now() + within;
        loop {
            let took: HashSet<Uuid> = self.state().took.iter().map(|event| event.event_id).collect();
            let missing: Vec<Uuid> = events.iter().filter(|id| !took.contains(id)).copied().collect();
            if missing.is_empty() || Instant::now() >= end {
                return missing;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What it took, in order.
    pub fn took(&self) -> Vec<Arc<Recorded>> {
        self.state().took.clone()
    }

    /// How often it took an event.
    pub fn times(&self, event: Uuid) -> usize {
        self.state().took.iter().filter(|took| took.event_id == event).count()
    }

    async fn until(&self, trouble: &str, done: impl Fn(&State) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(&self.state()) {
            assert!(Instant::now() < end, "the destination {trouble} in {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// What is in hand leaves it with the delivery, also when that is dropped.
struct Hand<'e>(&'e Endpoint, usize);

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        self.0.state().in_hand.remove(&self.1);
    }
}

#[async_trait]
impl Sink for Endpoint {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let hand = {
            let mut state = self.state();
            state.given += 1;
            let number = state.given;
            let events = delivery.events.iter().map(|attempt| Arc::clone(&attempt.event)).collect();
            state.in_hand.insert(number, events);
            Hand(self, number)
        };
        let mut open = self.0.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
        let mut state = self.state();
        for chain in delivery.chains() {
            for index in chain {
                let event = &delivery.events[index].event;
                if state.refuses.contains(&event.aggregate_id) {
                    let failure = DeliveryFailure::new("refused", "the trial wants it so");
                    delivery.report(index, Outcome::retry(failure));
                    break;
                }
                state.took.push(Arc::clone(event));
                delivery.report(index, Outcome::Delivered);
            }
        }
        drop(state);
        drop(hand);
        Ok(())
    }
}
