//! Several relays, and relays that stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::store::{Clock, DeliveryFailure, OutboxSource, Outcome, Relane, State, StateQuery};
use postrider::testing::{Destination, until_quiet};
use postrider::{ErrorKind, Received, Relay, Retry};

use super::{Fixture, OrderChanged, PATIENCE, Seen, record, relay, state, until};

/// Started and stopped again and again, in the middle of work.
pub async fn a_clean_stop_repeats_nothing(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=300 {
        record(&outbox, &format!("o{}", version % 7), version).await;
    }
    let seen = Seen::default();
    let mut rounds = 0;
    while seen.count() < 300 {
        rounds += 1;
        assert!(rounds < 100, "it comes to an end");
        let notes = seen.clone();
        let handler = move |event: Received<OrderChanged>| {
            let notes = notes.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                notes.note(&event);
            }
        };
        let running = relay(&outbox)
            .subscribe("s", |s| s.on(handler).batch(50).concurrency(3))
            .start()
            .await
            .expect("started");
        let goal = (seen.count() + 40).min(300);
        until("some progress", async || seen.count() >= goal).await;
        running.stop().await.expect("stopped");
    }
    assert!(rounds > 3, "it was stopped in the middle");
    assert_eq!(seen.count(), 300, "none twice");
    for order in 0..7 {
        assert!(seen.versions(&format!("o{order}")).is_sorted(), "in order");
    }
}

/// What is not done when the grace is over comes again, in order; what is done does not.
pub async fn a_stop_gives_back_what_is_not_done_in_time(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=5 {
        record(&outbox, "a", version).await;
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        let notes = notes.clone();
        async move {
            if event.version == 3 {
                std::future::pending::<()>().await;
            }
            notes.note(&event);
        }
    };
    let running = relay(&outbox)
        .shutdown_grace(Duration::from_millis(50))
        .subscribe("s", |s| s.on(handler))
        .start()
        .await
        .expect("started");
    until("it is at the third", async || seen.count() == 2).await;
    running.stop().await.expect("stopped");
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), [1, 2, 3, 4, 5]);
}

/// T6, E10: lanes move to who has none.
pub async fn relays_share_the_lanes(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let (one, two) = (Destination::new(), Destination::new());
    let (first, second) = (one.clone(), two.clone());
    let start = async |name: &str, sink: Destination| {
        relay(&outbox)
            .owner(name)
            .subscribe("s", |s| s.sink(sink).lanes(4).batch(10))
            .start()
            .await
            .expect("started")
    };
    let a = start("a", first).await;
    for order in 0..40 {
        record(&outbox, &format!("o{order}"), 1).await;
    }
    until_quiet(&a, "s").await.expect("quiet");
    let b = start("b", second).await;
    let mut version = 1;
    until("the other works, too", async || {
        version += 1;
        for order in 0..40 {
            record(&outbox, &format!("o{order}"), version).await;
        }
        !two.delivered().is_empty()
    })
    .await;
    until_quiet(&a, "s").await.expect("quiet");
    a.stop().await.expect("stopped");
    for order in 0..40 {
        record(&outbox, &format!("o{order}"), version + 1).await;
    }
    until_quiet(&b, "s").await.expect("the other does all of it");
    b.stop().await.expect("stopped");
    let mut ids: Vec<i64> = one.delivered().iter().chain(&two.delivered()).map(|event| event.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "none twice");
    assert_eq!(count, 40 * (version as usize + 1), "and none missing");
}

/// E5: its lease runs out.
pub async fn a_relay_takes_over_from_one_that_is_gone(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let store = outbox.open().await.expect("a store");
    let shop = Destination::new();
    let sink = shop.clone();
    // Somebody claims the lane and is never heard of again.
    store.subscribe(&postrider::store::Subscription::new("s")).await.expect("subscribed");
    let gone = store.claim("s", "gone", Duration::from_millis(800)).await.expect("claim").expect("a lane");
    for version in 1..=3 {
        record(&outbox, "a", version).await;
    }
    let running = relay(&outbox).subscribe("s", |s| s.sink(sink)).start().await.expect("started");
    assert_eq!(shop.delivered().len(), 0, "it is not its turn yet");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(shop.delivered().len(), 3);
    drop(gone);
}

/// No lease, no writes; and yet in time.
pub async fn an_idle_relay_gives_its_lane_back_and_wakes_for_a_retry(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let shop = Destination::new();
    shop.decide(|attempt| match attempt.attempt {
        1 => Outcome::retry(DeliveryFailure::new("refused", "not now")),
        _ => Outcome::Delivered,
    });
    let sink = shop.clone();
    let running = Relay::new(&outbox)
        .lease(Duration::from_millis(900))
        .poll_interval(Duration::from_secs(60))
        .subscribe("s", |s| s.sink(sink).retry(Retry::fixed(Duration::from_millis(1500))))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("the lane is free while it waits", async || {
        let now = state(&*store, "s", event).await;
        now.state == State::Retrying && now.lease_owner.is_none()
    })
    .await;
    running.delivered("s", event, PATIENCE).await.expect("delivered");
    until("the lane is free again", async || {
        let query = StateQuery { subscription: Some("s".into()), ..StateQuery::default() };
        store.states(&query).await.expect("states").iter().all(|each| each.lease_owner.is_none())
    })
    .await;
    let late = record(&outbox, "a", 2).await;
    running.delivered("s", late, Duration::from_secs(5)).await.expect("woken by the bell");
    running.stop().await.expect("stopped");
}

/// One report at the start and one when it has its lanes; then one every 20 seconds, however often its idle lanes change hands.
pub async fn an_idle_relay_reports_rarely(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record(&outbox, "a", 1).await;
    let running = Relay::new(&outbox)
        .lease(Duration::from_millis(900))
        .poll_interval(Duration::from_millis(200))
        .figures_every(None)
        .subscribe("s", |s| s.sink(Destination::new()).lanes(2))
        .start()
        .await
        .expect("started");
    running.delivered("s", event, PATIENCE).await.expect("delivered");
    let store = Arc::clone(running.store());
    let report = async || store.relays().await.expect("relays").pop().expect("the relay");
    until("both lanes are known", async || report().await.run("s").is_some_and(|run| run.lanes == [0, 1]))
        .await;
    // A report changes when the relay was seen. Time itself is what is waited for: four seconds without a change.
    let (idle, mut reports) = (Instant::now(), BTreeSet::from([report().await.seen_at]));
    until("some seconds have passed", async || {
        reports.insert(report().await.seen_at);
        idle.elapsed() >= Duration::from_secs(4)
    })
    .await;
    // Of the 20 seconds most are still to come; but what was under way may have come late.
    assert!(reports.len() <= 2, "{} reports in four seconds", reports.len());
    running.stop().await.expect("stopped");
}

/// Nothing lost, nothing twice, nothing out of order.
pub async fn lanes_change_under_a_running_relay(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).lanes(2).batch(20)).start().await.expect("started");
    let store = Arc::clone(running.store());
    let recorded = AtomicUsize::new(0);
    for lanes in [3, 1, 4] {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let version = recorded.fetch_add(1, Ordering::SeqCst) as i64;
            for order in 0..5 {
                record(&outbox, &format!("o{order}"), version).await;
            }
            if store.relane("s", lanes).await.expect("relane") == Relane::Done {
                break;
            }
            assert!(std::time::Instant::now() < end, "the change to {lanes} lanes comes to an end");
        }
    }
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let versions: Vec<i64> = (0..recorded.load(Ordering::SeqCst) as i64).collect();
    for order in 0..5 {
        assert_eq!(seen.versions(&format!("o{order}")), versions, "o{order}");
    }
}

/// Useful outside tests, too.
pub async fn one_can_wait_for_ones_own_event(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let shop = Destination::new();
    let sink = shop.clone();
    let running = relay(&outbox).subscribe("s", |s| s.sink(sink)).start().await.expect("started");
    let event = record(&outbox, "a", 1).await;
    running.delivered("s", event, PATIENCE).await.expect("delivered");
    assert_eq!(shop.delivered().len(), 1);
    shop.decide(|_| Outcome::reject(DeliveryFailure::new("no", "never")));
    let dead = record(&outbox, "a", 2).await;
    let error = running.delivered("s", dead, PATIENCE).await.expect_err("it is dead");
    assert!(error.to_string().contains("never"), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotDelivered);
    shop.unavailable(Some("gone"));
    let late = record(&outbox, "a", 3).await;
    let error = running.delivered("s", late, Duration::from_millis(10)).await.expect_err("it takes longer");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    shop.unavailable(None);
    let error = running.delivered("s", postrider::Uuid::now_v7(), PATIENCE).await.expect_err("no such event");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    running.stop().await.expect("stopped");
}
