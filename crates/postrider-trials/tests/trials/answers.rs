//! A settle is done, but its answer is lost.

use std::time::Duration;

use postrider_trials::PLAIN;
use postrider_trials::relay_options::{Point, Stand};
use postrider_trials::test_store::TestStore;
use postrider_trials::trial::Trial;
use postrider_trials::writers::Writers;

use crate::{RELAY_PROCESS, on_each};

on_each!(
    a_batch_whose_settling_was_not_answered_is_not_repeated,
    a_delivery_whose_settling_was_not_answered_is_neither_repeated_nor_stuck,
);

async fn a_batch_whose_settling_was_not_answered_is_not_repeated<G: TestStore>() {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let stand = Stand { point: Point::BatchUnanswered, subscription: PLAIN.to_owned(), nth: 3 };
    let mut relay_process = trial.start(|options| options.stand = Some(stand));
    relay_process.stands_at(Point::BatchUnanswered).await;
    trial.until_it_left_more(&relay_process, 60).await;
    let committed = writers.stop().await;
    let report = trial.finish(relay_process).await;
    report.keeps_its_promises(&committed);
    report.repeats_nothing();
}

/// After two relays were killed with a lane in their hands, the third tries what it finds one by one: each with a mark
/// before it and a word on it afterwards. The answer to that word is lost.
async fn a_delivery_whose_settling_was_not_answered_is_neither_repeated_nor_stuck<G: TestStore>() {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let mut deaths = Vec::new();
    for _ in 0..2 {
        let stand = Stand { point: Point::Claimed, subscription: PLAIN.to_owned(), nth: 1 };
        let mut relay_process = trial.start(|options| options.stand = Some(stand));
        relay_process.stands_at(Point::Claimed).await;
        deaths.push(trial.kill(relay_process).await);
    }
    let stand = Stand { point: Point::DeliveryUnanswered, subscription: PLAIN.to_owned(), nth: 4 };
    let mut relay_process = trial.start(|options| {
        // Longer than any pause between two tries: it does not lose its lane by waiting.
        options.lease = Duration::from_secs(30);
        options.stand = Some(stand);
    });
    relay_process.stands_at(Point::DeliveryUnanswered).await;
    trial.until_it_left_more(&relay_process, 60).await;
    let committed = writers.stop().await;
    let report = trial.finish(relay_process).await;
    report.keeps_its_promises(&committed);
    report.repeats_nothing();
}
