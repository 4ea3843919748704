//! Dumps restored more than once, back to where they came from, as data only, and into another encoding.

mod support;

use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr;

use postrider_conformance::TestLog;
use postrider_conformance::relay::{change_lanes, commit_one, drain, drain_lane, event, ids, subscribe};
use postrider_core::{Clock, EventLog, Subscription, Uuid};
use postrider_postgres::{Outbox, PgStore};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row};
use support::{Pg, PgLog};
use xtask::postgres::Cluster;

fn cluster() -> Cluster {
    Cluster::create(&[])
        .expect("these tests start PostgreSQL servers of their own: its programs must be installed")
}

async fn connect(cluster: &Cluster, database: &str) -> PgPool {
    let options = PgConnectOptions::from_str(&cluster.url(database)).expect("an address");
    PgPoolOptions::new().max_connections(10).connect_with(options).await.expect("connect")
}

async fn log_on(cluster: &Cluster, database: &str) -> PgLog {
    let options = PgConnectOptions::from_str(&cluster.url(database)).expect("an address");
    Pg::default().log_on(options, Clock::Database).await
}

async fn store_on(pool: &PgPool, schema: &str) -> (Outbox, PgStore) {
    let outbox = Outbox::builder().schema(schema).connect(pool).await.expect("outbox");
    let store = outbox.store().await.expect("store");
    (outbox, store)
}

async fn run(pool: &PgPool, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await.expect("SQL");
}

/// Uses up transaction ids until the next one is this.
async fn burn(pool: &PgPool, next: u64) {
    loop {
        let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(pool).await.expect("an xid");
        let xid: u64 = row.get::<String, _>(0).parse().expect("a number");
        assert!(xid < next, "{next} is over");
        if xid == next - 1 {
            return;
        }
    }
}

/// The transaction ids of the log's rows, by id.
async fn xids(pool: &PgPool, schema: &str) -> Vec<u64> {
    let sql = format!("select tx_id::text from {schema}.event order by id");
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(pool).await.expect("xids");
    rows.iter().map(|row| row.get::<String, _>(0).parse().expect("a number")).collect()
}

/// Dumps a schema into a file that every server's account can read.
fn dump(cluster: &Cluster, database: &str, schema: &str, arguments: &[&str]) -> PathBuf {
    let mut command = cluster.bin("pg_dump");
    let output = command.args(["--schema", schema]).args(arguments).arg(database).output().expect("pg_dump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = std::env::temp_dir().join(format!("postrider-{}.dump", Uuid::new_v4().simple()));
    std::fs::write(&file, output.stdout).expect("write the dump");
    file
}

/// Runs a dump; what it says of errors.
fn restore(cluster: &Cluster, database: &str, file: &PathBuf) -> String {
    let mut psql = cluster.bin("psql");
    let output =
        psql.args(["-q", "-o", "/dev/null", "-f"]).arg(file).args(["-d", database]).output().expect("psql");
    std::fs::remove_file(file).expect("remove the dump");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Holds a transaction open that has this id, and records an event in it.
async fn open_with(
    pool: &PgPool,
    outbox: &Outbox,
    xid: u64,
) -> (sqlx::Transaction<'static, sqlx::Postgres>, Uuid) {
    burn(pool, xid).await;
    let mut tx = pool.begin().await.expect("begin");
    let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(&mut *tx).await.expect("an xid");
    assert_eq!(row.get::<String, _>(0), xid.to_string());
    let id = outbox.record(&mut tx, &event("twin", 1)).await.expect("record");
    (tx, id)
}

/// What a position of the second cluster owes is looked for among what was written there, not in the first one's rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_restored_twice_loses_and_repeats_nothing() {
    let (first, second, third) = (cluster(), cluster(), cluster());
    let log = log_on(&first, "postgres").await;
    subscribe(&log.store, "s").await;
    let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(&log.pool).await.expect("an xid");
    burn(&log.pool, row.get::<String, _>(0).parse::<u64>().expect("a number") + 1500).await;
    for n in 0..20 {
        commit_one(&log, &format!("a{n}")).await;
    }
    assert_eq!(drain(&log.store, "s").await.len(), 20);
    let wanted = xids(&log.pool, &log.schema).await[10];
    assert_eq!(restore(&second, "postgres", &dump(&first, "postgres", &log.schema, &[])), "");

    // In the second, a transaction with the id of one of the first's is open at the last read, and commits after it.
    let pool = connect(&second, "postgres").await;
    let (outbox, store) = store_on(&pool, &log.schema).await;
    assert!(drain(&store, "s").await.is_empty());
    let (open, owed) = open_with(&pool, &outbox, wanted).await;
    let prompt = outbox.record_outside_transaction(&event("prompt", 1)).await.expect("record");
    assert_eq!(ids(&drain(&store, "s").await), [prompt]);
    open.commit().await.expect("commit");
    assert_eq!(restore(&third, "postgres", &dump(&second, "postgres", &log.schema, &[])), "");

    let pool = connect(&third, "postgres").await;
    let (outbox, store) = store_on(&pool, &log.schema).await;
    let new = outbox.record_outside_transaction(&event("new", 1)).await.expect("record");
    assert_eq!(ids(&drain(&store, "s").await), [owed, new], "what was owed, and nothing again");
}

/// Back where it came from, a log has rows of another cluster above everything it had there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_comes_back_to_its_first_cluster_loses_and_repeats_nothing() {
    let (first, second) = (cluster(), cluster());
    let log = log_on(&first, "postgres").await;
    subscribe(&log.store, "s").await;
    for n in 0..10 {
        commit_one(&log, &format!("a{n}")).await;
    }
    assert_eq!(drain(&log.store, "s").await.len(), 10);
    assert_eq!(restore(&second, "postgres", &dump(&first, "postgres", &log.schema, &[])), "");
    let away = connect(&second, "postgres").await;
    let (outbox, store) = store_on(&away, &log.schema).await;
    let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(&away).await.expect("an xid");
    burn(&away, row.get::<String, _>(0).parse::<u64>().expect("a number") + 1500).await;
    let mut settled = Vec::new();
    for n in 0..10 {
        settled.push(outbox.record_outside_transaction(&event(&format!("b{n}"), 1)).await.expect("record"));
    }
    assert_eq!(ids(&drain(&store, "s").await), settled);
    let mut owed: HashSet<Uuid> = HashSet::new();
    for n in 0..10 {
        owed.insert(outbox.record_outside_transaction(&event(&format!("c{n}"), 1)).await.expect("record"));
    }
    let wanted = xids(&away, &log.schema).await[15];
    run(&log.pool, format!("drop schema {} cascade", log.schema)).await;
    assert_eq!(restore(&first, "postgres", &dump(&second, "postgres", &log.schema, &[])), "");

    // The lanes change: what the second cluster wrote is in the future of this one's transaction ids.
    let (outbox, store) = store_on(&log.pool, &log.schema).await;
    let mut got = ids(&change_lanes(&store, "s", 2).await);
    got.extend(ids(&drain(&store, "s").await));
    assert_eq!(got.len(), owed.len(), "none is lost and none comes again");
    assert_eq!(got.into_iter().collect::<HashSet<_>>(), owed);
    // A transaction of this cluster that has the id of one of the second's.
    let (open, twin) = open_with(&log.pool, &outbox, wanted).await;
    let prompt = outbox.record_outside_transaction(&event("prompt", 1)).await.expect("record");
    assert_eq!(ids(&drain(&store, "s").await), [prompt]);
    open.commit().await.expect("commit");
    assert_eq!(ids(&drain(&store, "s").await), [twin]);
}

/// A log with gaps in its numbers, something settled, something late and something fresh: what is owed of it.
async fn a_log_with_gaps(cluster: &Cluster) -> (PgLog, Vec<Uuid>) {
    let log = log_on(cluster, "postgres").await;
    subscribe(&log.store, "s").await;
    for n in 0..30 {
        let mut writer = log.begin().await;
        writer.record(&event("gone", n)).await.expect("record");
        writer.rollback().await;
        commit_one(&log, &format!("a{n}")).await;
    }
    let mut late = log.begin().await;
    let mut owed = vec![late.record(&event("late", 1)).await.expect("record")];
    commit_one(&log, "prompt").await;
    assert_eq!(drain(&log.store, "s").await.len(), 31);
    late.commit().await.expect("commit");
    for n in 0..5 {
        owed.push(commit_one(&log, &format!("fresh{n}")).await);
    }
    (log, owed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_restored_without_triggers_into_a_migrated_schema_loses_and_repeats_nothing() {
    let (first, second) = (cluster(), cluster());
    let (log, mut owed) = a_log_with_gaps(&first).await;
    let row = sqlx::query("select pg_current_xact_id()::text").fetch_one(&log.pool).await.expect("an xid");
    let ahead = row.get::<String, _>(0).parse::<u64>().expect("a number") + 1000;
    burn(&log.pool, ahead).await;
    let settled = commit_one(&log, "later").await;
    let first_ones = drain(&log.store, "s").await;
    assert_eq!(ids(&first_ones), owed.iter().copied().chain([settled]).collect::<Vec<_>>());
    owed = vec![commit_one(&log, "owed").await];
    let pool = connect(&second, "postgres").await;
    Outbox::builder().schema(&log.schema).migrated(&pool).await.expect("migrate");
    // Without the tables that only these tests have.
    let own = ["app", "touched"].map(|table| format!("--exclude-table={}.{table}", log.schema));
    let file = dump(&first, "postgres", &log.schema, &["-Fc", &own[0], &own[1]]);
    let mut pg_restore = second.bin("pg_restore");
    pg_restore.args(["--data-only", "--disable-triggers", "-d", "postgres"]).arg(&file);
    // The versions of the schema are there already: that one table is refused, and the others are filled.
    let said = String::from_utf8_lossy(&pg_restore.output().expect("pg_restore").stderr).into_owned();
    std::fs::remove_file(&file).expect("remove the dump");
    assert!(said.contains("migration_pkey") && said.matches("error:").count() <= 2, "{said}");

    let (outbox, store) = store_on(&pool, &log.schema).await;
    owed.push(outbox.record_outside_transaction(&event("new", 1)).await.expect("record"));
    assert_eq!(ids(&drain(&store, "s").await), owed);
    // A transaction of this cluster that has the id of an old row.
    let xids = xids(&pool, &log.schema).await;
    let (open, twin) = open_with(&pool, &outbox, xids[xids.len() - 3]).await;
    let prompt = outbox.record_outside_transaction(&event("prompt", 1)).await.expect("record");
    assert_eq!(ids(&drain(&store, "s").await), [prompt]);
    open.commit().await.expect("commit");
    assert_eq!(ids(&drain(&store, "s").await), [twin]);
    outbox.store().await.expect("and it is at home from now on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_that_was_numbered_anew_is_refused_at_start() {
    let (first, second) = (cluster(), cluster());
    let (log, _) = a_log_with_gaps(&first).await;
    let pool = connect(&second, "postgres").await;
    Outbox::builder().schema(&log.schema).migrated(&pool).await.expect("migrate");
    restore(&second, "postgres", &dump(&first, "postgres", &log.schema, &["--data-only"]));
    let outbox = Outbox::builder().schema(&log.schema).connect(&pool).await.expect("outbox");
    let message = outbox.store().await.err().expect("refused").to_string();
    assert!(
        message.contains("its events were numbered anew") && message.contains("--disable-triggers"),
        "{message}"
    );
}

/// Keys that are not ASCII have other bytes in another encoding: they stay in their lanes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_keep_their_lanes_when_the_encoding_changes() {
    let (first, second) = (cluster(), cluster());
    for (pool, name, encoding) in [
        (connect(&first, "postgres").await, "old", "LATIN1"),
        (connect(&first, "postgres").await, "beside", "UTF8"),
        (connect(&second, "postgres").await, "new", "UTF8"),
    ] {
        let options = format!("encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'");
        run(&pool, format!("create database {name} {options}")).await;
    }
    let log = log_on(&first, "old").await;
    log.store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut all = Vec::new();
    for n in 0..40 {
        all.push(commit_one(&log, &format!("größe {n}")).await);
    }
    let drain_one = async |store: &PgStore| {
        let lease = store.claim("s", "relay", postrider_conformance::relay::LONG).await.expect("claim");
        let mut lease = lease.expect("a lane");
        let events = ids(&drain_lane(store, &mut lease, 100).await);
        store.release(lease).await.expect("release");
        events
    };
    let done = drain_one(&log.store).await;
    assert!(!done.is_empty() && done.len() < 40);
    for (cluster, database) in [(&first, "beside"), (&second, "new")] {
        assert_eq!(restore(cluster, database, &dump(&first, "old", &log.schema, &[])), "");
        let pool = connect(cluster, database).await;
        let (outbox, store) = store_on(&pool, &log.schema).await;
        let new = outbox.record_outside_transaction(&event("日本", 1)).await.expect("record");
        let mut got = done.clone();
        got.extend(ids(&drain(&store, "s").await));
        assert_eq!(got.len(), 41, "in {database}: none is lost, none comes again");
        assert_eq!(got.into_iter().collect::<HashSet<_>>(), all.iter().copied().chain([new]).collect());
        outbox.store().await.expect("and it is at home from now on");
    }
}

/// A dump of an earlier version does not say which encoding its keys were hashed in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_unknown_encoding_with_several_lanes_asks_for_it() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let id = commit_one(&log, "größe").await;
    log.run("update {schema}.cluster set system = 1, identifier = 1, encoding = null, hashed_in = null")
        .await;
    log.run("update {schema}.lane set system = 1, position = regexp_replace(position, '^[0-9]+', '1')").await;
    let message = log.outbox.store().await.err().expect("refused").to_string();
    assert!(message.contains("several lanes") && message.contains("hashed_in = 'UTF8'"), "{message}");
    log.run("update {schema}.cluster set encoding = 'UTF8', hashed_in = 'UTF8' where hashed_in is null")
        .await;
    let store = log.outbox.store().await.expect("now it is known");
    assert_eq!(ids(&drain(&store, "s").await), [id]);
}
