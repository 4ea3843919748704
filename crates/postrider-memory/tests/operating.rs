//! A running relay on the log in memory, and an operator beside it.

use std::sync::Arc;

use postrider_conformance::engine::clock;
use postrider_conformance::engine::operating::{
    a_destination_that_is_away_shows, a_pause_waits_for_what_runs,
    a_relay_is_known_and_says_when_its_subscription_is_removed, a_sleeping_relay_notices_its_operator,
    a_try_under_suspicion_is_on_record, the_last_tries_show,
};
use postrider_core::Clock;
use postrider_memory::Outbox;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_relay_notices_a_replay_a_pause_and_a_resume() {
    let outbox = Outbox::new();
    a_sleeping_relay_notices_its_operator(&outbox, Arc::new(outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_is_known_and_says_when_its_subscription_is_removed_by_force() {
    let outbox = Outbox::new();
    a_relay_is_known_and_says_when_its_subscription_is_removed(&outbox, Arc::new(outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_waits_for_what_is_running() {
    let outbox = Outbox::new();
    a_pause_waits_for_what_runs(&outbox, Arc::new(outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_is_away_shows_until_it_is_back() {
    let outbox = Outbox::new();
    a_destination_that_is_away_shows(&outbox, Arc::new(outbox.store())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_tries_of_a_delivery_that_failed_show() {
    let clock = clock();
    let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
    the_last_tries_show(&outbox, Arc::new(outbox.store()), clock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_under_suspicion_is_on_record_before_it_begins() {
    let outbox = Outbox::new();
    a_try_under_suspicion_is_on_record(&outbox, Arc::new(outbox.store())).await;
}
