//! What a failing event holds up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider::store::{Attempt, Clock, DeliveryFailure, OutboxSource, Outcome, ResolveDead, State};
use postrider::testing::{Destination, until_quiet};
use postrider::{Failure, OnDead, Order, Received, Recorded, Retry};

use super::{Fixture, OrderChanged, PATIENCE, record, relay, state, until};

const SOON: Duration = Duration::from_millis(20);

fn keys(events: &[Recorded]) -> Vec<String> {
    let number = |event: &Recorded| {
        event
            .payload
            .as_json()
            .and_then(|json| json.rsplit(':').next())
            .map(|end| end.trim_matches(|c: char| !c.is_ascii_digit()).to_owned())
    };
    events
        .iter()
        .map(|event| format!("{}{}", event.aggregate_id, number(event).unwrap_or_default()))
        .collect()
}

fn fails_at(order: &'static str, version: &'static str, times: u32) -> impl Fn(&Attempt) -> Outcome {
    move |attempt: &Attempt| {
        let json = attempt.event.payload.as_json().unwrap_or_default();
        let hit = attempt.event.aggregate_id == order && json.contains(&format!("\"version\":{version}"));
        if hit && attempt.attempt <= times {
            Outcome::retry(DeliveryFailure::new("refused", "not now"))
        } else {
            Outcome::Delivered
        }
    }
}

/// The others go on.
pub async fn under_key_order_a_failure_holds_its_key_only(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(fails_at("a", "1", 3));
    for (order, version) in [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)] {
        record(&outbox, order, version).await;
    }
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    record(&outbox, "a", 4).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let delivered = keys(&shop.delivered());
    let of = |order: &str| delivered.iter().filter(|key| key.starts_with(order)).cloned().collect::<Vec<_>>();
    assert_eq!(of("a"), ["a1", "a2", "a3", "a4"]);
    assert_eq!(of("b"), ["b1", "b2"]);
    let place = |key: &str| delivered.iter().position(|each| each == key).expect("delivered");
    assert!(place("b2") < place("a1"), "b did not wait for a: {delivered:?}");
    assert_eq!(
        shop.tried().iter().filter(|(attempt, _)| attempt.attempt > 1).count(),
        3,
        "only a1 was tried again"
    );
}

/// One failure that passed costs its key nothing afterwards: what comes later has no row while it is handled.
pub async fn a_key_is_free_again_after_its_retry(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let store = outbox.open().await.expect("a store");
    let found = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&found);
    let handler = move |event: Received<OrderChanged>| {
        let (store, notes) = (Arc::clone(&store), Arc::clone(&notes));
        async move {
            let now = state(&*store, "s", event.event().event_id).await;
            let note = (event.version, event.attempt(), now.state == State::Retrying);
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
            if note.0 == 1 && note.1 == 1 { Err(Failure::retry("not now")) } else { Ok(()) }
        }
    };
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    for version in 1..=4 {
        let event = record(&outbox, "a", version).await;
        running.delivered("s", event, PATIENCE).await.expect("delivered");
    }
    running.stop().await.expect("stopped");
    let found = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(
        found,
        [(1, 1, false), (1, 2, true), (2, 1, false), (3, 1, false), (4, 1, false)],
        "version, attempt, whether it had a row"
    );
}

/// Very many may be open: behind a key that is held, and behind keys that are retried later. Fresh events of other keys are delivered
/// meanwhile, and what was open comes in its order when it may.
pub async fn many_open_deliveries_keep_no_other_key_waiting(fixture: &impl Fixture) {
    const HELD: i64 = 150;
    const HEADS: i64 = 40;
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(|attempt: &Attempt| match attempt.event.aggregate_id.as_str() {
        "held" if attempt.attempt == 1 => Outcome::reject(DeliveryFailure::new("refused", "never")),
        order if order.starts_with("head") => Outcome::retry(DeliveryFailure::new("refused", "later")),
        _ => Outcome::Delivered,
    });
    for version in 1..=HELD {
        record(&outbox, "held", version).await;
    }
    for version in 1..=3 {
        for head in 0..HEADS {
            record(&outbox, &format!("head{head}"), version).await;
        }
    }
    let sink = shop.clone();
    let hour = Duration::from_secs(3600);
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).retry(Retry::fixed(hour)).on_dead(OnDead::Hold).lanes(2).batch(20))
        .start()
        .await
        .expect("started");
    let mut fresh = Vec::new();
    for version in 1..=5 {
        for order in 0..20 {
            fresh.push(record(&outbox, &format!("fresh{order}"), version).await);
        }
    }
    for event in &fresh {
        running.delivered("s", *event, PATIENCE).await.expect("delivered");
    }
    let figures = running.store().figures("s").await.expect("figures");
    let open: u64 = figures.iter().map(|figures| figures.retrying + figures.dead).sum();
    assert_eq!(open, u64::try_from(HELD + 3 * HEADS).unwrap_or(0), "all of it is still open");
    assert_eq!(shop.delivered().len(), fresh.len());
    // The held key goes on as soon as somebody acts.
    shop.decide(|_: &Attempt| Outcome::Delivered);
    running
        .store()
        .resolve_dead(&ResolveDead::Requeue { subscription: "s".into(), events: vec![] })
        .await
        .expect("requeued");
    let all = || shop.delivered().iter().filter(|event| event.aggregate_id == "held").count();
    until("the held key has gone on", async || all() == usize::try_from(HELD).unwrap_or(0)).await;
    running.stop().await.expect("stopped");
    let held: Vec<String> =
        keys(&shop.delivered()).into_iter().filter(|key| key.starts_with("held")).collect();
    let expected: Vec<String> = (1..=HELD).map(|version| format!("held{version}")).collect();
    assert_eq!(held, expected);
}

/// C6: nothing overtakes a failed event.
pub async fn under_strict_order_a_failure_holds_the_lane(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(fails_at("a", "2", 3));
    for (order, version) in [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)] {
        record(&outbox, order, version).await;
    }
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).order(Order::Strict).retry(Retry::fixed(SOON)).batch(2))
        .start()
        .await
        .expect("started");
    record(&outbox, "d", 6).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let tried: Vec<_> = shop.tried().into_iter().map(|(attempt, _)| (*attempt.event).clone()).collect();
    assert_eq!(
        keys(&tried),
        ["b1", "a2", "a2", "a2", "a2", "b3", "c4", "a5", "d6"],
        "in this order and no other"
    );
}

/// Each for itself.
pub async fn without_order_a_failure_holds_nothing(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(fails_at("a", "1", 2));
    for version in 1..=4 {
        record(&outbox, "a", version).await;
    }
    let sink = shop.clone();
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).order(Order::None).retry(Retry::fixed(SOON)))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(keys(&shop.delivered()), ["a2", "a3", "a4", "a1"]);
}

/// The key goes on without it.
pub async fn a_dead_event_is_skipped_by_its_key(fixture: &impl Fixture) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        shop.decide(fails_at("a", "2", u32::MAX));
        let mut events = Vec::new();
        for version in 1..=3 {
            events.push(record(&outbox, "a", version).await);
        }
        let (sink, retry) = (shop.clone(), Retry::fixed(SOON).max_attempts(2));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).order(order).retry(retry))
            .start()
            .await
            .expect("started");
        until_quiet(&running, "s").await.expect("quiet");
        let store = Arc::clone(running.store());
        running.stop().await.expect("stopped");
        assert_eq!(keys(&shop.delivered()), ["a1", "a3"], "{order}");
        let dead = state(&*store, "s", events[1]).await;
        assert_eq!((dead.state, dead.attempts), (State::Dead, 2), "{order}");
    }
}

/// Until an operator discards it.
pub async fn a_dead_event_under_hold_keeps_its_key_until_somebody_acts(fixture: &impl Fixture) {
    for order in [Order::Key, Order::Strict] {
        let outbox = fixture.outbox(Clock::Database).await;
        let shop = Destination::new();
        shop.decide(fails_at("a", "1", u32::MAX));
        let dead = record(&outbox, "a", 1).await;
        record(&outbox, "a", 2).await;
        let (sink, retry) = (shop.clone(), Retry::fixed(SOON).max_attempts(1));
        let running = relay(&outbox)
            .subscribe("s", |s| s.sink(sink).order(order).on_dead(OnDead::Hold).retry(retry))
            .start()
            .await
            .expect("started");
        let store = Arc::clone(running.store());
        until("it is dead", async || state(&*store, "s", dead).await.state == State::Dead).await;
        if order == Order::Key {
            record(&outbox, "b", 1).await;
            until("another key goes on", async || keys(&shop.delivered()) == ["b1"]).await;
        }
        assert!(!keys(&shop.delivered()).contains(&"a2".to_owned()), "{order}: a2 waits");
        let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![dead] };
        assert_eq!(store.resolve_dead(&discard).await.expect("discarded"), 1);
        until_quiet(&running, "s").await.expect("quiet");
        running.stop().await.expect("stopped");
        assert_eq!(keys(&shop.delivered()).last().map(String::as_str), Some("a2"), "{order}");
    }
}

/// E8: with attempts back to 0, and in its place.
pub async fn a_requeued_event_comes_before_those_behind_it(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    shop.decide(fails_at("a", "1", u32::MAX));
    let dead = record(&outbox, "a", 1).await;
    record(&outbox, "a", 2).await;
    let (sink, retry) = (shop.clone(), Retry::fixed(SOON).max_attempts(2));
    let running = relay(&outbox)
        .subscribe("s", |s| s.sink(sink).on_dead(OnDead::Hold).retry(retry))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("it is dead", async || state(&*store, "s", dead).await.state == State::Dead).await;
    shop.take_all();
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![dead] };
    assert_eq!(store.resolve_dead(&requeue).await.expect("requeued"), 1);
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(keys(&shop.delivered()), ["a1", "a2"]);
    let last = shop.tried().into_iter().rfind(|(attempt, _)| attempt.event.event_id == dead);
    assert_eq!(last.map(|(attempt, _)| attempt.attempt), Some(1), "its attempts began anew");
}
