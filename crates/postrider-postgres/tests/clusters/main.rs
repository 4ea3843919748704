//! What happens to whole clusters: dump and restore, a database set back, logins. Each test starts servers of its own.

mod refused;
#[path = "../support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use postrider_conformance::TestLog;
use postrider_conformance::relay::{
    LONG, claim, commit_one, drain, drain_lane, event, ids, read, settle, subscribe,
};
use postrider_core::{
    Clock, ErrorKind, EventLog, LeaseStatus, Operate, Replay, ReplayFrom, Settlement, Store, Subscription,
    Uuid,
};
use postrider_postgres::Outbox;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row};
use support::{Pg, PgLog};
use xtask::postgres::Cluster;

fn cluster() -> Cluster {
    Cluster::create(&[("max_prepared_transactions", "5")])
        .expect("these tests start PostgreSQL servers of their own: its programs must be installed")
}

fn options(cluster: &Cluster) -> PgConnectOptions {
    PgConnectOptions::from_str(&cluster.url("postgres")).expect("an address")
}

async fn pool(cluster: &Cluster) -> PgPool {
    PgPoolOptions::new().max_connections(10).connect_with(options(cluster)).await.expect("connect")
}

/// Uses up transaction ids until the next one is at least this, or so many.
async fn burn(pool: &PgPool, until: u64) -> u64 {
    loop {
        let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(pool).await.expect("an xid");
        let xid: u64 = row.get::<String, _>(0).parse().expect("a number");
        if xid >= until {
            return xid;
        }
    }
}

/// A schema as SQL.
fn dump(cluster: &Cluster, schema: &str) -> String {
    let output = cluster.bin("pg_dump").args(["--schema", schema, "postgres"]).output().expect("pg_dump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a dump is text")
}

/// A new cluster with what was dumped.
fn restore(dump: &str) -> Cluster {
    let cluster = cluster();
    let file = cluster.folder().join("dump.sql");
    std::fs::write(&file, dump).expect("write the dump");
    let mut psql = cluster.bin("psql");
    let status = psql
        .args(["-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f"])
        .arg(&file)
        .status()
        .expect("psql");
    assert!(status.success());
    cluster
}

/// A replay sets a position of another cluster back, too: what it owes stays owed, and so does what the new cluster writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_after_a_restore_loses_nothing() {
    let old = cluster();
    let log = Pg::default().log_on(options(&old), Clock::Database).await;
    burn(&log.pool, 3000).await;
    subscribe(&log.store, "s").await;
    let mut late = log.begin().await;
    let owed = late.record(&event("late", 1)).await.expect("record");
    let mut events = Vec::new();
    for n in 0..10 {
        events.push(commit_one(&log, &format!("a{}", n % 3)).await);
    }
    assert_eq!(ids(&drain(&log.store, "s").await), events);
    late.commit().await.expect("commit");
    let new = restore(&dump(&old, &log.schema));

    let pool = pool(&new).await;
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox");
    let mut open = pool.begin().await.expect("begin");
    let open_id = outbox.record(&mut open, &event("open", 1)).await.expect("record");
    open.commit().await.expect("commit");
    let store = outbox.store().await.expect("store");
    let replay = async |from: Uuid| {
        let from = ReplayFrom::Event(from);
        let replay = Replay { subscription: "s".into(), from, effects_may_repeat: false, dry_run: false };
        store.replay(&replay).await.expect("replay").events
    };
    assert_eq!(replay(events[6]).await, 4);
    let mut expected = vec![owed];
    expected.extend(&events[6..]);
    expected.push(open_id);
    assert_eq!(ids(&drain(&store, "s").await), expected, "what a foreign position owes comes first");

    // Now the position is of this cluster, and goes back below its floor.
    let mut open = pool.begin().await.expect("begin");
    let open_id = outbox.record(&mut open, &event("open", 2)).await.expect("record");
    let last = outbox.record_outside_transaction(&event("last", 1)).await.expect("record");
    expected = events[2..].to_vec();
    expected.extend([*ids(&drain(&store, "s").await).last().expect("the last one")]);
    assert_eq!(expected.last(), Some(&last));
    assert_eq!(replay(events[2]).await, 10);
    let again = ids(&drain(&store, "s").await);
    assert_eq!(again.len(), 10);
    assert!(expected.iter().all(|id| again.contains(id)), "everything from there on");
    open.commit().await.expect("commit");
    assert_eq!(ids(&drain(&store, "s").await), [open_id]);
    assert!(drain(&store, "s").await.is_empty());
}

/// Transaction ids of another cluster mean nothing in this one: after a dump is restored into a new cluster, what was
/// owed is delivered, what was settled is not, and a transaction that happens to have an old row's id repeats nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_restored_into_a_new_cluster_loses_and_repeats_nothing() {
    let old = cluster();
    let log = Pg::default().log_on(options(&old), Clock::Database).await;
    let start = burn(&log.pool, 0).await;
    burn(&log.pool, start + 1500).await;
    log.store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    commit_each(&log, "a", 30).await;
    let settled: HashSet<Uuid> = ids(&drain(&log.store, "s").await).into_iter().collect();
    // In flight: late ones that are committed before the dump, one that is not, and a batch that is open.
    let mut owed = Vec::new();
    let (mut late, mut never) = (log.begin().await, log.begin().await);
    for n in 0..15 {
        owed.push(late.record(&event(&format!("late{n}"), n)).await.expect("record"));
    }
    let lost = never.record(&event("never", 1)).await.expect("record");
    let prompt = commit_each(&log, "p", 10).await;
    let first: Vec<Uuid> = ids(&drain(&log.store, "s").await);
    assert_eq!(first.iter().collect::<HashSet<_>>(), prompt.iter().collect());
    late.commit().await.expect("commit");
    owed.push(commit_one(&log, "fresh").await);
    let open = log.store.claim("s", "old relay", LONG).await.expect("claim").expect("a lane");
    assert!(!read(&log.store, &open, 3).await.events.is_empty());

    let dumped = dump(&old, &log.schema);
    never.commit().await.expect("after the dump: it is not in it");
    assert!(!dumped.contains(&lost.to_string()));
    let new = restore(&dumped);

    // Publishers start first.
    let pool = pool(&new).await;
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox");
    let mut open_publisher = pool.begin().await.expect("begin");
    sqlx::query("select pg_current_xact_id()").execute(&mut *open_publisher).await.expect("an xid");
    for n in 0..8 {
        owed.push(outbox.record_outside_transaction(&event(&format!("new{n}"), n)).await.expect("record"));
    }
    let store = outbox.store().await.expect("store");
    owed.push(outbox.record(&mut open_publisher, &event("open", 1)).await.expect("record"));
    let mut got = drain_small(&store).await;
    open_publisher.commit().await.expect("commit");
    // The old relay's lease is in the dump; it runs out, or is void, or an operator frees it.
    let free = format!("update {}.lane set lease_owner = null", log.schema);
    sqlx::raw_sql(AssertSqlSafe(free)).execute(&pool).await.expect("free");
    got.extend(drain_small(&store).await);
    let repeated: Vec<_> = got.iter().filter(|id| settled.contains(id) || first.contains(id)).collect();
    assert!(repeated.is_empty(), "{} that were settled came again", repeated.len());
    got.sort_unstable();
    owed.sort_unstable();
    assert_eq!(got, owed, "what was owed, once");
    a_reused_transaction_id_repeats_nothing(&log.schema, &outbox, &store).await;
}

/// Commits so many events, each of an aggregate of its own.
async fn commit_each(log: &PgLog, name: &str, events: usize) -> Vec<Uuid> {
    let mut committed = Vec::new();
    for n in 0..events {
        committed.push(commit_one(log, &format!("{name}{n}")).await);
    }
    committed
}

/// Drains all lanes that are free, in small batches.
async fn drain_small(store: &dyn Store) -> Vec<Uuid> {
    let mut events = Vec::new();
    let mut leases = Vec::new();
    while let Some(mut lease) = store.claim("s", "new relay", LONG).await.expect("claim") {
        events.extend(ids(&drain_lane(store, &mut lease, 4).await));
        leases.push(lease);
    }
    for lease in leases {
        store.release(lease).await.expect("release");
    }
    events
}

/// A transaction of this cluster that has an old row's transaction id, open while a relay reads.
async fn a_reused_transaction_id_repeats_nothing(schema: &str, outbox: &Outbox, store: &dyn Store) {
    let pool = outbox.pool();
    let ids_of = format!("select distinct tx_id::text from {schema}.event where aggregate_id like 'a%'");
    let rows = sqlx::query(AssertSqlSafe(ids_of)).fetch_all(pool).await.expect("ids");
    let mut old_ids: Vec<u64> =
        rows.iter().map(|row| row.get::<String, _>(0).parse().expect("a number")).collect();
    old_ids.sort_unstable();
    let wanted = old_ids[old_ids.len() / 2];
    burn(pool, wanted - 1).await;
    let mut twin = pool.begin().await.expect("begin");
    let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(&mut *twin).await.expect("an xid");
    assert_eq!(row.get::<String, _>(0), wanted.to_string(), "the twin of an old transaction");
    let mut expected = vec![outbox.record_outside_transaction(&event("after", 1)).await.expect("record")];
    let mut got = drain_small(store).await;
    expected.push(outbox.record(&mut twin, &event("twin", 1)).await.expect("record"));
    expected.push(outbox.record_outside_transaction(&event("after", 2)).await.expect("record"));
    got.extend(drain_small(store).await);
    twin.commit().await.expect("commit");
    got.extend(drain_small(store).await);
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected, "nothing of the old cluster comes again");
}

/// A dump taken while a lane is in the middle of many late events, others of which became visible meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_in_the_middle_of_many_late_events_loses_and_repeats_nothing() {
    let old = cluster();
    let log = Pg::default().log_on(options(&old), Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    let (mut bulk, mut other) = (log.begin().await, log.begin().await);
    let mut owed = Vec::new();
    for n in 0..40 {
        owed.push(bulk.record(&event("bulk", n)).await.expect("record"));
        owed.push(other.record(&event("other", n)).await.expect("record"));
    }
    let prompt = commit_one(&log, "prompt").await;
    assert_eq!(ids(&drain_lane(&log.store, &mut lease, 10).await), [prompt]);
    bulk.commit().await.expect("commit");
    let mut got = Vec::new();
    for _ in 0..2 {
        let batch = read(&log.store, &lease, 10).await;
        assert_eq!(batch.events.len(), 10);
        got.extend(batch.events.iter().map(|read| read.event.event_id));
        settle(&log.store, &mut lease, &batch).await;
    }
    other.commit().await.expect("commit");
    log.store.release(lease).await.expect("release");

    let new = restore(&dump(&old, &log.schema));
    let pool = pool(&new).await;
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox");
    owed.push(outbox.record_outside_transaction(&event("new", 1)).await.expect("record"));
    let store = outbox.store().await.expect("store");
    let mut lease = claim(&store, "s").await;
    got.extend(ids(&drain_lane(&store, &mut lease, 10).await));
    got.sort_unstable();
    owed.sort_unstable();
    assert_eq!(got, owed);
}

/// A database set back to an earlier copy of itself, under a running relay: it notices, and loses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_set_back_under_a_running_relay_loses_nothing() {
    let mut cluster = cluster();
    let log = Pg::default().log_on(options(&cluster), Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    for _ in 0..10 {
        commit_one(&log, "a").await;
    }
    drain_lane(&log.store, &mut lease, 100).await;
    commit_one(&log, "a").await;
    let copy = copied(&mut cluster);

    // The relay goes on: what follows will never have happened.
    for _ in 0..20 {
        retrying(async || log.outbox.record_outside_transaction(&event("lost", 1)).await.is_ok()).await;
    }
    let mut settled = 0;
    while settled < 21 {
        let Ok(batch) = log.store.read(&lease, &lease.position, 7).await else { continue };
        assert_eq!(settle(&log.store, &mut lease, &batch).await, LeaseStatus::Held);
        settled += batch.events.len();
    }
    let ahead = lease.clone();
    set_back(&mut cluster, &copy);

    // New events take the ids, and the transaction ids, that those lost ones had.
    let written = record_new(&log.outbox, 3).await;
    let mut old = ahead.clone();
    let error = loop {
        match log.store.read(&old, &old.position, 100).await {
            Ok(batch) => panic!("a read from a position that never was found {} events", batch.events.len()),
            Err(error) if error.kind() == ErrorKind::LeaseLost => break error,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    assert!(error.is_retryable(), "{error}");
    assert_eq!(log.store.extend(&mut old, LONG, None).await.expect("extend"), LeaseStatus::Lost);
    let settlement = Settlement::at(old.position.clone());
    assert_eq!(log.store.settle(&mut old, &settlement).await.expect("settle"), LeaseStatus::Lost);
    // It gives the lane up, claims it anew and goes by where the lane stands.
    log.store.release(old).await.expect("release");
    let got = drain(&log.store, "s").await;
    assert_eq!(got.len(), 1 + written.len(), "the one that was not settled in the copy, and the new ones");
    assert_eq!(ids(&got[1..]), written);
}

/// The same with a batch in hand: the lane stands where it stood, but the batch is of a past that never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_a_past_that_never_was_cannot_be_settled() {
    let mut cluster = cluster();
    let log = Pg::default().log_on(options(&cluster), Clock::Database).await;
    subscribe(&log.store, "s").await;
    let lease = claim(&log.store, "s").await;
    let copy = copied(&mut cluster);
    for _ in 0..10 {
        retrying(async || log.outbox.record_outside_transaction(&event("lost", 1)).await.is_ok()).await;
    }
    let mut batch = None;
    retrying(async || {
        batch = log.store.read(&lease, &lease.position, 100).await.ok();
        batch.is_some()
    })
    .await;
    let batch = batch.expect("a batch");
    assert_eq!(batch.events.len(), 10);
    set_back(&mut cluster, &copy);
    let written = record_new(&log.outbox, 10).await;
    let mut stale = lease.clone();
    let mut status = None;
    retrying(async || {
        let _ = log.store.extend(&mut stale, LONG, Some(&batch.next)).await;
        status = log.store.settle(&mut stale, &Settlement::of(&batch)).await.ok();
        status.is_some()
    })
    .await;
    assert_eq!(status, Some(LeaseStatus::Lost));
    log.store.release(stale).await.expect("release");
    assert_eq!(ids(&drain(&log.store, "s").await), written, "what took the lost ones' ids is delivered");
}

/// Stops a cluster, copies its data and starts it again. Returns the copy.
fn copied(cluster: &mut Cluster) -> PathBuf {
    let copy = cluster.folder().join("copy");
    cluster.stop().expect("stop");
    cluster.copy_data_to(&copy).expect("copy");
    cluster.start().expect("start");
    copy
}

fn set_back(cluster: &mut Cluster, copy: &Path) {
    cluster.kill().expect("kill");
    cluster.replace_data_from(copy).expect("set back");
    cluster.start().expect("start");
}

/// Records so many new events, as soon as the database is back.
async fn record_new(outbox: &Outbox, events: usize) -> Vec<Uuid> {
    let mut written = Vec::new();
    for _ in 0..events {
        retrying(async || {
            let recorded = outbox.record_outside_transaction(&event("new", 1)).await;
            recorded.is_ok_and(|id| {
                written.push(id);
                true
            })
        })
        .await;
    }
    written
}

async fn retrying(mut attempt: impl AsyncFnMut() -> bool) {
    for _ in 0..200 {
        if attempt().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the database did not come back");
}
