//! One relay after the other, each killed at a moment that nobody chose.

use std::time::Duration;

use postrider_trials::dice::Dice;
use postrider_trials::relay_options::RelayOptions;
use postrider_trials::test_store::TestStore;
use postrider_trials::trial::{Trial, is_soak};
use postrider_trials::writers::Writers;

use crate::{RELAY_PROCESS, on_each};

on_each!(
    relays_killed_at_random_moments_lose_nothing_and_apply_everything_once,
    relays_killed_while_they_change_the_lanes_lose_nothing_and_apply_everything_once,
    relays_killed_while_some_of_their_events_run_on_lose_nothing_and_apply_everything_once,
);

const BATCH: u32 = 16;

async fn kill_at_random<G: TestStore>(rounds: usize, lanes: u64, slow: Duration) {
    let rounds = if is_soak() { 200 } else { rounds };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    // RelayProcesses die young: not more than they can catch up with.
    let writers = Writers::with_pause(&trial.test_store, 100);
    let mut dice = Dice::thrown();
    let mut deaths = Vec::new();
    let wanted = |options: &mut RelayOptions, dice: &mut Dice| {
        options.batch = BATCH;
        // Processes die of us here, not of events: no number of deaths says anything of an event.
        options.deaths = 1000;
        options.max_tx_batch = 5;
        options.lanes = 1 + dice.below(lanes) as u32;
        options.slow = slow;
        options.slow_one_in = 5;
        options.patience = Duration::from_millis(10);
    };
    for _ in 0..rounds {
        let relay_process = trial.start_ready(|options| wanted(options, &mut dice)).await;
        // Most are killed at work; some before they have taken over.
        if !dice.one_in(4) {
            trial.until_it_left(&relay_process, 1 + dice.below(40).cast_signed()).await;
        }
        tokio::time::sleep(dice.millis(250)).await;
        deaths.push(trial.kill(relay_process).await);
    }
    let next_holder = trial.start_ready(|options| wanted(options, &mut dice)).await;
    let committed = writers.stop().await;
    let report = trial.finish(next_holder).await;
    report.keeps_its_promises(&committed);
    report.repeats_only_what_was_open(&deaths, BATCH as usize * lanes as usize);
    eprintln!("{} moves, {} kills, {} came again", report.moves(), deaths.len(), report.repetitions());
}

async fn relays_killed_at_random_moments_lose_nothing_and_apply_everything_once<G: TestStore>() {
    kill_at_random::<G>(12, 1, Duration::ZERO).await;
}

/// Each of them wants another number of lanes than the one before it.
async fn relays_killed_while_they_change_the_lanes_lose_nothing_and_apply_everything_once<G: TestStore>() {
    kill_at_random::<G>(6, 4, Duration::ZERO).await;
}

/// Every fifth event of an account outlives its batch.
async fn relays_killed_while_some_of_their_events_run_on_lose_nothing_and_apply_everything_once<
    G: TestStore,
>() {
    kill_at_random::<G>(8, 2, Duration::from_millis(120)).await;
}
