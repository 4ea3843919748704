//! A relay is asked to end while there is work, and ends in order.

use std::time::Duration;

use postrider_trials::PLAIN;
use postrider_trials::relay_options::{Point, RelayOptions, Stand};
use postrider_trials::relay_process::RelayProcess;
use postrider_trials::test_store::TestStore;
use postrider_trials::trial::{Trial, is_soak};
use postrider_trials::writers::Writers;

use crate::{RELAY_PROCESS, on_each};

on_each!(
    a_relay_asked_to_end_repeats_nothing_and_gives_back_its_lanes,
    a_slow_relay_asked_to_end_repeats_nothing_and_gives_back_its_lanes,
    a_relay_asked_to_end_while_it_goes_one_by_one_repeats_nothing,
    a_relay_whose_handler_does_not_end_stops_when_its_grace_is_over_and_repeats_that_event_only,
);

/// Stops a relay, which must end well and hold nothing then.
async fn stop<G: TestStore>(trial: &Trial<G>, relay_process: RelayProcess) {
    let name = relay_process.name.clone();
    assert_eq!(relay_process.stop().await, Some(0), "a stopped relay_process ends well");
    let holders = trial.test_store.holders().await.expect("the holders");
    let kept: Vec<_> = holders.iter().filter(|holder| holder.owner.as_ref() == Some(&name)).collect();
    assert!(kept.is_empty(), "lanes were not given back: {kept:?}");
}

/// Stops relays under load, each after it has left some rows.
async fn stop_again_and_again<G: TestStore>(rows: i64, change: fn(&mut RelayOptions)) {
    let rounds = if is_soak() { 40 } else { 5 };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::with_pause(&trial.test_store, 40);
    for round in 0..rounds {
        let relay_process = trial.start_ready(change).await;
        trial.until_it_left(&relay_process, rows + round).await;
        stop(&trial, relay_process).await;
    }
    let last = trial.start_ready(change).await;
    let committed = writers.stop().await;
    let report = trial.finish(last).await;
    report.keeps_its_promises(&committed);
    report.repeats_nothing();
}

async fn a_relay_asked_to_end_repeats_nothing_and_gives_back_its_lanes<G: TestStore>() {
    stop_again_and_again::<G>(10, |options| options.lanes = 2).await;
}

async fn a_slow_relay_asked_to_end_repeats_nothing_and_gives_back_its_lanes<G: TestStore>() {
    stop_again_and_again::<G>(10, |options| {
        options.lanes = 2;
        options.batch = 100;
        options.slow = Duration::from_millis(20);
    })
    .await;
}

/// The relay before it was killed in its first batch, so that each of its events may be what killed it.
async fn a_relay_asked_to_end_while_it_goes_one_by_one_repeats_nothing<G: TestStore>() {
    let rounds = if is_soak() { 20 } else { 2 };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::with_pause(&trial.test_store, 40);
    let mut deaths = Vec::new();
    for round in 0..rounds {
        let stand = Stand { point: Point::Handling, subscription: PLAIN.to_owned(), nth: 5 };
        let mut dying = trial.start(|options| options.stand = Some(stand));
        dying.stands_at(Point::Handling).await;
        deaths.push(trial.kill(dying).await);
        let relay_process = trial.start_ready(|options| options.slow = Duration::from_millis(10)).await;
        trial.until_it_holds(&relay_process, PLAIN).await;
        trial.until_it_left_more(&relay_process, 2 + round).await;
        stop(&trial, relay_process).await;
    }
    let last = trial.start_ready(|_| {}).await;
    let committed = writers.stop().await;
    let report = trial.finish(last).await;
    report.keeps_its_promises(&committed);
    report.repeats_only_what_was_open(&deaths, 16);
}

async fn a_relay_whose_handler_does_not_end_stops_when_its_grace_is_over_and_repeats_that_event_only<
    G: TestStore,
>() {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let stand = Stand { point: Point::Handling, subscription: PLAIN.to_owned(), nth: 25 };
    let mut relay_process = trial.start(|options| {
        options.grace = Duration::from_millis(500);
        options.stand = Some(stand);
    });
    relay_process.stands_at(Point::Handling).await;
    stop(&trial, relay_process).await;
    let last = trial.start_ready(|_| {}).await;
    trial.until_it_left(&last, 60).await;
    let committed = writers.stop().await;
    let report = trial.finish(last).await;
    report.keeps_its_promises(&committed);
    assert_eq!(report.repetitions(), 1, "the handler that did not end had done its work");
}
