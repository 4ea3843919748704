//! A destination that is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use postrider::store::{Clock, State, StateQuery};
use postrider::testing::{Destination, until_quiet};
use postrider::{Failure, Order, Received, Retry, WhileUnavailable};

use super::{Fixture, LEASE, OrderChanged, clock, record, relay, state, until};

const MINUTE: Duration = Duration::from_secs(60);

/// L3, C17.
pub async fn an_outage_burns_no_attempts_and_keeps_the_order(fixture: &impl Fixture) {
    for order in [Order::Key, Order::Strict] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        let mut events = Vec::new();
        for version in 1..=3 {
            events.push(record(&outbox, "a", version).await);
        }
        let sink = shop.clone();
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).order(order).batch(4).longest_pause(Duration::from_millis(300)))
            .start()
            .await
            .expect("started");
        until_quiet(&running, "s").await.expect("quiet");
        shop.unavailable(Some("connection refused"));
        for version in 4..=30 {
            events.push(record(&outbox, if version % 3 == 0 { "b" } else { "a" }, version).await);
        }
        let store = Arc::clone(running.store());
        let mut first = None;
        until("the lane is kept for longer than a lease", async || {
            let until = state(&*store, "s", events[3]).await.lease_until;
            until.is_some_and(|until| until - *first.get_or_insert(until) > LEASE)
        })
        .await;
        let rows = store
            .states(&StateQuery { subscription: Some("s".into()), ..StateQuery::default() })
            .await
            .expect("states");
        assert!(
            rows.iter().all(|row| matches!(row.state, State::Pending | State::Processing | State::Done)
                && row.error_code.is_none()),
            "{order}: an outage writes no rows"
        );
        shop.unavailable(None);
        until_quiet(&running, "s").await.expect("quiet");
        running.stop().await.expect("stopped");
        assert!(
            shop.tried().iter().all(|(attempt, _)| attempt.attempt == 1),
            "{order}: no attempt was burned"
        );
        let delivered = shop.delivered();
        assert_eq!(delivered.len(), 30, "{order}");
        let of = |order: &str| {
            let of: Vec<_> =
                delivered.iter().filter(|event| event.aggregate_id == order).map(|event| event.id).collect();
            assert!(of.is_sorted(), "{order}: {of:?}");
        };
        of("a");
        of("b");
    }
}

/// C7, C17: expiry counts from recording, outages included.
pub async fn an_outage_expires_events_where_that_is_asked_for(fixture: &impl Fixture) {
    let clock = clock();
    let outbox = fixture.outbox(Clock::Manual(clock.clone())).await;
    let old = record(&outbox, "a", 1).await;
    let shop = Destination::new();
    shop.unavailable(Some("broker down"));
    let (sink, retry) = (shop.clone(), Retry::fixed(MINUTE).max_age(5 * MINUTE));
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.sink(sink)
                .retry(retry)
                .while_unavailable(WhileUnavailable::Expire)
                .order(Order::Strict)
                .longest_pause(Duration::from_millis(50))
        })
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    clock.advance(4 * MINUTE);
    assert_ne!(state(&*store, "s", old).await.state, State::Dead, "nothing happens before its time");
    clock.advance(2 * MINUTE);
    until("it is dead", async || state(&*store, "s", old).await.state == State::Dead).await;
    shop.unavailable(None);
    let young = record(&outbox, "a", 2).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", old).await;
    assert_eq!((dead.attempts, dead.error_code.as_deref()), (0, Some("expired")));
    assert!(dead.error_message.is_some_and(|message| message.contains("broker down")));
    assert_eq!(state(&*store, "s", young).await.state, State::Done);
    assert_eq!(shop.tried().len(), 1);
}

/// One subscription's trouble is its own.
pub async fn a_slow_subscription_slows_no_other(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let (stuck, away, fine) = (Destination::new(), Destination::new(), Destination::new());
    stuck.slow(Duration::from_secs(3600));
    away.unavailable(Some("gone"));
    let (one, two, three) = (stuck.clone(), away.clone(), fine.clone());
    let running = relay(&outbox)
        .shutdown_grace(Duration::from_millis(50))
        .subscribe("stuck", |s| s.sink(one))
        .subscribe("away", |s| s.sink(two))
        .subscribe("fine", |s| s.sink(three))
        .start()
        .await
        .expect("started");
    for version in 1..=50 {
        record(&outbox, "a", version).await;
    }
    until_quiet(&running, "fine").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(fine.delivered().len(), 50);
    assert_eq!((stuck.delivered().len(), away.delivered().len()), (0, 0));
}

/// `Failure::unavailable`.
pub async fn a_handler_can_say_that_what_it_needs_is_away(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let handler = move |event: Received<OrderChanged>| {
        let count = Arc::clone(&count);
        async move {
            assert_eq!(event.attempt(), 1, "no attempt was burned");
            if count.fetch_add(1, Ordering::SeqCst) < 3 {
                return Err(Failure::unavailable("the mail server does not answer"));
            }
            Ok(())
        }
    };
    let events = [record(&outbox, "a", 1).await, record(&outbox, "b", 2).await];
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).longest_pause(Duration::from_millis(50)))
        .start()
        .await
        .expect("started");
    for event in events {
        until("delivered", async || state(&**running.store(), "s", event).await.state == State::Done).await;
    }
    running.stop().await.expect("stopped");
    assert!(calls.load(Ordering::SeqCst) >= 5);
}

/// `Failure::from_status`: a service that answers 503 to all is away, and one that answers it to one event alone is not.
pub async fn a_handler_whose_service_answers_503_loses_no_attempt_until_another_key_succeeds(
    fixture: &impl Fixture,
) {
    let outbox = fixture.outbox(Clock::Database).await;
    let bad = record(&outbox, "bad", 1).await;
    let fine = record(&outbox, "fine", 1).await;
    let (is_up, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (up, called) = (Arc::clone(&is_up), Arc::clone(&calls));
    let handler = move |event: Received<OrderChanged>| {
        let (up, called) = (Arc::clone(&up), Arc::clone(&called));
        async move {
            called.fetch_add(1, Ordering::SeqCst);
            let status = if event.order != "bad" && up.load(Ordering::SeqCst) { 200 } else { 503 };
            Failure::from_status(status).map_or(Ok(()), Err)
        }
    };
    let pause = Duration::from_millis(20);
    let retry = Retry::fixed(pause).max_attempts(2);
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).retry(retry).longest_pause(pause))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("it was asked more often than an event has attempts", async || calls.load(Ordering::SeqCst) > 6)
        .await;
    for event in [bad, fine] {
        let waits = state(&*store, "s", event).await;
        assert!(!matches!(waits.state, State::Dead | State::Done), "{waits:?}");
        assert_eq!(waits.attempts, 0, "{waits:?}");
    }
    is_up.store(true, Ordering::SeqCst);
    until("the one that fails alone is dead", async || state(&*store, "s", bad).await.state == State::Dead)
        .await;
    let dead = state(&*store, "s", bad).await;
    assert_eq!((dead.attempts, dead.error_code.as_deref()), (2, Some("http_503")));
    assert_eq!(state(&*store, "s", fine).await.state, State::Done);
    running.stop().await.expect("stopped");
}
