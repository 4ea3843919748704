//! A slow event stalls nobody: tries that go on after their batch is settled.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider::store::{Clock, OutboxSource, State};
use postrider::testing::until_quiet;
use postrider::{Failure, Order, Received, Retry, Tx};
use tokio::sync::Semaphore;

use super::hanging_handler::{HangingHandler, PATIENCE, start};
use super::{Fixture, OrderChanged, Seen, record, relay, state, until};
use crate::relay::Dice;
use crate::silent::{Call, Silent};

/// It shows as *processing*, its key waits in order, the others go on; and a first try that simply succeeded leaves no trace.
pub async fn a_hanging_event_delays_its_key_alone(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let running = start(&outbox, &hanging, |s| s).await;
    let store = Arc::clone(running.store());
    let hangs = record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    for version in 1..=3 {
        let behind = record(&outbox, "a", 1 + version).await;
        record(&outbox, "b", version).await;
        hanging.is_done("b", version).await;
        until("it waits", async || state(&*store, "s", behind).await.state == State::Retrying).await;
    }
    let shown = state(&*store, "s", hangs).await;
    assert_eq!((shown.state, shown.attempts), (State::Processing, 1));
    // What is done is settled with its batch, a little later; until then it is counted as pending, or as processing.
    until("the others are settled, and it is running", async || {
        let figures = store.figures("s").await.expect("figures");
        (figures[0].processing, figures[0].retrying, figures[0].pending) == (1, 3, 0)
    })
    .await;
    assert_eq!(hanging.began.versions("a"), [1], "its key waits");
    hanging.let_go(4);
    until_quiet(&running, "s").await.expect("quiet");
    let shown = state(&*store, "s", hangs).await;
    assert_eq!((shown.state, shown.attempts, shown.error_code), (State::Done, 1, None));
    running.stop().await.expect("stopped");
    assert_eq!(hanging.done.versions("a"), [1, 2, 3, 4]);
    assert_eq!(hanging.began.count(), 7, "nothing came twice");
}

/// What is not begun because all slots are taken gets no row; the lane waits for the first of them.
pub async fn at_most_concurrency_are_under_way_over_all_batches(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let orders = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let hanging = HangingHandler::new(orders);
    let mut events = Vec::new();
    for order in orders {
        events.push(record(&outbox, order, 1).await);
    }
    let running = start(&outbox, &hanging, |s| s.concurrency(3).batch(2)).await;
    let store = Arc::clone(running.store());
    hanging.is_begun("c", 1).await;
    // Two more leave their slots: exactly two more are begun.
    hanging.let_go(2);
    hanging.is_begun("e", 1).await;
    until("two are settled", async || {
        let done = events.iter().map(|event| state(&*store, "s", *event));
        let mut count = 0;
        for each in done {
            count += usize::from(each.await.state == State::Done);
        }
        count == 2
    })
    .await;
    let figures = store.figures("s").await.expect("figures");
    assert_eq!(figures[0].retrying, 0, "what is not begun has no row: {figures:?}");
    assert_eq!(figures[0].undelivered(), 6, "{figures:?}");
    hanging.let_go(6);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(hanging.most.load(Ordering::SeqCst), 3);
    assert_eq!(hanging.began.count(), orders.len());
}

/// Its failure is its own attempt, and it is tried again.
pub async fn a_running_event_that_fails_is_tried_again(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let (gate, seen) = (Arc::new(Semaphore::new(0)), Seen::default());
    let (hold, notes) = (Arc::clone(&gate), seen.clone());
    let handler = move |event: Received<OrderChanged>| {
        let (hold, notes) = (Arc::clone(&hold), notes.clone());
        async move {
            notes.note(&event);
            if event.order == "a" && event.version == 1 && event.attempt() < 3 {
                hold.acquire().await.expect("open").forget();
                return if event.attempt() == 1 {
                    Err(Failure::retry("not now"))
                } else {
                    panic!("of order a")
                };
            }
            Ok(())
        }
    };
    let retry = Retry::fixed(Duration::from_millis(10));
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).patience(PATIENCE).retry(retry))
        .start()
        .await
        .expect("started");
    let fails = record(&outbox, "a", 1).await;
    record(&outbox, "a", 2).await;
    for attempt in 1..=2 {
        until("it is tried", async || seen.all().contains(&("a".to_owned(), 1, attempt))).await;
        record(&outbox, "b", i64::from(attempt)).await;
        until("another key goes on", async || seen.versions("b").len() == attempt as usize).await;
        let store = running.store();
        let shown = state(&**store, "s", fails).await;
        assert_eq!((shown.state, shown.attempts), (State::Processing, attempt));
        gate.add_permits(1);
    }
    until_quiet(&running, "s").await.expect("quiet");
    let shown = state(&**running.store(), "s", fails).await;
    assert_eq!((shown.state, shown.attempts), (State::Done, 3));
    assert_eq!(shown.error_code.as_deref(), Some("panic"), "its last failure is on record");
    running.stop().await.expect("stopped");
    let all = seen.all();
    let of_a: Vec<_> = all.iter().filter(|(order, ..)| order == "a").map(|(_, v, a)| (*v, *a)).collect();
    assert_eq!(of_a, [(1, 1), (1, 2), (1, 3), (2, 1)]);
}

/// It holds up its lane.
pub async fn under_strict_order_a_batch_waits_for_its_slowest(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let running = start(&outbox, &hanging, |s| s.order(Order::Strict)).await;
    record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    let waits = record(&outbox, "b", 1).await;
    let store = Arc::clone(running.store());
    let over = std::time::Instant::now() + 10 * PATIENCE;
    until("the patience is over", async || std::time::Instant::now() >= over).await;
    assert_eq!(state(&*store, "s", waits).await.state, State::Pending);
    hanging.let_go(1);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(hanging.done.count(), 2);
}

/// Where a transaction does not keep everybody else from writing; else the lane waits. The effect happens once either way.
pub async fn a_transactional_handler_may_run_on(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let one_writer = outbox.has_one_writer();
    let notes = hanging.clone();
    let handler = move |event: Received<OrderChanged>, tx: Tx<_>| {
        let notes = notes.clone();
        async move {
            notes.handle(event).await;
            drop(tx);
        }
    };
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).patience(PATIENCE)).start().await.expect("started");
    let hangs = record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    if one_writer {
        hanging.let_go(1);
        record(&outbox, "b", 1).await;
    } else {
        record(&outbox, "b", 1).await;
        hanging.is_done("b", 1).await;
        let store = Arc::clone(running.store());
        until("it is running", async || state(&*store, "s", hangs).await.attempts == 1).await;
        hanging.let_go(1);
    }
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(hanging.began.count(), 2);
    assert_eq!(outbox.handled("s", &[hangs]).await.expect("handled"), [true]);
}

/// All events of a call are under way as one.
pub async fn a_handler_of_several_runs_on_as_one(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (hold, notes) = (Arc::clone(&gate), Arc::clone(&calls));
    let handler = move |events: Vec<Received<OrderChanged>>| {
        let versions: Vec<i64> = events.iter().map(|event| event.version).collect();
        let first = versions.contains(&1);
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(versions);
        let hold = Arc::clone(&hold);
        async move {
            if first {
                hold.acquire().await.expect("open").forget();
            }
            Ok::<(), Failure>(())
        }
    };
    for version in 1..=3 {
        record(&outbox, &format!("o{version}"), version).await;
    }
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).patience(PATIENCE).concurrency(2))
        .start()
        .await
        .expect("started");
    let calls = || calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    until("the first call", async || calls().len() == 1).await;
    record(&outbox, "o4", 4).await;
    until("the second call", async || calls().len() == 2).await;
    gate.add_permits(1);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(calls(), [vec![1, 2, 3], vec![4]]);
}

/// a1 b1 a2 c1 … is handled in just that order, and a failing event holds only its key.
pub async fn one_at_a_time_in_one_lane_is_the_whole_order(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut expected = Vec::new();
    for version in 1..=4 {
        for order in ["a", "b", "c"] {
            record(&outbox, order, version).await;
            expected.push((order.to_owned(), version));
        }
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        let fails = event.order == "b" && event.version == 2 && event.attempt() == 1;
        if !fails {
            notes.note(&event);
        }
        async move { if fails { Err(Failure::retry("not now")) } else { Ok(()) } }
    };
    let retry = Retry::fixed(Duration::from_millis(10));
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).concurrency(1).batch(7).retry(retry))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let order = |all: Vec<(String, i64)>| -> Vec<(String, i64)> {
        all.into_iter().filter(|(order, version)| !(order == "b" && *version >= 2)).collect()
    };
    let handled: Vec<(String, i64)> =
        seen.all().into_iter().map(|(order, version, _)| (order, version)).collect();
    assert_eq!(seen.versions("b"), [1, 2, 3, 4]);
    assert_eq!(order(handled), order(expected));
}

/// A slow one does not run on there: what waits behind it would be overtaken by other keys.
pub async fn one_at_a_time_a_slow_event_is_waited_for(fixture: &impl Fixture) {
    let outbox = Silent::new(fixture.outbox(Clock::Database).await);
    let hanging = HangingHandler::new(["slow"]);
    let running = start(&outbox, &hanging, |s| s.concurrency(1)).await;
    record(&outbox, "slow", 1).await;
    hanging.is_begun("slow", 1).await;
    record(&outbox, "slow", 2).await;
    record(&outbox, "b", 1).await;
    let extended = outbox.asked(Call::Extend);
    until("its patience is over", async || outbox.asked(Call::Extend) > extended).await;
    hanging.let_go(2);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let done: Vec<(String, i64)> =
        hanging.done.all().into_iter().map(|(order, version, _)| (order, version)).collect();
    assert_eq!(done, [("slow".to_owned(), 1), ("slow".to_owned(), 2), ("b".to_owned(), 1)]);
}

/// Handlers that take any time, fail, and hang, in small batches, with rows read ahead: nothing lost, nothing out of order, and
/// nothing twice but what failed.
pub async fn slow_and_failing_events_keep_the_order_of_their_keys(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let seen = Seen::default();
    let (notes, dice) = (seen.clone(), Arc::new(Mutex::new(Dice::new(14))));
    let handler = move |event: Received<OrderChanged>| {
        let notes = notes.clone();
        let roll = dice.lock().unwrap_or_else(PoisonError::into_inner).roll(100);
        async move {
            let pause = match roll {
                0..5 => 120,
                5..20 => 8,
                _ => 0,
            };
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if roll % 7 == 0 && event.attempt() < 3 {
                return Err(Failure::retry("not now"));
            }
            notes.note(&event);
            Ok(())
        }
    };
    let keys: Vec<String> = (0..20).map(|key| format!("k{key}")).collect();
    for version in 1..=4 {
        for key in &keys {
            record(&outbox, key, version).await;
        }
    }
    let retry = Retry::fixed(Duration::from_millis(5));
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.on(handler).patience(Duration::from_millis(10)).concurrency(4).batch(9).retry(retry)
        })
        .start()
        .await
        .expect("started");
    for version in 5..=8 {
        for key in &keys {
            record(&outbox, key, version).await;
        }
    }
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let mut by_key: HashMap<String, Vec<i64>> = HashMap::new();
    for (order, version, _) in seen.all() {
        by_key.entry(order).or_default().push(version);
    }
    for key in keys {
        assert_eq!(by_key.remove(&key).unwrap_or_default(), (1..=8).collect::<Vec<_>>(), "{key}");
    }
}

/// What shares a transaction with one that takes too long comes to nothing with it; then each is handled alone.
pub async fn one_that_takes_too_long_costs_those_it_shares_a_transaction_with_nothing(
    fixture: &impl Fixture,
) {
    let outbox = fixture.outbox(Clock::Database).await;
    let handler = move |event: Received<OrderChanged>, tx: Tx<_>| async move {
        if event.order == "b" {
            std::future::pending::<()>().await;
        }
        drop(tx);
    };
    let mut events = Vec::new();
    for order in ["a", "b", "c", "d"] {
        events.push(record(&outbox, order, 1).await);
    }
    let retry = Retry::fixed(Duration::from_millis(10)).max_attempts(2);
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.on(handler).max_tx_batch(4).patience(PATIENCE).timeout(Duration::from_millis(200)).retry(retry)
        })
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    let dead = state(&*store, "s", events.remove(1)).await;
    assert_eq!((dead.state, dead.attempts, dead.error_code.as_deref()), (State::Dead, 2, Some("timeout")));
    for event in events {
        assert_eq!(state(&*store, "s", event).await.state, State::Done);
    }
    running.stop().await.expect("stopped");
}
