//! A batch was read ahead of the one in hand when the standby is promoted.

use postrider_trials::proxy::Clients;

use crate::scene::{Scene, TestSubscription};

/// The batch in hand is all the standby knows of; the one behind it never was.
fn of_twenty() -> Vec<TestSubscription> {
    vec![
        TestSubscription::plain().batch(20),
        TestSubscription::filtered().batch(20),
        TestSubscription::laned().batch(10),
    ]
}

async fn with_a_batch_read_ahead(clients: Clients) {
    let mut scene = Scene::set(clients, of_twenty()).await;
    scene.take_in_hand_and_ahead(20).await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.open();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_read_ahead_of_a_promotion_hides_nothing_that_the_new_primary_has() {
    with_a_batch_read_ahead(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_read_ahead_hides_nothing_behind_a_pooler_that_keeps_its_connections() {
    with_a_batch_read_ahead(Clients::Kept).await;
}

/// The read ahead is asked of the old server and answered by the new one, from where a batch ended that never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_ahead_that_the_new_primary_answers_hides_nothing_that_it_has() {
    let readers = vec![
        TestSubscription::plain().batch(60),
        TestSubscription::filtered().batch(60),
        TestSubscription::laned().batch(30),
    ];
    let mut scene = Scene::set(Clients::Kept, readers).await;
    let lanes = scene.lanes();
    scene.take_some_in_hand(20, lanes).await;
    scene.proxy.holds(lanes).await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.proxy.let_go();
    scene.open();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}
