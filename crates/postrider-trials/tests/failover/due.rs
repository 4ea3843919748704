//! Deliveries that were due are in hand when the standby is promoted.

use postrider_trials::proxy::Clients;

use crate::scene::{MANY, Scene, TestSubscription};
use crate::wait_for;

/// The first of `k1` fails, so that the others of it wait behind it: what vanished is in hand together with what did not.
async fn with_due_deliveries_in_hand(clients: Clients) {
    let mut scene = Scene::set(clients, vec![TestSubscription::plain(), TestSubscription::laned()]).await;
    scene.readers.iter().for_each(|reader| reader.endpoint.refuse("k1"));
    scene.old.record("wanted", &["k1"], 5).await;
    scene.until_settled().await;
    scene.cut_off();
    let vanished = scene.vanish(&["k1"], MANY).await;
    scene.until_settled().await;
    scene.close();
    for reader in &scene.readers {
        reader.endpoint.holds(|event| vanished.contains(&event.event_id)).await;
    }
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.readers.iter().for_each(|reader| reader.endpoint.refuse_nothing());
    scene.open();
    scene.delivers_everything(&log, late).await;
    // What has a row is what had failed before: nothing was written to those that have the numbers of the vanished.
    let strangers = "select count(*) from postrider.delivery d \
                     where not exists (select from postrider.event e \
                                       where e.id = d.id and e.event_id = d.event_id and e.aggregate_id = 'k1')";
    assert_eq!(log.number(strangers).await, 0, "a row was written to a stranger");
    let open = "select count(*) from postrider.delivery where state in ('waiting', 'retrying')";
    wait_for("deliveries stay open", async || log.number(open).await == 0).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_a_due_delivery_is_written_to_no_stranger() {
    with_due_deliveries_in_hand(Clients::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_a_due_delivery_is_written_to_no_stranger_behind_a_pooler() {
    with_due_deliveries_in_hand(Clients::Kept).await;
}
