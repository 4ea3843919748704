//! The schema while publishers go on: no event without its place in the log, and nothing missing that a dump left out.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use postrider_core::Uuid;
use postrider_core::{
    Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, Inspect, Lease, LeaseStatus, NewEvent,
    OffsetDateTime, OnDead, Operate, Recorded, ResolveDead, Settlement, Severity, Subscription,
};
use postrider_mysql::{MySqlStore, Outbox, migrate_to, migration_sql};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, MySqlPool, Row};
use support::copied::Copied;
use support::{My, MyLog, run, server, until_within};

const LEASE: Duration = Duration::from_secs(300);

/// How many events come of a subscription.
async fn drained(store: &MySqlStore) -> u64 {
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let mut many = 0;
    loop {
        let batch = store.read(&lease, &lease.position, 500).await.expect("read");
        if batch.is_idle() {
            store.release(lease).await.expect("release");
            return many;
        }
        many += batch.events.len() as u64;
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    }
}

/// Publishers that write as much as they can until they are told to stop.
struct Publishers {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// How an event is recorded by plain SQL, for its aggregate.
const INSERT: &str = "insert into postrider_event (event_id, event_type, aggregate_type, aggregate_id, payload) \
                      values (unhex(replace(uuid(), '-', '')), 'T', 'A', ?, '1')";
const CALL: &str = "call postrider_record('s', 'T', 'A', ?, '1')";

impl Publishers {
    fn start(pool: &MySqlPool, statement: &'static str) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let task = |n: u32| {
            let (pool, stop, written) = (pool.clone(), Arc::clone(&stop), Arc::clone(&written));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let record = sqlx::query(statement).bind(n.to_string());
                    record.execute(&pool).await.expect("publishers are never refused");
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Self { tasks: (0..6).map(task).collect(), stop, written }
    }

    async fn write_more(&self) {
        let before = self.written.load(Ordering::Relaxed);
        until_within("publishers go on", Duration::from_secs(30), async || {
            self.written.load(Ordering::Relaxed) >= before + 50
        })
        .await;
    }

    async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("a publisher");
        }
        self.written.load(Ordering::Relaxed)
    }
}

/// A database of its own, without a schema.
async fn empty() -> (MySqlPool, String) {
    let database = format!("t{}", Uuid::new_v4().simple());
    let pool = MySqlPoolOptions::new().max_connections(20).connect_lazy_with(server());
    run(&mut pool.acquire().await.expect("a connection"), &format!("create database {database}")).await;
    let options: MySqlConnectOptions = server().database(&database);
    (MySqlPoolOptions::new().max_connections(20).connect_lazy_with(options), database)
}

/// Every event that was written comes, and none is without its place.
async fn assert_all_come(pool: &MySqlPool, written: u64) {
    let outbox = Outbox::connect(pool).await.expect("it is up to date");
    let homeless: i64 = sqlx::query_scalar("select count(*) from postrider_event where id <= 0")
        .fetch_one(pool)
        .await
        .expect("a count");
    assert_eq!((homeless, drained(&outbox.store()).await), (0, written));
}

async fn again(pool: &MySqlPool) {
    let forgotten = sqlx::query("delete from postrider_migration where version > 3").execute(pool);
    forgotten.await.expect("forgotten");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_go_on_during_a_migration_and_lose_nothing() {
    let (pool, database) = empty().await;
    migrate_to(&pool, 3).await.expect("the version before");
    let publishers = Publishers::start(&pool, INSERT);
    for _ in 0..5 {
        publishers.write_more().await;
        Outbox::migrated(&pool).await.expect("migrated");
        again(&pool).await;
    }
    Outbox::migrated(&pool).await.expect("migrated");
    publishers.write_more().await;
    let written = publishers.end().await;
    assert_all_come(&pool, written).await;
    let gone = format!("drop database {database}");
    run(&mut pool.acquire().await.expect("a connection"), &gone).await;
}

/// A procedure that does not change is left alone: on MySQL there would be none for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_that_call_the_procedure_go_on_while_a_migration_runs_again() {
    let (pool, database) = empty().await;
    Outbox::migrated(&pool).await.expect("migrated");
    let publishers = Publishers::start(&pool, CALL);
    for _ in 0..5 {
        publishers.write_more().await;
        again(&pool).await;
        Outbox::migrated(&pool).await.expect("migrated");
    }
    publishers.write_more().await;
    let written = publishers.end().await;
    assert_all_come(&pool, written).await;
    let gone = format!("drop database {database}");
    run(&mut pool.acquire().await.expect("a connection"), &gone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sql_that_is_printed_is_what_is_pending_and_leaves_no_gap_for_publishers() {
    let (pool, database) = empty().await;
    let all = migration_sql(&pool).await.expect("the SQL");
    assert!(all.contains("create table if not exists postrider_event ("), "{all}");
    migrate_to(&pool, 3).await.expect("the version before");
    let pending = migration_sql(&pool).await.expect("the SQL");
    assert!(
        !pending.contains("create table if not exists postrider_event (")
            && pending.contains("add column mark")
    );
    let publishers = Publishers::start(&pool, INSERT);
    for _ in 0..5 {
        publishers.write_more().await;
        client(&database, &pending);
        assert_eq!(migration_sql(&pool).await.expect("the SQL"), "", "nothing is left to do");
        again(&pool).await;
    }
    client(&database, &pending);
    publishers.write_more().await;
    let written = publishers.end().await;
    assert_all_come(&pool, written).await;
    let gone = format!("drop database {database}");
    run(&mut pool.acquire().await.expect("a connection"), &gone).await;
}

/// Settles the next events of these keys by what became of each.
async fn settle_as(
    log: &MyLog,
    lease: &mut Lease,
    became: impl Fn(usize, &Recorded) -> Option<DeliveryChange>,
    keys: &[&str],
) {
    for key in keys {
        let event = NewEvent::of("s", "T", "A", *key, &1).expect("JSON");
        log.outbox.record_outside_transaction(&event).await.expect("record");
    }
    let store = log.patched();
    let batch = store.read(lease, &lease.position, 100).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let changes = batch.events.iter().enumerate().filter_map(|(n, read)| became(n, &read.event));
    settlement.deliveries = changes.collect();
    assert_eq!(store.settle(lease, &settlement).await.expect("settle"), LeaseStatus::Held);
}

fn failure() -> DeliveryFailure {
    DeliveryFailure::new("refused", "not now")
}

/// The table of deliveries as it was before there was an index for looks, with the routines of that time.
async fn before_looks(log: &MyLog) {
    log.run("drop trigger postrider_delivery_place").await;
    log.run("drop trigger postrider_delivery_place_again").await;
    log.run(
        "alter table postrider_delivery drop key delivery_look, drop key delivery_lane, drop column lane, drop column look_at",
    )
    .await;
    log.run("delete from postrider_migration where version > 5").await;
    migrate_to(&log.pool, 5).await.expect("the version before");
}

/// The keys of what is due.
async fn keys_due(store: &MySqlStore, lease: &Lease) -> Vec<String> {
    let due = store.due(lease, 100).await.expect("due").deliveries;
    due.into_iter().map(|due| due.event.aggregate_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_were_open_before_the_index_of_looks_are_found_by_it() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s").on_dead(OnDead::Hold)).await.expect("subscribe");
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let became = |n: usize, event: &Recorded| match n {
        0 => Some(DeliveryChange::retrying(event, 1, Duration::ZERO, failure())),
        1 => Some(DeliveryChange::retrying(event, 1, Duration::from_secs(3600), failure())),
        2 => Some(DeliveryChange::dead(event, 1, failure())),
        _ => Some(DeliveryChange::waiting(event)),
    };
    let keys = ["now", "later", "never", "now", "later", "never"];
    settle_as(&log, &mut lease, became, &keys).await;
    store.release(lease).await.expect("release");
    before_looks(&log).await;
    Outbox::migrated(&log.pool).await.expect("migrated");

    let lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    assert_eq!(keys_due(&store, &lease).await, ["now", "now"]);
    let next = store.due(&lease, 100).await.expect("due").next_in.expect("one has a time");
    assert!(next > Duration::from_secs(3000), "{next:?}");
    let discard = ResolveDead::Discard { subscription: "s".into(), events: Vec::new() };
    assert_eq!(store.resolve_dead(&discard).await.expect("resolve"), 1);
    assert_eq!(keys_due(&store, &lease).await, ["now", "now", "never"]);
}

/// A settle that began with the procedure of before does not let the next one be found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_waits_beside_the_migration_leaves_nothing_that_is_never_found() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    let mut lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    let became = |n: usize, event: &Recorded| match n {
        0 => Some(DeliveryChange::retrying(event, 1, Duration::ZERO, failure())),
        _ => Some(DeliveryChange::waiting(event)),
    };
    settle_as(&log, &mut lease, became, &["a", "a"]).await;
    let due = store.due(&lease, 100).await.expect("due").deliveries;
    before_looks(&log).await;

    let mut hand = log.pool.begin().await.expect("begin");
    run(&mut hand, "select lane from postrider_lane for update").await;
    // What a session waits in is what it is said to do.
    let waits = "select count(*) from information_schema.processlist \
                 where db = database() and id <> connection_id() and info like '%postrider_lane%'";
    let waiting = async || -> i64 { sqlx::query_scalar(waits).fetch_one(&log.pool).await.expect("a count") };
    let settling = tokio::spawn({
        let store = store.clone();
        async move {
            let mut settlement = Settlement::at(lease.position.clone());
            settlement.deliveries.push(DeliveryChange::delivered(&due[0].event, 2));
            store.settle(&mut lease, &settlement).await.map(|_| ())
        }
    });
    until_within("the settle waits", LEASE, async || waiting().await == 1).await;
    let migrating = tokio::spawn({
        let pool = log.pool.clone();
        async move { Outbox::migrated(&pool).await.map(drop) }
    });
    until_within("the migration waits, or is done", LEASE, async || {
        migrating.is_finished() || waiting().await == 2
    })
    .await;
    hand.rollback().await.expect("rollback");
    settling.await.expect("the settle").expect("settle");
    migrating.await.expect("the migration").expect("migrated");
    run(&mut log.pool.acquire().await.expect("a connection"), "update postrider_lane set lease_owner = null")
        .await;
    let lease = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    assert_ne!(keys_due(&store, &lease).await, [""; 0]);
}

/// Gives SQL to the server's own client.
fn client(database: &str, sql: &str) {
    let options = server();
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-uroot"]).arg(format!("-h{}", options.get_host()));
    client.arg(format!("-P{}", options.get_port())).arg(database).stdin(Stdio::piped());
    let mut client = client.spawn().expect("a client");
    client.stdin.take().expect("its input").write_all(sql.as_bytes()).expect("written");
    assert!(client.wait().expect("its end").success(), "the client takes all of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_no_trigger_saw_is_refused() {
    let log = My::default().my_log(Clock::Database).await;
    log.run("drop trigger postrider_event_record").await;
    for mode in ["STRICT_TRANS_TABLES", ""] {
        for columns in ["", "id, "] {
            let mut conn = log.pool.acquire().await.expect("a connection");
            run(&mut conn, &format!("set sql_mode = '{mode}'")).await;
            let value = if columns.is_empty() { "" } else { "77, " };
            let insert = format!(
                "insert into postrider_event ({columns}event_type, aggregate_type, aggregate_id, payload) \
                 values ({value}'T', 'A', '1', '1')"
            );
            let refused =
                sqlx::query(AssertSqlSafe(insert)).execute(&mut *conn).await.expect_err("it has no place");
            assert!(refused.to_string().contains("event_max_attempts_positive"), "{refused}");
            conn.close_on_drop();
        }
    }
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    let refused = log.outbox.record_outside_transaction(&event).await.expect_err("it has no place");
    assert!(
        refused.kind() == ErrorKind::Invalid && refused.message().contains("postrider migrate"),
        "{refused}"
    );
    assert_eq!(log.count("postrider_event").await, 0);
    Outbox::migrated(&log.pool).await.expect("repaired");
    log.outbox.record_outside_transaction(&event).await.expect("it has one now");
    assert_eq!(drained(&log.patched()).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_without_its_routines_is_named_and_a_migration_repairs_it() {
    let copied = Copied::start().await;
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    copied.log.outbox.record_outside_transaction(&event).await.expect("record");
    let dump = copied.dump(&[]);
    let options = copied.log.pool.connect_options().as_ref().clone().database("restored");
    copied.log.run("create database restored").await;
    copied.restore("restored", &dump);
    let pool = MySqlPoolOptions::new().max_connections(10).connect_lazy_with(options);

    let error = Outbox::connect(&pool).await.expect_err("nothing would work");
    assert_eq!(error.kind(), ErrorKind::NotMigrated, "{error}");
    let said = error.message();
    assert!(said.contains("--routines") && said.contains("postrider migrate") && said.len() < 500, "{said}");
    let sql = migration_sql(&pool).await.expect("the SQL");
    assert!(
        sql.contains("procedure postrider_number(") && !sql.contains("create table"),
        "what is missing is printed"
    );
    let outbox = Outbox::migrated(&pool).await.expect("repaired");
    assert_eq!(migration_sql(&pool).await.expect("the SQL"), "");
    assert_eq!(drained(&outbox.store()).await, 1);
    let shown =
        sqlx::query("select state from postrider_event_state").fetch_all(&pool).await.expect("the view");
    assert_eq!(shown.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>(), ["done"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_routine_or_trigger_of_another_version_is_found_by_who_connects_and_by_the_checks() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    for change in [
        "drop procedure postrider_clear",
        "drop trigger postrider_event_refuse_delete",
        "drop view postrider_event_state",
        "drop function postrider_run_at; create function postrider_run_at(number bigint) returns bigint deterministic return 1",
    ] {
        Outbox::connect(&log.pool).await.expect("all is there");
        log.run(change).await;
        let error = Outbox::connect(&log.pool).await.expect_err(change);
        assert_eq!(error.kind(), ErrorKind::NotMigrated, "{change}: {error}");
        let checks = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
        let check = checks.iter().find(|check| check.name == "routines").expect("a check of routines");
        assert_eq!(check.severity, Severity::Bad, "{change}");
        Outbox::migrated(&log.pool).await.expect(change);
    }
    Outbox::connect(&log.pool).await.expect("all is there");
}

/// An application that may not make triggers, and so does not see them, is not told that they are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_only_use_the_log_connects_and_migrates_nothing() {
    let copied = Copied::start().await;
    let database = copied.log.database();
    copied.log.run("create user clerk@'%'").await;
    let grant = format!("grant select, insert, update, delete, execute on {database}.* to clerk@'%'");
    copied.log.run(&grant).await;
    copied.log.run("delete from mysql.db where user = ''").await;
    copied.log.run("flush privileges").await;
    let options = copied.log.pool.connect_options().as_ref().clone().username("clerk");
    let pool = MySqlPoolOptions::new().max_connections(10).connect_lazy_with(options);
    Outbox::connect(&pool).await.expect("all is there");
    let outbox = Outbox::migrated(&pool).await.expect("there is nothing to do");
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    outbox.record_outside_transaction(&event).await.expect("record");
    assert_eq!(drained(&outbox.store()).await, 1);
    copied.log.run("drop trigger postrider_event_record").await;
    let error = Outbox::connect(&pool).await.expect_err("a row would have no place");
    assert_eq!(error.kind(), ErrorKind::NotMigrated, "{error}");
}
