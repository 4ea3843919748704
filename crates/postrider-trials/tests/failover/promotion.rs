//! An asynchronous standby is promoted, and lacks the last that its primary had.

use postrider_trials::proxy::Clients;

use crate::scene::{MANY, Scene, TestSubscription};

fn all() -> Vec<TestSubscription> {
    vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()]
}

/// The endpoint answers when clients write to the new primary already.
async fn with_batches_in_hand(clients: Clients) {
    let mut scene = Scene::set(clients, all()).await;
    scene.take_in_hand(20).await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.open();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_in_hand_at_a_promotion_lose_nothing_that_the_new_primary_has() {
    with_batches_in_hand(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_in_hand_lose_nothing_behind_a_pooler_that_keeps_its_connections() {
    with_batches_in_hand(Clients::Kept).await;
}

/// The endpoint answers while there is no database: the settle waits for whichever comes.
async fn with_batches_answered_before(clients: Clients) {
    let mut scene = Scene::set(clients, all()).await;
    scene.take_in_hand(20).await;
    scene.kill().await;
    scene.open();
    for reader in &scene.readers {
        reader.endpoint.is_empty().await;
    }
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_answered_before_the_database_is_back_lose_nothing_that_it_has() {
    with_batches_answered_before(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_answered_before_the_database_is_back_lose_nothing_behind_a_pooler() {
    with_batches_answered_before(Clients::Kept).await;
}

/// The old primary had settled what the standby never heard of: the lanes stand further back than their holders believe.
async fn with_settles_that_vanished(clients: Clients) {
    let mut scene = Scene::set(clients, all()).await;
    scene.cut_off();
    scene.vanish(&["k1", "k2", "k3", "k4"], MANY).await;
    scene.until_settled().await;
    scene.hold_reads().await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.proxy.let_go();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settles_that_the_new_primary_never_got_lose_nothing_that_it_has() {
    with_settles_that_vanished(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settles_that_the_new_primary_never_got_lose_nothing_behind_a_pooler() {
    with_settles_that_vanished(Clients::Kept).await;
}
