//! A relay is frozen for longer than its lease, another takes over, and the frozen one wakes.

use std::time::Duration;

use postrider_trials::dice::Dice;
use postrider_trials::relay_options::{Point, RelayOptions, Stand};
use postrider_trials::test_store::TestStore;
use postrider_trials::test_store_postgres::PgTestStore;
use postrider_trials::trial::{Trial, is_soak};
use postrider_trials::trial_report::TrialReport;
use postrider_trials::writers::Writers;
use postrider_trials::{EFFECTS, PLAIN};

use crate::{RELAY_PROCESS, on_each};

on_each!(
    a_relay_frozen_after_its_claim_changes_nothing_when_it_wakes,
    a_relay_frozen_in_a_plain_handler_changes_nothing_when_it_wakes,
    a_relay_frozen_before_it_settles_changes_nothing_when_it_wakes,
    a_relay_frozen_before_its_transaction_changes_nothing_when_it_wakes,
    a_relay_frozen_before_it_settles_effects_changes_nothing_when_it_wakes,
    two_relays_that_are_frozen_in_turn_apply_everything_once_and_in_order,
);

const BATCH: u32 = 16;

/// A handler that is frozen in its transaction keeps its lane until the database ends that: for as long as a handler may take.
fn quick(options: &mut RelayOptions) {
    options.batch = BATCH;
    options.timeout = Duration::from_secs(1);
    options.lease = Duration::from_secs(2);
}

async fn freeze_at<G: TestStore>(point: Point, subscription: &str, nth: u32) {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let stand = Stand { point, subscription: subscription.to_owned(), nth };
    let mut frozen = trial.start(|options| {
        quick(options);
        options.lease = Duration::from_secs(1);
        options.stand = Some(stand);
    });
    frozen.stands_at(point).await;
    trial.freeze(&frozen).await;
    let next_holder = trial.start_ready(quick).await;
    trial.until_it_left(&next_holder, 60).await;
    let mut committed = writers.stop().await;
    trial.until_idle(&next_holder).await;

    let left = trial.test_store.traces().await.expect("the traces");
    let seen = trial.test_store.sights().await.expect("what was seen").len();
    frozen.signal("CONT");
    frozen.go_on();
    // It has understood, and given back what it does not have.
    frozen.hear(&format!("released {subscription}")).await;
    assert_eq!(
        trial.test_store.traces().await.expect("the traces"),
        left,
        "the one that woke changed something"
    );
    TrialReport::of(&trial.test_store).await.keeps_its_promises(&committed);

    // From now on it is a relay like any other, and the next holder in its turn.
    let writers = Writers::start(&trial.test_store);
    assert_eq!(next_holder.stop().await, Some(0));
    trial.until_it_left_more(&frozen, 60).await;
    committed.extend(writers.stop().await);
    let report = trial.finish(frozen).await;
    report.keeps_its_promises(&committed);
    // Its batch came again to the next holder; and what it was in the middle of when it woke, at most one for each worker.
    let most = BATCH as usize + 4;
    assert!(report.repetitions() <= most, "{} came again, of {seen}", report.repetitions());
}

async fn a_relay_frozen_after_its_claim_changes_nothing_when_it_wakes<G: TestStore>() {
    freeze_at::<G>(Point::Claimed, PLAIN, 1).await;
}

async fn a_relay_frozen_in_a_plain_handler_changes_nothing_when_it_wakes<G: TestStore>() {
    freeze_at::<G>(Point::Handling, PLAIN, 20).await;
}

async fn a_relay_frozen_before_it_settles_changes_nothing_when_it_wakes<G: TestStore>() {
    freeze_at::<G>(Point::Delivered, PLAIN, 3).await;
}

async fn a_relay_frozen_before_its_transaction_changes_nothing_when_it_wakes<G: TestStore>() {
    freeze_at::<G>(Point::Beginning, EFFECTS, 20).await;
}

async fn a_relay_frozen_before_it_settles_effects_changes_nothing_when_it_wakes<G: TestStore>() {
    freeze_at::<G>(Point::Delivered, EFFECTS, 3).await;
}

/// On SQLite a frozen transaction has the only write lock there is: nobody writes until it wakes or dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_frozen_in_its_transaction_changes_nothing_when_it_wakes() {
    freeze_at::<PgTestStore>(Point::Handling, EFFECTS, 20).await;
}

/// Each wakes while the other is at work on what it had.
async fn two_relays_that_are_frozen_in_turn_apply_everything_once_and_in_order<G: TestStore>() {
    let rounds = if is_soak() { 60 } else { 3 };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let mut dice = Dice::thrown();
    let wanted = |options: &mut RelayOptions| {
        quick(options);
        options.lease = Duration::from_secs(1);
        options.lanes = 2;
        options.deaths = 1000;
        options.slow = Duration::from_millis(5);
    };
    let relay_processes = [trial.start_ready(wanted).await, trial.start_ready(wanted).await];
    for round in 0..rounds {
        let frozen = &relay_processes[round % 2];
        trial.until_it_left(frozen, 1).await;
        trial.freeze(frozen).await;
        // The freeze itself: longer than the lease.
        tokio::time::sleep(Duration::from_millis(1200) + dice.millis(500)).await;
        frozen.signal("CONT");
        trial.until_it_left_more(&relay_processes[(round + 1) % 2], 10).await;
    }
    let committed = writers.stop().await;
    let [one, other] = relay_processes;
    trial.until_quiet(&other).await;
    assert_eq!(one.stop().await, Some(0));
    let report = trial.finish(other).await;
    report.keeps_its_promises(&committed);
    let most = rounds * (BATCH as usize + 4) * 2;
    assert!(report.repetitions() <= most, "{} came again; at most {most} could", report.repetitions());
    eprintln!("{} moves, {rounds} freezes, {} came again", report.moves(), report.repetitions());
}
