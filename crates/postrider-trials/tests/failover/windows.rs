//! What is found out on the old server and written on the new one.

use std::time::Duration;

use postrider::store::Operate;
use postrider::{Relay, Start};
use postrider_trials::endpoint::Endpoint;
use postrider_trials::proxy::Clients;

use crate::scene::{LEASE, MANY, PATIENCE, Scene, TestSubscription};

/// A piece of the statement that finds the end of the log.
const STAND: &str = "as bound";

/// Lanes change: all are to read up to one position. It is found on the old server and aimed at on the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_lanes_that_aims_beyond_the_new_primary_loses_nothing_that_it_has() {
    let mut scene = Scene::set(Clients::Kept, vec![TestSubscription::plain()]).await;
    let store = scene.outbox.store().await.expect("a store");
    scene.proxy.hold(STAND);
    let changing = tokio::spawn(async move {
        while store.relane("plain", 2).await.is_ok_and(|step| step != postrider::store::Relane::Done) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    scene.proxy.holds(1).await;
    scene.cut_off();
    scene.vanish(&["k1", "k2", "k3"], MANY).await;
    scene.proxy.hold("set target = $2");
    scene.proxy.holds(1).await;
    scene.kill().await;
    let log = scene.promote().await;
    // What the old server had taken back may still be leased here: that lease runs out.
    log.run("update postrider.lane set lease_until = clock_timestamp()").await;
    scene.proxy.let_go();
    // Each in a transaction of its own: their ids go beyond those that the old server had handed out.
    for n in 0..MANY {
        log.record("wanted", &[&format!("k{}", n % 20)], 1).await;
    }
    scene.keeps_its_promises(&log).await;
    tokio::time::timeout(PATIENCE, changing).await.expect("the lanes are changed in time").expect("changed");
    log.record("wanted", &["k1", "k2", "k3", "k4", "k5"], 20).await;
    scene.keeps_its_promises(&log).await;
    scene.stop().await;
}

/// A subscription begins at the end of the log: the old server's, written on the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_begins_now_gets_all_that_the_new_primary_records_afterwards() {
    let mut scene = Scene::set(Clients::Kept, vec![TestSubscription::plain()]).await;
    scene.cut_off();
    scene.vanish(&["k1", "k2", "k3"], MANY).await;
    scene.until_settled().await;
    // It is written in a transaction of its own, which begins when the end of the log is known.
    scene.proxy.hold("BEGIN");
    let endpoint = Endpoint::default();
    let sink = endpoint.clone();
    let relay = Relay::new(&scene.outbox).lease(LEASE).poll_interval(Duration::from_millis(100));
    let relay = relay.figures_every(None).subscribe("begun", |s| s.start(Start::Now).sink(sink));
    let starting = tokio::spawn(relay.start());
    scene.proxy.holds(1).await;
    scene.kill().await;
    let log = scene.promote().await;
    scene.proxy.let_go();
    let relay = starting.await.expect("no panic").expect("the relay starts");
    let mut recorded = Vec::new();
    for n in 0..MANY {
        recorded.extend(log.record("wanted", &[&format!("k{}", n % 20)], 1).await);
    }
    let missing = endpoint.missing(&recorded, PATIENCE).await.len();
    assert_eq!(missing, 0, "{missing} of {} that were recorded after it began never came", recorded.len());
    relay.stop().await.expect("stopped");
    scene.stop().await;
}
