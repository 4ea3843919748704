//! Two relays share the lanes, and one of them dies now and then.

use std::time::Duration;

use postrider_trials::PLAIN;
use postrider_trials::dice::Dice;
use postrider_trials::relay_options::RelayOptions;
use postrider_trials::test_store::TestStore;
use postrider_trials::trial::{Trial, is_soak};
use postrider_trials::writers::Writers;

use crate::{RELAY_PROCESS, on_each};

on_each!(two_relays_of_whom_one_is_killed_now_and_then_share_everything);

const BATCH: u32 = 16;
const LANES: u32 = 4;

fn sharing(options: &mut RelayOptions) {
    options.batch = BATCH;
    options.lanes = LANES;
    options.deaths = 1000;
    options.lease = Duration::from_secs(2);
}

async fn two_relays_of_whom_one_is_killed_now_and_then_share_everything<G: TestStore>() {
    let kills = if is_soak() { 30 } else { 3 };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let mut dice = Dice::thrown();
    let (mut one, mut other) = (trial.start_ready(sharing).await, trial.start_ready(sharing).await);
    let mut deaths = Vec::new();
    for _ in 0..kills {
        // Both have lanes: whoever is killed now has something in its hands.
        for relay_process in [&one, &other] {
            trial.until_it_holds(relay_process, PLAIN).await;
            trial.until_it_left(relay_process, 1).await;
        }
        tokio::time::sleep(dice.millis(300)).await;
        let dying = std::mem::replace(&mut one, other);
        deaths.push(trial.kill_beside(dying));
        other = trial.start_ready(sharing).await;
    }
    let committed = writers.stop().await;
    trial.until_quiet(&other).await;
    assert_eq!(one.stop().await, Some(0));
    let report = trial.finish(other).await;
    report.keeps_its_promises(&committed);
    report.repeats_only_what_was_open(&deaths, (BATCH * LANES) as usize);
    eprintln!("{} moves, {} kills, {} came again", report.moves(), deaths.len(), report.repetitions());
}
