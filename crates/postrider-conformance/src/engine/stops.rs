//! What runs on when its relay stops, or gives its lane back.

use std::sync::Arc;
use std::time::Duration;

use postrider::store::Clock;
use postrider::store::{Relane, State};
use postrider::testing::until_quiet;

use super::hanging_handler::{HangingHandler, PATIENCE, start};
use super::{Fixture, LEASE, record, relay, state, until};

/// After its grace; nothing was finished, so nothing counts.
pub async fn a_stop_cuts_what_is_running_and_gives_it_back(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let handler = hanging.handler();
    let running = relay(&outbox)
        .shutdown_grace(Duration::from_millis(50))
        .subscribe("s", |s| s.on(handler).patience(PATIENCE))
        .start()
        .await
        .expect("started");
    let hangs = record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    record(&outbox, "b", 1).await;
    hanging.is_done("b", 1).await;
    let store = Arc::clone(running.store());
    until("it is running", async || state(&*store, "s", hangs).await.attempts == 1).await;
    running.stop().await.expect("stopped");
    let shown = state(&*store, "s", hangs).await;
    assert_eq!((shown.state, shown.attempts), (State::Retrying, 0), "it waits as if it had not been begun");
    hanging.let_go(1);
    let running = start(&outbox, &hanging, |s| s).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let all = hanging.began.all();
    assert_eq!(
        all.iter().filter(|(order, ..)| order == "a").collect::<Vec<_>>(),
        [&("a".to_owned(), 1, 1), &("a".to_owned(), 1, 1)]
    );
    assert_eq!(hanging.done.versions("b"), [1], "what was finished does not come again");
}

/// Within the grace it is waited for.
pub async fn a_stop_waits_for_what_is_running(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let running = start(&outbox, &hanging, |s| s).await;
    let hangs = record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    record(&outbox, "b", 1).await;
    hanging.is_done("b", 1).await;
    let store = Arc::clone(running.store());
    until("it is running", async || state(&*store, "s", hangs).await.attempts == 1).await;
    let stopping = tokio::spawn(running.stop());
    tokio::task::yield_now().await;
    hanging.let_go(1);
    stopping.await.expect("joined").expect("stopped");
    let shown = state(&*store, "s", hangs).await;
    assert_eq!((shown.state, shown.attempts), (State::Done, 1));
}

/// A change of lanes wants the lane back, and gets it when what is running has ended.
pub async fn a_lane_that_is_wanted_back_waits_for_what_is_running(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let hanging = HangingHandler::new(["a"]);
    let running = start(&outbox, &hanging, |s| s).await;
    let hangs = record(&outbox, "a", 1).await;
    hanging.is_begun("a", 1).await;
    record(&outbox, "b", 1).await;
    hanging.is_done("b", 1).await;
    let store = Arc::clone(running.store());
    until("it is running", async || state(&*store, "s", hangs).await.attempts == 1).await;
    assert_eq!(store.relane("s", 2).await.expect("relane"), Relane::Recalling);
    // Longer than it takes to notice: a lane is asked at least every third of a lease.
    let noticed = std::time::Instant::now() + LEASE / 2;
    until("it was noticed", async || std::time::Instant::now() >= noticed).await;
    assert_eq!(store.relane("s", 2).await.expect("relane"), Relane::Recalling, "it waits");
    assert_eq!(hanging.began.versions("a"), [1]);
    hanging.let_go(3);
    until("the lanes are changed", async || store.relane("s", 2).await.expect("relane") == Relane::Done)
        .await;
    record(&outbox, "a", 2).await;
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(hanging.began.versions("a"), [1, 2], "nothing came twice");
}
