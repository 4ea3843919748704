//! Destinations that go away while several events are under way, and lanes that have to wait.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider::store::{
    Clock, Delivery, DeliveryFailure, OutboxSource, Outcome, Sink, State, Subscription, Unavailable,
};
use postrider::testing::{Destination, until_quiet};
use postrider::{Failure, Received, Retry};
use tokio::sync::Semaphore;

use super::{Fixture, OrderChanged, record, relay, state, until};
use crate::silent::{Call, Silent};

const PAUSE: Duration = Duration::from_millis(30);

/// A destination that has every event of a delivery under way before it answers the first.
#[derive(Clone, Default)]
struct Burst {
    /// How many events were answered.
    answers: Arc<AtomicUsize>,
    /// Whether it says of itself that it is away, once it has answered two events of a delivery.
    refuses: bool,
    up: Arc<AtomicBool>,
}

#[async_trait]
impl Sink for Burst {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let begun: Vec<usize> = (0..delivery.events.len()).filter(|index| delivery.begin(*index)).collect();
        for (place, index) in begun.into_iter().enumerate() {
            let is_up = self.up.load(Ordering::SeqCst);
            if self.refuses && !is_up && place == 2 {
                return Err(Unavailable::new("connection refused"));
            }
            let first = self.answers.fetch_add(1, Ordering::SeqCst) == 0;
            delivery.report(
                index,
                if first || is_up {
                    Outcome::Delivered
                } else {
                    Outcome::unclear(DeliveryFailure::new("http_503", "the endpoint answered 503"))
                },
            );
        }
        Ok(())
    }
}

async fn assert_nothing_is_charged(fixture: &impl Fixture, refuses: bool) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for order in ["a", "b", "c"] {
        events.push(record(&outbox, order, 1).await);
    }
    let shop = Burst { refuses, ..Burst::default() };
    let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(1));
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(retry).longest_pause(PAUSE))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("it is asked again and again", async || shop.answers.load(Ordering::SeqCst) > 10).await;
    for event in &events[1..] {
        let waits = state(&*store, "s", *event).await;
        assert!(!matches!(waits.state, State::Dead | State::Done), "{waits:?}");
        assert_eq!(waits.attempts, 0, "{waits:?}");
    }
    shop.up.store(true, Ordering::SeqCst);
    until_quiet(&running, "s").await.expect("quiet");
    for event in events {
        assert_eq!(state(&*store, "s", event).await.state, State::Done);
    }
    running.stop().await.expect("stopped");
}

/// The first is answered, then everything fails, and no new event comes: its success is no contrast for the others.
pub async fn what_is_under_way_when_a_destination_goes_away_is_not_charged(fixture: &impl Fixture) {
    assert_nothing_is_charged(fixture, false).await;
}

/// A process that dies breaks what is under way, and refuses what comes after it.
pub async fn what_breaks_while_others_are_refused_is_not_charged(fixture: &impl Fixture) {
    assert_nothing_is_charged(fixture, true).await;
}

/// A destination that freezes: it answers the first event of three, and the time of the others is over one after the other.
#[derive(Clone)]
struct Freezes {
    deliveries: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

#[async_trait]
impl Sink for Freezes {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let all: Vec<usize> = (0..delivery.events.len()).collect();
        if !delivery.begin_all(&all) {
            return Ok(());
        }
        let frozen = self.deliveries.fetch_add(1, Ordering::SeqCst) == 0;
        for (place, index) in all.into_iter().enumerate() {
            let outcome = if frozen && place > 0 {
                self.gate.acquire().await.expect("open").forget();
                Outcome::unclear(DeliveryFailure::new("timeout", "the endpoint did not answer"))
            } else {
                Outcome::Delivered
            };
            delivery.report(index, outcome);
        }
        Ok(())
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// The first whose time is over fails alone, while the others still wait for an answer.
pub async fn the_first_of_several_that_hang_is_not_charged(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut events = Vec::new();
    for order in ["a", "b", "c"] {
        events.push(record(&outbox, order, 1).await);
    }
    let shop = Freezes { deliveries: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
    let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(1));
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.sink(sink).retry(retry).longest_pause(PAUSE).patience(Duration::from_millis(20))
        })
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("the others run on", async || state(&*store, "s", events[0]).await.state == State::Done).await;
    shop.gate.add_permits(1);
    until("it is tried again", async || shop.deliveries.load(Ordering::SeqCst) > 1).await;
    shop.gate.add_permits(1);
    until_quiet(&running, "s").await.expect("quiet");
    for event in events {
        let done = state(&*store, "s", event).await;
        assert_eq!(done.state, State::Done, "{done:?}");
    }
    running.stop().await.expect("stopped");
}

/// New keys that fail lengthen the pause of a destination that seems to be away. What has failed before is tried all the same.
pub async fn what_is_due_is_tried_although_new_keys_keep_failing(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    let unclear = || Outcome::unclear(DeliveryFailure::new("http_503", "the endpoint answered 503"));
    shop.decide(move |_| unclear());
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).longest_pause(Duration::from_secs(3600)))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    let first = record(&outbox, "first", 1).await;
    // The next pause is four seconds long, and each one after it twice that.
    until("it is tried again and again", async || shop.tried().len() >= 4).await;
    shop.decide(
        move |attempt| {
            if attempt.event.aggregate_id == "first" { Outcome::Delivered } else { unclear() }
        },
    );
    let is_done = async || state(&*store, "s", first).await.state == State::Done;
    let mut key = 0;
    until("it is delivered in the end", async || {
        let tried = shop.tried().len();
        key += 1;
        record(&outbox, &key.to_string(), 1).await;
        until("something is tried", async || shop.tried().len() > tried || is_done().await).await;
        is_done().await
    })
    .await;
    running.stop().await.expect("stopped");
}

/// A destination that answers the first event at once, with a failure, and the others when it is let go.
#[derive(Clone)]
struct Gate {
    tried: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

#[async_trait]
impl Sink for Gate {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let all: Vec<usize> = (0..delivery.events.len()).collect();
        if !delivery.begin_all(&all) {
            return Ok(());
        }
        let mut rest = all.into_iter();
        if self.tried.fetch_add(1, Ordering::SeqCst) == 0 {
            let failure = DeliveryFailure::new("refused", "not now");
            rest.next().into_iter().for_each(|index| delivery.report(index, Outcome::retry(failure.clone())));
            self.gate.acquire().await.expect("open").forget();
            // What is behind it was not tried.
            rest.next();
        }
        rest.for_each(|index| delivery.report(index, Outcome::Delivered));
        Ok(())
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// The second of a key is still in the hands of a request that runs on when the first is due again: the lane waits for it,
/// without asking the database all the time.
pub async fn what_is_due_behind_a_running_event_of_its_key_is_waited_for(fixture: &impl Fixture) {
    let outbox = Silent::new(fixture.outbox(Clock::Database).await);
    let mut events = Vec::new();
    for (order, version) in [("a", 1), ("a", 2), ("b", 1)] {
        events.push(record(&outbox, order, version).await);
    }
    let shop = Gate { tried: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.sink(sink).retry(Retry::fixed(Duration::from_millis(1))).patience(Duration::from_millis(20))
        })
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("the first is to be tried again", async || {
        state(&*store, "s", events[0]).await.state == State::Retrying
    })
    .await;
    let (extended, looked) = (outbox.asked(Call::Extend), outbox.asked(Call::Due));
    until("time passes", async || outbox.asked(Call::Extend) >= extended + 2).await;
    let looks = outbox.asked(Call::Due) - looked;
    assert!(looks <= 20, "{looks} looks while there was nothing to do");
    shop.gate.add_permits(1);
    until_quiet(&running, "s").await.expect("quiet");
    for event in events {
        assert_eq!(state(&*store, "s", event).await.state, State::Done);
    }
    running.stop().await.expect("stopped");
}

/// A handler that runs on says at last that what it needs is away: no attempt is lost.
pub async fn a_running_event_whose_handler_is_unavailable_loses_no_attempt(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, hold) = (Arc::clone(&calls), Arc::clone(&gate));
    let handler = move |event: Received<OrderChanged>| {
        let first = event.order == "slow" && count.fetch_add(1, Ordering::SeqCst) == 0;
        let hold = Arc::clone(&hold);
        async move {
            if first {
                hold.acquire().await.expect("open").forget();
                return Err(Failure::unavailable("the mail server is away"));
            }
            Ok(())
        }
    };
    let retry = Retry::fixed(PAUSE).max_attempts(1);
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.on(handler).retry(retry).longest_pause(PAUSE).patience(Duration::from_millis(20))
        })
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    let slow = record(&outbox, "slow", 1).await;
    until("it runs on", async || {
        let shown = state(&*store, "s", slow).await;
        (shown.state, shown.attempts) == (State::Processing, 1)
    })
    .await;
    gate.add_permits(1);
    until("it is done", async || state(&*store, "s", slow).await.state == State::Done).await;
    assert_eq!(state(&*store, "s", slow).await.attempts, 1);
    running.stop().await.expect("stopped");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// What may have ended its process is tried alone. While its handler says that what it needs is away, it is tried after pauses.
pub async fn a_suspect_that_cannot_be_handled_now_is_left_alone_for_a_while(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let store = outbox.open().await.expect("a store");
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    // Somebody claims the lane and is never heard of again.
    let gone = store.claim("s", "gone", Duration::from_millis(100)).await.expect("claim").expect("a lane");
    let calls: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&calls);
    let handler = move |_: Received<OrderChanged>| {
        let mut calls = noted.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Instant::now());
        let away = calls.len() < 4;
        async move { if away { Err(Failure::unavailable("the mail server is away")) } else { Ok(()) } }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until("it is handled", async || state(&*store, "s", event).await.state == State::Done).await;
    running.stop().await.expect("stopped");
    drop(gone);
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    let pauses: Vec<Duration> = calls.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses.len(), 3);
    assert!(pauses.iter().all(|pause| *pause >= Duration::from_millis(150)), "{pauses:?}");
}
