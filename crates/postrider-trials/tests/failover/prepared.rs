//! A transaction is prepared on the old primary, and the promoted one has it still.

use postrider_trials::proxy::Clients;

use crate::scene::{Log, Scene, TestSubscription};
use crate::wait_for;

/// Prepares a transaction with an event of the key `p`. While publishers ring, none can be prepared.
async fn prepare(log: &Log) {
    let asleep = "select (pg_sequence_last_value('postrider.bell') \
                   > extract(epoch from clock_timestamp()) * 1000000)::integer::bigint";
    wait_for("the bell stays armed", async || log.number(asleep).await == 0).await;
    log.run(
        "begin; insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
         values ('wanted', 'Paid', 'Order', 'p', 'null'); prepare transaction 'p'",
    )
    .await;
}

/// It is passed by all lanes before the promotion, and committed after it, when transactions on the new primary have gone on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_prepared_before_a_promotion_and_committed_after_it_is_delivered() {
    let mut scene = Scene::set(
        Clients::Cut,
        vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()],
    )
    .await;
    scene.hold_reads().await;
    prepare(&scene.old).await;
    scene.proxy.let_go();
    scene.old.record("wanted", &["k1", "k2", "k3"], 10).await;
    scene.until_settled().await;
    scene.take_in_hand(20).await;
    scene.kill().await;
    let log = scene.promote().await;
    let late = scene.record_anew(&log).await;
    scene.open();
    scene.delivers_everything(&log, late).await;
    log.run("commit prepared 'p'").await;
    assert_eq!(log.number("select count(*) from postrider.event where aggregate_id = 'p'").await, 1);
    scene.keeps_its_promises(&log).await;
    scene.stop().await;
}

/// The coordinator commits it on the old primary, and once more on the new one, which never heard of it. In between the relay
/// has read it and failed to deliver it: the row that says so can't be written where the event is not there yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_event_whose_prepared_transaction_is_committed_again_is_delivered_in_the_end() {
    let mut scene = Scene::set(
        Clients::Kept,
        vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()],
    )
    .await;
    scene.close();
    scene.readers.iter().for_each(|reader| reader.endpoint.refuse("p"));
    scene.hold_reads().await;
    prepare(&scene.old).await;
    let known = scene.old.record("wanted", &["k1", "k2", "k3", "k4", "k5", "k6"], 20).await;
    scene.cut_off();
    scene.old.run("commit prepared 'p'").await;
    scene.proxy.let_go();
    for reader in &scene.readers {
        reader.endpoint.holds(|event| event.aggregate_id == "p").await;
        reader.endpoint.holds(|event| known.contains(&event.event_id)).await;
    }
    scene.kill().await;
    let log = scene.promote().await;
    // Clients are first: the transaction ids that the batch knows of are used up.
    for _ in 0..50 {
        log.run("select pg_current_xact_id()").await;
    }
    scene.open();
    // Before anything else is recorded there: a read that finds the transaction open would wait for it.
    let behind = "select count(*) from postrider.lane where frontier < (select max(id) from postrider.event)";
    wait_for("lanes are not at the end of the log", async || log.number(behind).await == 0).await;
    log.run("commit prepared 'p'").await;
    scene.readers.iter().for_each(|reader| reader.endpoint.refuse_nothing());
    scene.keeps_its_promises(&log).await;
    scene.stop().await;
}

/// The same, when the relay is in the middle of more late events than a batch: it goes through the rest of them on the new
/// primary, as a snapshot of the old one shows them, in which the prepared transaction is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_prepared_among_many_late_ones_is_delivered_when_it_is_committed_again() {
    let mut scene = Scene::set(Clients::Kept, vec![TestSubscription::plain().batch(20)]).await;
    scene.hold_reads().await;
    let mut many = scene.old.0.begin().await.expect("begin");
    let sql = "insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
               select 'wanted', 'Paid', 'Order', 'm' || n, 'null' from generate_series(1, 50) as n";
    sqlx::query(sql).execute(&mut *many).await.expect("recorded");
    prepare(&scene.old).await;
    scene.proxy.let_go();
    scene.old.record("wanted", &["k1", "k2", "k3"], 10).await;
    scene.until_settled().await;
    scene.close();
    scene.hold_reads().await;
    many.commit().await.expect("commit");
    scene.cut_off();
    scene.old.run("commit prepared 'p'").await;
    scene.proxy.let_pass(1);
    scene.readers[0].endpoint.holds(|event| event.aggregate_id.starts_with('m')).await;
    scene.proxy.let_go();
    scene.kill().await;
    let log = scene.promote().await;
    for _ in 0..50 {
        log.run("select pg_current_xact_id()").await;
    }
    scene.open();
    scene.keeps_its_promises(&log).await;
    let parts = "select count(*) from postrider.lane where position like '%/%/%/%/%'";
    wait_for("the lane stays among the late events", async || log.number(parts).await == 0).await;
    log.run("commit prepared 'p'").await;
    scene.keeps_its_promises(&log).await;
    scene.stop().await;
}
