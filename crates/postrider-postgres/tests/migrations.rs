//! The schema changes under publishers that go on, and no row goes without its number.

mod support;

use std::io::Write;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postrider_conformance::relay::{claim, drain, event, ids, read, subscribe};
use postrider_core::{
    Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, Inspect, LeaseStatus, OffsetDateTime,
    OnDead, Operate, ResolveDead, Settlement, Severity, Subscription, Uuid,
};
use postrider_postgres::{Outbox, migration_sql, migration_sql_since, schema_version};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row};
use support::{Pg, new_schema, server};
use tokio::task::JoinSet;
use xtask::postgres::Cluster;

const SCHEMA: &str = "outbox";

/// The first migrations only, as an older version ran them.
fn up_to(version: i32) -> AssertSqlSafe<String> {
    let all = migration_sql(SCHEMA).expect("a good name");
    let (first, _) = all.split_once(&format!("\n-- migration {}:", version + 1)).expect("a later migration");
    AssertSqlSafe(format!("{first}\ncommit;"))
}

/// Publishers that know nothing but the table, and that stop at the first error.
struct Publishers {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    tasks: JoinSet<Result<Vec<Uuid>, sqlx::Error>>,
}

impl Publishers {
    fn start(pool: &PgPool) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for n in 0..6 {
            let (pool, stop, written) = (pool.clone(), Arc::clone(&stop), Arc::clone(&written));
            tasks.spawn(async move {
                let mut events = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    let sql = format!(
                        "insert into {SCHEMA}.event (event_type, aggregate_type, aggregate_id, payload) \
                         values ('T', 'A', '{n}', '1'), ('T', 'A', '{n}', '2') returning event_id"
                    );
                    // Half of them in transactions that stay open for a while.
                    let mut tx = pool.begin().await?;
                    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *tx).await?;
                    if n % 2 == 0 {
                        sqlx::query("select pg_sleep(0.01)").execute(&mut *tx).await?;
                    }
                    tx.commit().await?;
                    events.extend(rows.iter().map(|row| row.get::<Uuid, _>(0)));
                    written.fetch_add(2, Ordering::AcqRel);
                }
                Ok(events)
            });
        }
        Self { stop, written, tasks }
    }

    /// Waits until this many more were written.
    async fn write(&self, more: u64) {
        let (until, deadline) =
            (self.written.load(Ordering::Acquire) + more, Instant::now() + Duration::from_secs(60));
        while self.written.load(Ordering::Acquire) < until && self.tasks.len() == 6 {
            assert!(Instant::now() < deadline, "publishers stand still");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(mut self) -> Vec<Uuid> {
        self.stop.store(true, Ordering::Release);
        let mut events = Vec::new();
        while let Some(outcome) = self.tasks.join_next().await {
            events.extend(outcome.expect("it runs").expect("no publisher fails"));
        }
        events
    }
}

/// Publishers write before, during and after a migration; everything they committed is delivered.
async fn publishers_go_on_through(migrate: impl AsyncFn(&Cluster, &PgPool)) {
    let cluster = Cluster::create(&[]).expect("PostgreSQL's programs are installed");
    let options = PgConnectOptions::from_str(&cluster.url("postgres")).expect("an address");
    let pool = PgPoolOptions::new().max_connections(10).connect_with(options).await.expect("connect");
    sqlx::raw_sql(up_to(3)).execute(&pool).await.expect("version 3");
    let publishers = Publishers::start(&pool);
    publishers.write(100).await;
    migrate(&cluster, &pool).await;
    publishers.write(100).await;
    let mut written = publishers.stop().await;

    let outbox = Outbox::builder().schema(SCHEMA).connect(&pool).await.expect("it is up to date");
    let store = outbox.store().await.expect("store");
    subscribe(&store, "s").await;
    let mut got = ids(&drain(&store, "s").await);
    let count =
        format!("select count(*) from {SCHEMA}.event where id <= 0 or tx_id is null or recorded_at is null");
    let row = sqlx::query(AssertSqlSafe(count)).fetch_one(&pool).await.expect("count");
    assert_eq!(row.get::<i64, _>(0), 0, "every row has its number");
    got.sort_unstable();
    written.sort_unstable();
    assert_eq!(got, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_go_on_while_the_program_migrates() {
    publishers_go_on_through(async |_, pool| {
        Outbox::builder().schema(SCHEMA).migrated(pool).await.expect("migrate");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_go_on_while_a_dba_runs_the_printed_sql() {
    publishers_go_on_through(async |cluster, _| {
        let sql = migration_sql_since(SCHEMA, 3).expect("SQL");
        let mut psql = cluster.bin("psql");
        let psql = psql.args(["-q", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut psql = psql.spawn().expect("psql");
        psql.stdin.take().expect("its input").write_all(sql.as_bytes()).expect("written");
        assert!(psql.wait().expect("psql ends").success());
    })
    .await;
}

/// What a later version prints for another one changes nothing, whatever is done after an error.
#[tokio::test]
async fn printed_sql_for_another_version_changes_nothing() {
    let cluster = Cluster::create(&[]).expect("PostgreSQL's programs are installed");
    let options = PgConnectOptions::from_str(&cluster.url("postgres")).expect("an address");
    let pool = PgPoolOptions::new().max_connections(2).connect_with(options).await.expect("connect");
    sqlx::raw_sql(up_to(2)).execute(&pool).await.expect("version 2");
    let mut psql = cluster.bin("psql");
    let mut psql = psql.arg("-q").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql");
    let sql = migration_sql_since(SCHEMA, 3).expect("SQL");
    psql.stdin.take().expect("its input").write_all(sql.as_bytes()).expect("written");
    let said = psql.wait_with_output().expect("psql ends").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("is for the schema outbox at version 3, and it is at version 2"), "{said}");
    Outbox::builder().schema(SCHEMA).migrated(&pool).await.expect("the program still can");
    assert_eq!(
        migration_sql_since(SCHEMA, schema_version()).expect("a comment"),
        format!("-- the schema outbox is up to date: version {}\n", schema_version())
    );
    assert_eq!(migration_sql_since(SCHEMA, 999).expect_err("newer").kind(), ErrorKind::SchemaTooNew);
}

/// The schema as it was before there was an index for looks.
const BEFORE_LOOKS: &str = "drop table {schema}.turn; drop function {schema}.max_payload(); drop function {schema}.set_max_payload(integer); \
     drop function {schema}.check_payload(json, bytea); drop function {schema}.delivery_place() cascade; drop function {schema}.delivery_let_go() cascade; \
     drop function {schema}.delivery_step_in() cascade; drop function {schema}.look_at(text, timestamptz); \
     alter table {schema}.delivery drop column lane, drop column look_at; \
     create index delivery_due on {schema}.delivery (subscription, next_at) where state = 'retrying'; \
     alter table {schema}.lane drop column away, drop column away_since; alter table {schema}.delivery drop column past; \
     drop table {schema}.relay; alter table {schema}.subscription drop column paused_at, drop column paused_by, drop column paused_why; delete from {schema}.migration where version > 6";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_were_open_before_the_index_of_looks_are_found_by_it() {
    let log = Pg::default().pg_log(Clock::Database).await;
    log.store.subscribe(&Subscription::new("s").on_dead(OnDead::Hold)).await.expect("subscribe");
    let mut lease = claim(&log.store, "s").await;
    for key in ["now", "later", "never", "now", "later", "never"] {
        log.outbox.record_outside_transaction(&event(key, 1)).await.expect("record");
    }
    let batch = read(&log.store, &lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    let failure = || DeliveryFailure::new("refused", "not now");
    settlement.deliveries = batch
        .events
        .iter()
        .enumerate()
        .map(|(n, read)| match n {
            0 => DeliveryChange::retrying(&read.event, 1, Duration::ZERO, failure()),
            1 => DeliveryChange::retrying(&read.event, 1, Duration::from_secs(3600), failure()),
            2 => DeliveryChange::dead(&read.event, 1, failure()),
            _ => DeliveryChange::waiting(&read.event),
        })
        .collect();
    assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    log.store.release(lease).await.expect("release");
    log.run(BEFORE_LOOKS).await;
    let outbox = Outbox::builder().schema(&log.schema).migrated(&log.pool).await.expect("migrated");

    let store = outbox.store().await.expect("store");
    let lease = claim(&store, "s").await;
    let keys_due = async || -> Vec<String> {
        let due = store.due(&lease, 100).await.expect("due").deliveries;
        due.into_iter().map(|due| due.event.aggregate_id).collect()
    };
    assert_eq!(keys_due().await, ["now", "now"]);
    let next = store.due(&lease, 100).await.expect("due").next_in.expect("one has a time");
    assert!(next > Duration::from_secs(3000), "{next:?}");
    let discard = ResolveDead::Discard { subscription: "s".into(), events: Vec::new() };
    assert_eq!(store.resolve_dead(&discard).await.expect("resolve"), 1);
    assert_eq!(keys_due().await, ["now", "now", "never"]);
}

/// Without its trigger a row has no number, and no default gives it one: it is refused, and so is the start of a relay.
#[tokio::test]
async fn a_row_without_its_number_is_impossible() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let faults = [
        (
            "alter table {schema}.event disable trigger before_record",
            "alter table {schema}.event enable trigger before_record",
        ),
        (
            "alter table {schema}.event alter id set default 0",
            "alter table {schema}.event alter id drop default",
        ),
    ];
    for (fault, mend) in faults {
        log.run(fault).await;
        let error = log.outbox.store().await.err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("before_record"), "{error}");
        let checks = log.store.checks(OffsetDateTime::now_utc()).await.expect("checks");
        let check = checks.iter().find(|check| check.name == "trigger").expect("a check of the trigger");
        assert_eq!(check.severity, Severity::Bad, "{check:?}");
        log.run(mend).await;
        log.outbox.store().await.expect("mended");
    }
    log.run("alter table {schema}.event disable trigger before_record").await;
    let error = log.outbox.record_outside_transaction(&event("a", 1)).await.expect_err("no number");
    assert!(error.to_string().contains("the trigger before_record did not run"), "{error}");
    let mut session = log.pool.begin().await.expect("begin");
    sqlx::query("set local session_replication_role = replica").execute(&mut *session).await.expect("set");
    let error = log.outbox.record(&mut session, &event("a", 1)).await.expect_err("no number");
    assert!(error.to_string().contains("session_replication_role must be origin"), "{error}");
}

/// Ten processes migrate at once; again and again is fine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_migrations_at_once_are_one() {
    let schema = new_schema();
    let pool = PgPoolOptions::new().max_connections(12).connect_with(server()).await.expect("connect");
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let (pool, schema) = (pool.clone(), schema.clone());
        tasks.spawn(async move { Outbox::builder().schema(schema).migrated(&pool).await.map(|_| ()) });
    }
    for outcome in tasks.join_all().await {
        outcome.expect("each of them succeeds");
    }
    let count = format!("select count(*), max(version) from {schema}.migration");
    let row = sqlx::query(AssertSqlSafe(count)).fetch_one(&pool).await.expect("count");
    assert_eq!((row.get::<i64, _>(0), row.get::<i32, _>(1)), (i64::from(schema_version()), schema_version()));
    sqlx::raw_sql(AssertSqlSafe(format!("drop schema {schema} cascade"))).execute(&pool).await.expect("drop");
}

/// What a DBA runs is what the program runs.
#[tokio::test]
async fn the_printed_migration_makes_a_schema_that_is_accepted() {
    let schema = new_schema();
    let pool = PgPoolOptions::new().max_connections(2).connect_with(server()).await.expect("connect");
    let sql = migration_sql(&schema).expect("a good name");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.expect("run");
    let outbox = Outbox::builder().schema(&schema).connect(&pool).await.expect("it is up to date");
    outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    sqlx::raw_sql(AssertSqlSafe(format!("drop schema {schema} cascade"))).execute(&pool).await.expect("drop");
}

#[tokio::test]
async fn a_schema_that_is_missing_old_or_too_new_is_said_so() {
    let schema = new_schema();
    let pool = PgPoolOptions::new().max_connections(2).connect_with(server()).await.expect("connect");
    let builder = || Outbox::builder().schema(&schema);
    let error = builder().connect(&pool).await.expect_err("missing");
    assert_eq!(error.kind(), ErrorKind::NotMigrated);
    assert!(error.to_string().contains("run the migration"), "{error}");
    builder().migrated(&pool).await.expect("migrate");
    let newer = format!("insert into {schema}.migration (version, name) values (999, 'future')");
    sqlx::raw_sql(AssertSqlSafe(newer)).execute(&pool).await.expect("insert");
    for error in [builder().connect(&pool).await, builder().migrated(&pool).await] {
        let error = error.expect_err("too new");
        assert_eq!(error.kind(), ErrorKind::SchemaTooNew);
        assert!(error.to_string().contains("999") && error.to_string().contains("upgrade"), "{error}");
    }
    for name in ["", "Has Space", "a\"b", "1a", &"x".repeat(64)] {
        assert_eq!(
            Outbox::builder().schema(name).connect(&pool).await.expect_err(name).kind(),
            ErrorKind::Invalid
        );
    }
    sqlx::raw_sql(AssertSqlSafe(format!("drop schema {schema} cascade"))).execute(&pool).await.expect("drop");
    let gone = builder().connect(&pool).await.expect_err("gone");
    assert_eq!(gone.kind(), ErrorKind::NotMigrated);
}
