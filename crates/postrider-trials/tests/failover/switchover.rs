//! The standby has everything when it takes over.

use postrider_trials::proxy::Clients;

use crate::scene::{Scene, TestSubscription};
use crate::wait_for;

/// Batches are in hand; they are settled on the new server, and nothing comes twice.
async fn with_nothing_lost(clients: Clients) {
    let mut scene = Scene::set(
        clients,
        vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()],
    )
    .await;
    scene.close();
    scene.hold_reads().await;
    let known = scene.old.record("wanted", &["k1", "k2", "k3", "k4", "k5", "k6"], 20).await;
    scene.old.record("other", &["k1", "k2", "k3", "k4", "k5", "k6"], 20).await;
    scene.proxy.let_go();
    for reader in &scene.readers {
        reader.endpoint.holds(|event| known.contains(&event.event_id)).await;
    }
    let log = scene.switch_over().await;
    log.record("wanted", &["k1", "k2", "k3"], 30).await;
    scene.open();
    scene.keeps_its_promises(&log).await;
    for (index, reader) in scene.readers.iter().enumerate() {
        assert_eq!(scene.repeated(&log, index).await, 0, "{}: events came again", reader.name);
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switchover_without_loss_loses_and_repeats_nothing() {
    with_nothing_lost(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switchover_without_loss_loses_and_repeats_nothing_behind_a_pooler() {
    with_nothing_lost(Clients::Kept).await;
}

/// The address leads to the standby before that is promoted: it answers, but takes no writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_not_promoted_yet_is_waited_for() {
    let mut scene =
        Scene::set(Clients::Cut, vec![TestSubscription::plain(), TestSubscription::filtered()]).await;
    scene.take_in_hand(20).await;
    scene.kill().await;
    scene.lead_to_the_standby().await;
    scene.open();
    for reader in &scene.readers {
        reader.endpoint.is_empty().await;
    }
    // Until the relay has asked it for a write, and was refused.
    wait_for("nothing was refused", async || scene.said_by_the_standby().contains("read-only transaction"))
        .await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}
