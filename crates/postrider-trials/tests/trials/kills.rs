//! A relay is killed at each step of a batch, and the next holder goes on.

use postrider_trials::relay_options::{Point, RelayOptions, Stand};
use postrider_trials::test_store::TestStore;
use postrider_trials::trial::Trial;
use postrider_trials::writers::Writers;
use postrider_trials::{EFFECTS, PLAIN};

use crate::{RELAY_PROCESS, on_each};

on_each!(
    a_relay_killed_after_its_claim_leaves_everything_to_the_next_holder,
    a_relay_killed_in_a_handler_leaves_everything_to_the_next_holder,
    a_relay_killed_before_it_settles_leaves_everything_to_the_next_holder,
    a_relay_killed_while_it_settles_leaves_everything_to_the_next_holder,
    a_relay_killed_after_it_settled_leaves_everything_to_the_next_holder,
    a_relay_with_an_inbox_killed_before_it_settles_repeats_nothing,
);

/// As many as the options's batch.
const BATCH: u32 = 16;

fn standing_at(point: Point, subscription: &str, nth: u32) -> impl FnOnce(&mut RelayOptions) {
    let stand = Stand { point, subscription: subscription.to_owned(), nth };
    move |options| {
        options.batch = BATCH;
        options.stand = Some(stand);
    }
}

/// Kills one relay where the plain subscription comes to a point, the next holder where the effects come to it, and lets a third
/// finish. What of the plain subscription may come again after the first kill is said by `most`.
async fn kill_at<G: TestStore>(point: Point, nth: u32, most: usize) {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let mut first = trial.start(standing_at(point, PLAIN, nth));
    first.stands_at(point).await;
    let first = trial.kill(first).await;
    let mut second = trial.start(standing_at(point, EFFECTS, nth));
    second.stands_at(point).await;
    let second = trial.kill(second).await;
    let next_holder = trial.start_ready(|options| options.batch = BATCH).await;
    trial.until_it_left(&next_holder, 100).await;
    let committed = writers.stop().await;
    let report = trial.finish(next_holder).await;
    report.keeps_its_promises(&committed);
    let name = first.relay_process.clone();
    report.repeats_only_what_was_open(&[first, second], BATCH as usize);
    let again = report.seen_again_after(&name);
    assert!(again <= most, "{again} came again after the first kill; at most {most} could");
}

async fn a_relay_killed_after_its_claim_leaves_everything_to_the_next_holder<G: TestStore>() {
    kill_at::<G>(Point::Claimed, 1, 0).await;
}

async fn a_relay_killed_in_a_handler_leaves_everything_to_the_next_holder<G: TestStore>() {
    kill_at::<G>(Point::Handling, 40, BATCH as usize).await;
}

async fn a_relay_killed_before_it_settles_leaves_everything_to_the_next_holder<G: TestStore>() {
    kill_at::<G>(Point::Delivered, 3, BATCH as usize).await;
}

async fn a_relay_killed_while_it_settles_leaves_everything_to_the_next_holder<G: TestStore>() {
    kill_at::<G>(Point::Settling, 3, BATCH as usize).await;
}

async fn a_relay_killed_after_it_settled_leaves_everything_to_the_next_holder<G: TestStore>() {
    kill_at::<G>(Point::Settled, 3, 0).await;
}

/// Every handler was done, and marked in the inbox; only the batch was not settled.
async fn a_relay_with_an_inbox_killed_before_it_settles_repeats_nothing<G: TestStore>() {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let mut first = trial.start(|options| {
        standing_at(Point::Delivered, PLAIN, 3)(options);
        options.inbox = true;
    });
    first.stands_at(Point::Delivered).await;
    trial.kill(first).await;
    let next_holder = trial.start_ready(|options| options.inbox = true).await;
    trial.until_it_left(&next_holder, 100).await;
    let committed = writers.stop().await;
    let report = trial.finish(next_holder).await;
    report.keeps_its_promises(&committed);
    report.repeats_nothing();
}
