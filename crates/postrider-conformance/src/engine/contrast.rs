//! A destination that fails, and does not say whether because of the event or of itself.

use std::sync::Arc;
use std::time::Duration;

use postrider::store::{Attempt, Clock, DeliveryFailure, Outcome, State, StateQuery, Store};
use postrider::testing::{Destination, until_quiet};
use postrider::{Order, Retry, Uuid, WhileUnavailable};

use super::{Fixture, LEASE, PATIENCE, clock, record, relay, state, until};

const PAUSE: Duration = Duration::from_millis(30);

fn unclear() -> Outcome {
    Outcome::unclear(DeliveryFailure::new("http_404", "the endpoint answered 404"))
}

fn unclear_rejection() -> Outcome {
    Outcome::Unclear {
        after: None,
        failure: DeliveryFailure::new("http_422", "it answered 422"),
        rejects: true,
    }
}

/// What the destination says to events of the order `bad`, while it takes all others.
fn only_bad(outcome: fn() -> Outcome) -> impl Fn(&Attempt) -> Outcome {
    move |attempt| if attempt.event.aggregate_id == "bad" { outcome() } else { Outcome::Delivered }
}

/// How often a destination was tried with events of an order.
fn tries(shop: &Destination, order: &str) -> usize {
    shop.tried().iter().filter(|(attempt, _)| attempt.event.aggregate_id == order).count()
}

async fn assert_untouched(store: &dyn Store, events: &[Uuid], why: &str) {
    for event in events {
        let waits = state(store, "s", *event).await;
        assert!(!matches!(waits.state, State::Dead | State::Done), "{why}: {waits:?}");
        assert_eq!((waits.attempts, waits.error_code), (0, None), "{why}");
    }
}

/// B5: whatever it answers, and whatever the order.
pub async fn a_destination_that_fails_everything_costs_no_attempt_and_no_row(fixture: &impl Fixture) {
    for order in [Order::Key, Order::Strict, Order::None] {
        for outcome in [unclear, unclear_rejection] {
            let outbox = fixture.outbox(Clock::Database).await;
            let shop = Destination::new();
            shop.decide(move |_| outcome());
            let mut events = Vec::new();
            for version in 1..=3 {
                for key in ["a", "b", "c"] {
                    events.push(record(&outbox, key, version).await);
                }
            }
            let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(1));
            let running = relay(&outbox)
                .subscribe("s", |s| s.sink(sink).order(order).retry(retry).longest_pause(PAUSE))
                .start()
                .await
                .expect("started");
            let store = Arc::clone(running.store());
            let mut first = None;
            until("it is tried for longer than a lease", async || {
                let until = state(&*store, "s", events[0]).await.lease_until;
                until.is_some_and(|until| until - *first.get_or_insert(until) > LEASE)
                    && shop.tried().len() > 9
            })
            .await;
            assert_untouched(&*store, &events, "while it fails").await;
            let rows = StateQuery { subscription: Some("s".into()), ..StateQuery::default() };
            let rows = store.states(&rows).await.expect("states");
            assert!(
                rows.iter().all(|row| matches!(row.state, State::Pending | State::Processing)),
                "{order}: no rows where nothing else is there to ask with"
            );
            let asked = ["a", "b", "c"].into_iter().filter(|key| tries(&shop, key) > 0).count();
            assert_eq!(asked, if order == Order::Strict { 1 } else { 3 }, "{order}: probes rotate");
            shop.take_all();
            until_quiet(&running, "s").await.expect("quiet");
            running.stop().await.expect("stopped");
            assert!(
                shop.tried().iter().all(|(attempt, _)| attempt.attempt == 1),
                "{order}: none was charged"
            );
            let delivered = shop.delivered();
            assert_eq!(delivered.len(), 9, "{order}");
            for key in ["a", "b", "c"] {
                let of = delivered.iter().filter(|event| event.aggregate_id == key);
                let of: Vec<i64> = of.map(|event| event.id).collect();
                assert!(order == Order::None || of.is_sorted(), "{order}: {of:?}");
            }
        }
    }
}

/// One key, one event, strict order: nothing dies without a contrast, however long it takes.
pub async fn what_fails_alone_stays_away_and_does_not_die(fixture: &impl Fixture) {
    for order in [Order::Key, Order::Strict] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        let before = record(&outbox, "good", 1).await;
        let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(1));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).order(order).retry(retry).longest_pause(PAUSE))
            .start()
            .await
            .expect("started");
        running.delivered("s", before, PATIENCE).await.expect("delivered");
        shop.decide(only_bad(unclear_rejection));
        let bad = record(&outbox, "bad", 2).await;
        until("it is tried again and again", async || tries(&shop, "bad") > 10).await;
        assert_untouched(&**running.store(), &[bad], "a success before it is no contrast").await;
        shop.take_all();
        running.delivered("s", bad, PATIENCE).await.expect("delivered");
        running.stop().await.expect("stopped");
    }
}

/// What was delivered of a batch is known as such, and would not come again from another relay, however long the rest of it waits.
pub async fn what_was_delivered_is_settled_while_the_rest_waits_for_a_contrast(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(only_bad(unclear));
    // The success comes before the failing try begins, and so says nothing about it.
    let good = record(&outbox, "good", 1).await;
    let (bad, behind) = (record(&outbox, "bad", 1).await, record(&outbox, "bad", 2).await);
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).concurrency(1).longest_pause(PAUSE))
        .start()
        .await
        .expect("started");
    running.delivered("s", good, PATIENCE).await.expect("settled");
    until("it is tried again and again", async || tries(&shop, "bad") > 5).await;
    assert_untouched(&**running.store(), &[bad, behind], "nothing else has succeeded since").await;
    shop.take_all();
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(tries(&shop, "good"), 1);
    let delivered: Vec<i64> = shop.delivered().iter().map(|event| event.id).collect();
    assert!(delivered.len() == 3 && delivered.is_sorted(), "{delivered:?}");
}

/// A key that succeeds since is the contrast: what fails is charged from then on, and dies by its policy.
pub async fn once_another_key_has_succeeded_the_failing_event_is_charged(fixture: &impl Fixture) {
    for (outcome, attempts) in [(unclear as fn() -> Outcome, 3), (unclear_rejection, 1)] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        shop.decide(only_bad(outcome));
        let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(3));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).retry(retry).longest_pause(PAUSE))
            .start()
            .await
            .expect("started");
        let (bad, behind) = (record(&outbox, "bad", 1).await, record(&outbox, "bad", 2).await);
        until("it is tried again and again", async || tries(&shop, "bad") > 5).await;
        assert_untouched(&**running.store(), &[bad, behind], "nothing else has succeeded").await;
        let good = record(&outbox, "good", 1).await;
        running.delivered("s", good, PATIENCE).await.expect("a failing key keeps no other from being tried");
        let store = Arc::clone(running.store());
        until("it is dead", async || state(&*store, "s", bad).await.state == State::Dead).await;
        assert_eq!(state(&*store, "s", bad).await.attempts, attempts);
        running.stop().await.expect("stopped");
    }
}

/// Among others that succeed, one that fails is charged at once, and nobody waits.
pub async fn a_failure_among_successes_is_the_events_own(fixture: &impl Fixture) {
    for (outcome, attempts) in [(unclear as fn() -> Outcome, 2), (unclear_rejection, 1)] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        shop.decide(only_bad(outcome));
        let mut good = Vec::new();
        for key in 0..5 {
            good.push(record(&outbox, &key.to_string(), 1).await);
        }
        let bad = record(&outbox, "bad", 1).await;
        good.push(record(&outbox, "after", 1).await);
        let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(2));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).retry(retry).longest_pause(PAUSE))
            .start()
            .await
            .expect("started");
        until_quiet(&running, "s").await.expect("quiet");
        let dead = state(&**running.store(), "s", bad).await;
        assert_eq!((dead.state, dead.attempts), (State::Dead, attempts), "{dead:?}");
        for event in good {
            assert_eq!(state(&**running.store(), "s", event).await.state, State::Done);
        }
        running.stop().await.expect("stopped");
        assert_eq!(tries(&shop, "bad"), attempts as usize);
    }
}

/// An event that was charged before is not charged again while everything fails, nor by a new relay that has seen nothing.
pub async fn what_was_charged_before_is_not_charged_in_an_outage(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(only_bad(unclear));
    let start = async || {
        let (sink, retry) = (shop.clone(), Retry::fixed(PAUSE).max_attempts(1000));
        let relay = relay(&outbox).subscribe("s", |s| s.sink(sink).retry(retry).longest_pause(PAUSE));
        relay.start().await.expect("started")
    };
    let bad = record(&outbox, "bad", 1).await;
    record(&outbox, "good", 1).await;
    let running = start().await;
    let store = Arc::clone(running.store());
    let attempts = async || state(&*store, "s", bad).await.attempts;
    until("it is charged", async || attempts().await > 1).await;
    shop.decide(|_| unclear());
    record(&outbox, "good", 2).await;
    until("all of it is tried", async || tries(&shop, "good") >= 3).await;
    let (charged, tried) = (attempts().await, shop.tried().len());
    until("all of it is tried again", async || shop.tried().len() > tried + 10).await;
    assert_eq!(attempts().await, charged);
    running.stop().await.expect("stopped");
    let running = start().await;
    let tried = shop.tried().len();
    until("a new relay tries it, too", async || shop.tried().len() > tried + 10).await;
    assert_eq!(attempts().await, charged);
    shop.take_all();
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let done = state(&*store, "s", bad).await;
    assert_eq!((done.state, done.attempts), (State::Done, charged + 1));
}

/// Where outages count, age ends an event that nobody is to blame for.
pub async fn without_a_contrast_age_ends_an_event_only_where_outages_count(fixture: &impl Fixture) {
    let minute = Duration::from_secs(60);
    for rule in [WhileUnavailable::Expire, WhileUnavailable::Wait] {
        let clock = clock();
        let outbox = fixture.outbox(Clock::Manual(clock.clone())).await;
        let old = record(&outbox, "a", 1).await;
        let shop = Destination::new();
        shop.decide(|_| unclear());
        let (sink, retry) = (shop.clone(), Retry::fixed(minute).max_age(5 * minute));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).retry(retry).while_unavailable(rule).longest_pause(PAUSE))
            .start()
            .await
            .expect("started");
        let store = Arc::clone(running.store());
        clock.advance(6 * minute);
        let tried = shop.tried().len();
        if rule == WhileUnavailable::Expire {
            until("it is dead", async || state(&*store, "s", old).await.state == State::Dead).await;
            let dead = state(&*store, "s", old).await;
            assert_eq!((dead.attempts, dead.error_code.as_deref()), (0, Some("expired")));
        } else {
            until("it is tried again", async || shop.tried().len() > tried + 3).await;
            assert_untouched(&*store, &[old], "an outage ends nothing").await;
        }
        running.stop().await.expect("stopped");
    }
}
