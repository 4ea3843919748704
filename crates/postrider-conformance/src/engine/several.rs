//! Handlers that take several events in one call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, State};
use postrider::testing::until_quiet;
use postrider::{Failure, Received, Retry};

use super::{Fixture, OrderChanged, Seen, record, relay, state};

/// T9.
pub async fn a_handler_may_want_several_at_once(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=10 {
        record(&outbox, if version % 2 == 0 { "even" } else { "odd" }, version).await;
    }
    let calls: Arc<Mutex<Vec<Vec<i64>>>> = Arc::default();
    let notes = Arc::clone(&calls);
    let handler = move |events: Vec<Received<OrderChanged>>| {
        notes.lock().expect("notes").push(events.iter().map(|event| event.version).collect());
        async { Ok::<(), Failure>(()) }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler).batch(5)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let calls = calls.lock().expect("notes").clone();
    assert_eq!(calls, [(1..=5).collect::<Vec<_>>(), (6..=10).collect()]);
}

/// What one of several came to does not touch the others.
pub async fn each_of_several_has_its_own_outcome(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let good = record(&outbox, "a", 1).await;
    let bad = record(&outbox, "b", 2).await;
    let later = record(&outbox, "c", 3).await;
    let handler = |events: Vec<Received<OrderChanged>>| async move {
        let answer = |event: &Received<OrderChanged>| match event.version {
            2 => Err(Failure::reject("two is refused")),
            _ => Ok(()),
        };
        events.iter().map(answer).collect::<Vec<Result<(), Failure>>>()
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", good).await.state, State::Done);
    assert_eq!(state(&*store, "s", later).await.state, State::Done);
    let dead = state(&*store, "s", bad).await;
    assert_eq!((dead.state, dead.error_message.as_deref()), (State::Dead, Some("two is refused")));
}

/// Order holds, whatever is said of what comes after a failure; also where an inbox is kept.
pub async fn behind_a_failure_of_its_key_one_of_several_comes_again(fixture: &impl Fixture) {
    for inbox in [false, true] {
        let outbox = fixture.outbox(Clock::Database).await;
        for (order, version) in [("a", 1), ("a", 2), ("a", 3), ("b", 4)] {
            record(&outbox, order, version).await;
        }
        let seen = Seen::default();
        let notes = seen.clone();
        let handler = move |events: Vec<Received<OrderChanged>>| {
            let answer = |event: &Received<OrderChanged>| {
                notes.note(event);
                match (event.version, event.attempt()) {
                    (2, 1) => Err(Failure::retry("not now")),
                    _ => Ok(()),
                }
            };
            let answers: Vec<Result<(), Failure>> = events.iter().map(answer).collect();
            async move { answers }
        };
        let retry = Retry::fixed(Duration::from_millis(20));
        let running = relay(&outbox)
            .subscribe("s", |s| {
                let s = s.on(handler).retry(retry);
                if inbox { s.inbox() } else { s }
            })
            .start()
            .await
            .expect("started");
        until_quiet(&running, "s").await.expect("quiet");
        running.stop().await.expect("stopped");
        let of_a: Vec<(i64, u32)> =
            seen.all().iter().filter(|it| it.0 == "a").map(|it| (it.1, it.2)).collect();
        assert_eq!(of_a, [(1, 1), (2, 1), (3, 1), (2, 2), (3, 1)], "inbox: {inbox}");
        assert_eq!(seen.versions("b"), [4], "another key does not wait");
    }
}

/// A failure of all says nothing of each.
pub async fn several_that_fail_together_are_handled_one_by_one(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=4 {
        record(&outbox, &format!("o{version}"), version).await;
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |events: Vec<Received<OrderChanged>>| {
        let notes = notes.clone();
        async move {
            if events.iter().any(|event| event.version == 3) {
                return Err(Failure::reject("three is in it"));
            }
            events.iter().for_each(|event| notes.note(event));
            Ok(())
        }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let mut versions: Vec<i64> = seen.all().into_iter().map(|(_, version, _)| version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 4]);
}
