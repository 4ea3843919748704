//! Transactions are open on the old primary when its standby is promoted.

use postrider_trials::proxy::Clients;

use crate::scene::{Scene, TestSubscription};

const INSERT: &str = "insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
                      select 'wanted', 'Paid', 'Order', 'open' || n, 'null' from generate_series(1, 4) as n";

/// Two are open when the lanes pass their events: one commits, is read as late, and vanishes; one never ends.
async fn with_late_events_in_hand(clients: Clients) {
    let mut scene = Scene::set(
        clients,
        vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()],
    )
    .await;
    let mut commits = scene.old.0.begin().await.expect("begin");
    sqlx::query(INSERT).execute(&mut *commits).await.expect("recorded");
    let mut stays = scene.old.0.begin().await.expect("begin");
    sqlx::query(INSERT).execute(&mut *stays).await.expect("recorded");
    scene.old.record("wanted", &["k1", "k2", "k3"], 10).await;
    scene.until_settled().await;
    scene.take_in_hand_with(20, async || commits.commit().await.expect("commit")).await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.open();
    scene.delivers_everything(&log, late).await;
    drop(stays);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_events_in_hand_at_a_promotion_hide_nothing_that_the_new_primary_has() {
    with_late_events_in_hand(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_events_in_hand_hide_nothing_behind_a_pooler_that_keeps_its_connections() {
    with_late_events_in_hand(Clients::Kept).await;
}
