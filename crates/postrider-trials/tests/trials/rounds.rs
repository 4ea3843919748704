//! One relay after the other, each killed at a moment that nobody chose.

use std::time::Duration;

use postrider_trials::dice::Dice;
use postrider_trials::ride::Ride;
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
    let writers = Writers::with_pause(&trial.ground, 100);
    let mut dice = Dice::thrown();
    let mut deaths = Vec::new();
    let wanted = |ride: &mut Ride, dice: &mut Dice| {
        ride.batch = BATCH;
        // Processes die of us here, not of events: no number of deaths says anything of an event.
        ride.deaths = 1000;
        ride.max_tx_batch = 5;
        ride.lanes = 1 + dice.below(lanes) as u32;
        ride.slow = slow;
        ride.slow_one_in = 5;
        ride.patience = Duration::from_millis(10);
    };
    for _ in 0..rounds {
        let relay_process = trial.ride(|ride| wanted(ride, &mut dice)).await;
        // Most are killed at work; some before they have taken over.
        if !dice.one_in(4) {
            trial.until_it_left(&relay_process, 1 + dice.below(40).cast_signed()).await;
        }
        tokio::time::sleep(dice.millis(250)).await;
        deaths.push(trial.kill(relay_process).await);
    }
    let heir = trial.ride(|ride| wanted(ride, &mut dice)).await;
    let committed = writers.stop().await;
    let verdict = trial.finish(heir).await;
    verdict.keeps_its_promises(&committed);
    verdict.repeats_only_what_was_open(&deaths, BATCH as usize * lanes as usize);
    eprintln!("{} moves, {} kills, {} came again", verdict.moves(), deaths.len(), verdict.repetitions());
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
