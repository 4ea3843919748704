//! The database is set back to a point in its past, at the same address, under a running relay.

use postrider_trials::proxy::Clients;
use xtask::postgres::Cluster;
use xtask::postgres::restore::ARCHIVING;

use crate::scene::{Log, MANY, SMALL, Scene, TestSubscription, blocking};

async fn archived(clients: Clients) -> Scene {
    let settings: Vec<_> = SMALL.iter().chain(ARCHIVING).copied().collect();
    let primary = blocking(|| Cluster::create(&settings));
    let backup = primary.folder().join("backup");
    blocking(|| primary.back_up_to(&backup));
    Scene::set_on(
        primary,
        None,
        clients,
        vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()],
    )
    .await
}

async fn set_back(scene: &mut Scene) -> Log {
    scene.note_the_end().await;
    let backup = scene.primary.folder().join("backup");
    blocking(|| scene.primary.restore_to(backup, "point"));
    scene.lead_to_the_primary().await
}

/// The batches in hand reach beyond the point.
async fn with_batches_in_hand(clients: Clients) {
    let mut scene = archived(clients).await;
    scene.close();
    scene.hold_reads().await;
    let known = scene.old.record("wanted", &["k1", "k2", "k3", "k4", "k5", "k6"], 20).await;
    blocking(|| scene.primary.restore_point("point"));
    let keys = scene.old.keys_of_lane(1).await;
    scene.vanish(&keys.iter().map(String::as_str).collect::<Vec<_>>(), MANY).await;
    scene.proxy.let_go();
    for reader in &scene.readers {
        reader.endpoint.holds(|event| known.contains(&event.event_id)).await;
    }
    let log = set_back(&mut scene).await;
    let late = scene.record_anew(&log).await;
    scene.open();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_in_time_restore_under_a_running_relay_loses_nothing_that_it_has() {
    with_batches_in_hand(Clients::Cut).await;
}

/// The lanes stand further back than their holders believe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_in_time_restore_behind_a_pooler_loses_nothing_that_it_has() {
    let mut scene = archived(Clients::Kept).await;
    blocking(|| scene.primary.restore_point("point"));
    scene.vanish(&["k1", "k2", "k3", "k4"], MANY).await;
    scene.until_settled().await;
    scene.hold_reads().await;
    let log = set_back(&mut scene).await;
    let late = scene.record_anew(&log).await;
    scene.proxy.let_go();
    scene.delivers_everything(&log, late).await;
    scene.stop().await;
}
