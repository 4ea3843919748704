//! The database goes away under a relay, and comes back.

use std::time::Duration;

use postrider_trials::dice::Dice;
use postrider_trials::test_store_postgres::PgTestStore;
use postrider_trials::trial::{Trial, is_soak};
use postrider_trials::writers::Writers;
use sqlx::Row;
use xtask::postgres::Cluster;

use crate::RELAY_PROCESS;

const BATCH: u32 = 16;

fn cluster() -> Cluster {
    Cluster::create(&[])
        .expect("this trial starts a PostgreSQL server of its own: its programs must be installed")
}

async fn trial_on(cluster: &Cluster) -> Trial<PgTestStore> {
    let (test_store, keep) = PgTestStore::make_on(&cluster.url("postgres")).await;
    Trial::on(RELAY_PROCESS, test_store, keep).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_goes_on_by_itself_when_its_database_is_restarted() {
    let restarts = if is_soak() { 20 } else { 2 };
    let mut cluster = cluster();
    let trial = trial_on(&cluster).await;
    let writers = Writers::start(&trial.test_store);
    let relay_process = trial
        .start_ready(|options| {
            options.batch = BATCH;
            options.lease = Duration::from_secs(1);
        })
        .await;
    for round in 1..=restarts {
        trial.until_it_left_more(&relay_process, 60).await;
        tokio::task::block_in_place(|| {
            // In order, and in every other round as a crash would.
            if round % 2 == 1 { cluster.stop() } else { cluster.kill() }.expect("it stops");
            cluster.start().expect("it starts");
        });
    }
    trial.until_it_left_more(&relay_process, 60).await;
    let committed = writers.stop().await;
    let report = trial.finish(relay_process).await;
    report.keeps_its_promises(&committed);
    // The lease runs out while the database is away: what was in flight may come again.
    let most = restarts * BATCH as usize;
    assert!(report.repetitions() <= most, "{} came again; at most {most} could", report.repetitions());
    eprintln!("{} moves, {restarts} restarts, {} came again", report.moves(), report.repetitions());
}

/// Those of the relay and of its transactional handlers. The connections of the plain handler stand for the outside world,
/// whose answers are not lost here: so nothing at all may come twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_whose_connections_are_ended_again_and_again_repeats_nothing() {
    let cuts = if is_soak() { 300 } else { 25 };
    let cluster = cluster();
    let trial = trial_on(&cluster).await;
    let writers = Writers::start(&trial.test_store);
    let mut dice = Dice::thrown();
    let relay_process = trial
        .start_ready(|options| {
            options.batch = BATCH;
            options.lease = Duration::from_secs(10);
        })
        .await;
    let mut ended = 0;
    for _ in 0..cuts {
        trial.until_it_left_more(&relay_process, 5).await;
        tokio::time::sleep(dice.millis(60)).await;
        let cut = "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity \
                   where application_name in ('relay_process', 'postrider')";
        let row =
            sqlx::query(cut).fetch_one(&trial.test_store.pool).await.expect("the connections are ended");
        ended += row.get::<i64, _>(0);
    }
    assert!(ended >= cuts, "connections were ended each time");
    let committed = writers.stop().await;
    let report = trial.finish(relay_process).await;
    report.keeps_its_promises(&committed);
    report.repeats_nothing();
    eprintln!("{} moves, {ended} connections ended", report.moves());
}
