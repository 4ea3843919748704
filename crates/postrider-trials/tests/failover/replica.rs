//! Rows that replication applies, past the triggers and so past the sequence.

use postrider_trials::proxy::Clients;
use sqlx::Row;
use xtask::postgres::Cluster;

use crate::scene::{PATIENCE, SMALL, Scene, TestSubscription, blocking};

/// What publishers record meanwhile has numbers below those rows: a frontier that jumped to them would hide it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_applied_above_the_sequence_hide_nothing_and_come_once_it_is_set() {
    let primary = blocking(|| Cluster::create(&SMALL));
    let readers = vec![TestSubscription::plain(), TestSubscription::filtered(), TestSubscription::laned()];
    let scene = Scene::set_on(primary, None, Clients::Cut, readers).await;
    let log = &scene.old;
    let applied = "set local session_replication_role = replica";
    let mut tx = log.0.begin().await.expect("begin");
    sqlx::query(applied).execute(&mut *tx).await.expect("as a replica");
    let sql = "insert into postrider.event (id, tx_id, event_id, stream, event_type, aggregate_type, aggregate_id, \
                                            recorded_at, payload) \
               select (select max(id) from postrider.event) + 200 + n, pg_current_xact_id(), gen_random_uuid(), 'wanted', \
                      'Paid', 'Order', 'r' || n, clock_timestamp(), 'null' \
               from generate_series(1, 10) as n returning event_id";
    let rows = sqlx::query(sql).fetch_all(&mut *tx).await.expect("applied");
    tx.commit().await.expect("commit");
    let applied: Vec<postrider::Uuid> = rows.iter().map(|row| row.get(0)).collect();
    // Each in a transaction of its own, for as long as a relay may take to look.
    let mut recorded = Vec::new();
    for _ in 0..50 {
        recorded.extend(log.record("wanted", &["k1", "k2", "k3", "k4", "k5"], 1).await);
    }
    for reader in &scene.readers {
        let missing = reader.endpoint.missing(&recorded, PATIENCE).await.len();
        assert_eq!(missing, 0, "{}: {missing} of {} never came", reader.name, recorded.len());
    }
    log.run("select setval('postrider.event_id', (select max(id) from postrider.event))").await;
    let after = log.record("wanted", &["k1", "k2"], 10).await;
    for reader in &scene.readers {
        for events in [&applied, &after] {
            let missing = reader.endpoint.missing(events, PATIENCE).await.len();
            assert_eq!(missing, 0, "{}: {missing} of {} never came", reader.name, events.len());
        }
    }
    scene.keeps_its_promises(&scene.old).await;
    scene.stop().await;
}

/// A sequence that was restarted has no last value until it is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_although_their_sequence_was_restarted_behind_them() {
    let primary = blocking(|| Cluster::create(&SMALL));
    let scene = Scene::set_on(
        primary,
        None,
        Clients::Cut,
        vec![TestSubscription::plain(), TestSubscription::filtered()],
    )
    .await;
    scene.hold_reads().await;
    scene.old.record("wanted", &["k1", "k2"], 10).await;
    scene.old.run("alter sequence postrider.event_id restart with 1000").await;
    scene.proxy.let_go();
    scene.keeps_its_promises(&scene.old).await;
    scene.old.record("wanted", &["k1", "k2"], 10).await;
    scene.keeps_its_promises(&scene.old).await;
    scene.stop().await;
}
