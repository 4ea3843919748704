//! The largest payload: one setting of the log, which every publisher meets, whatever it records with.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use postrider_core::{Clock, ErrorKind, Inspect, Limits, NewEvent, OffsetDateTime, Severity};
use postrider_mysql::{Outbox, migrate_to, migration_sql};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, MySqlPool};
use support::{My, MyLog, until_within};
use tokio::task::JoinHandle;

const MIB: usize = 1 << 20;
const GIB: i64 = 1 << 30;

fn limits(payload: usize) -> Limits {
    Limits { payload, ..Limits::default() }
}

async fn limit_of(pool: &MySqlPool) -> i64 {
    sqlx::query_scalar("select postrider_max_payload()").fetch_one(pool).await.expect("a number")
}

/// What is said of a payload that is too large.
fn refusal(size: usize, limit: usize) -> String {
    format!(
        "the payload has {size} bytes, more than the limit of {limit}; raise the limit or store it elsewhere and record a reference"
    )
}

/// Each way to record, with a payload of so many bytes, and whether it did.
async fn tried(log: &MyLog, outbox: &Outbox, bytes: usize) -> [Result<(), String>; 5] {
    let event = NewEvent::of("s", "T", "A", "1", &"x".repeat(bytes - 2)).expect("JSON");
    let by_library = outbox.record_outside_transaction(&event).await;
    if let Err(error) = &by_library {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let sql = async |text: &'static str| {
        let query = sqlx::query(text).bind(format!("\"{}\"", "x".repeat(bytes - 2)));
        query.execute(&log.pool).await.map(|_| ()).map_err(|error| error.to_string())
    };
    [
        by_library.map(|_| ()).map_err(|error| error.to_string()),
        sql("call postrider_record('s', 'T', 'A', '1', ?)").await,
        sql("call postrider_record_with('s', 'T', 'A', '1', ?, null, null, null, null, true)").await,
        sql("insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', '1', ?)").await,
        sql("insert ignore into postrider_event (event_type, aggregate_type, aggregate_id, content_type, content) \
             values ('T', 'A', '1', 'text/plain', ?)")
        .await,
    ]
}

/// Everybody may record a payload of the limit, and nobody a larger one.
async fn all_meet(log: &MyLog, outbox: &Outbox, limit: usize) {
    for outcome in tried(log, outbox, limit).await {
        outcome.expect("within the limit");
    }
    for outcome in tried(log, outbox, limit + 1).await {
        let said = outcome.expect_err("above the limit");
        assert!(said.contains(&refusal(limit + 1, limit)), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_a_payload_is_one_setting_for_all_publishers() {
    let log = My::default().my_log(Clock::Database).await;
    all_meet(&log, &log.outbox, MIB).await;
    let raised = Outbox::builder().limits(limits(3_000_000)).migrated(&log.pool).await.expect("migrated");
    all_meet(&log, &raised, 3_000_000).await;
    // Everybody else meets it, also those who ask for more; migrating again without a word of it leaves it.
    let other = Outbox::builder().limits(limits(9_000_000)).connect(&log.pool).await.expect("connect");
    all_meet(&log, &other, 3_000_000).await;
    all_meet(&log, &Outbox::migrated(&log.pool).await.expect("migrated"), 3_000_000).await;
    // Who wants less for itself has less.
    let own = Outbox::builder().limits(limits(10)).connect(&log.pool).await.expect("connect");
    let said = tried(&log, &own, 11).await[0].clone().expect_err("above its own");
    assert!(said.contains(&refusal(11, 10)), "{said}");
    let lowered = Outbox::builder().limits(limits(3)).migrated(&log.pool).await.expect("migrated");
    all_meet(&log, &lowered, 3).await;
    for bytes in [0, usize::MAX] {
        let refused =
            Outbox::builder().limits(limits(bytes)).migrated(&log.pool).await.expect_err("no limit");
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    // Nothing of it is taken for a routine of another version.
    Outbox::connect(&log.pool).await.expect("all is there");
    assert_eq!(migration_sql(&log.pool).await.expect("the SQL"), "");
}

/// A migration refuses nothing of what publishers record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_has_events_takes_what_it_took_until_a_limit_is_set() {
    let log = My::default().my_log(Clock::Database).await;
    assert_eq!(limit_of(&log.pool).await, 1 << 20, "a new one");
    let event = NewEvent::of("s", "T", "A", "1", &1).expect("JSON");
    log.outbox.record_outside_transaction(&event).await.expect("record");
    log.run("drop function postrider_max_payload").await;
    log.run("delete from postrider_migration where version > 9").await;
    migrate_to(&log.pool, 9).await.expect("the version before");
    log.outbox.record_outside_transaction(&event_of(2)).await.expect("record");
    let pending = migration_sql(&log.pool).await.expect("the SQL");
    assert!(pending.contains("return 1073741824"), "{pending}");
    Outbox::migrated(&log.pool).await.expect("migrated");
    assert_eq!(limit_of(&log.pool).await, GIB);
    Outbox::builder().limits(limits(77)).migrated(&log.pool).await.expect("migrated");
    log.run("delete from postrider_migration where version > 9").await;
    Outbox::migrated(&log.pool).await.expect("migrated again");
    assert_eq!(limit_of(&log.pool).await, 77, "what was set stays");
}

fn event_of(number: u32) -> NewEvent {
    NewEvent::of("s", "T", "A", "1", &number).expect("JSON")
}

/// Publishers have the old limit or the new one: none is refused for want of a limit, and none writes what both refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_go_on_while_the_limit_is_set_and_always_meet_one() {
    let log = My::default().my_log(Clock::Database).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let publisher = |payload: usize| {
        let (pool, stop, written) = (log.pool.clone(), Arc::clone(&stop), Arc::clone(&written));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let insert = sqlx::query(
                    "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', '1', ?)",
                );
                let outcome = insert.bind("1".repeat(payload)).execute(&pool).await;
                match outcome {
                    Ok(_) => assert!(payload < 1_000, "both limits refuse it"),
                    Err(error) => {
                        let said = error.to_string();
                        assert!(payload > 2_000 && said.contains("the payload has 3000 bytes"), "{said}");
                    }
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    Outbox::builder().limits(limits(2_000)).migrated(&log.pool).await.expect("set");
    let publishers = [1, 500, 3_000, 3_000].map(publisher);
    for round in 0..30 {
        let before = written.load(Ordering::Relaxed);
        until_within("publishers go on", Duration::from_secs(30), async || {
            written.load(Ordering::Relaxed) >= before + 20 || publishers.iter().any(JoinHandle::is_finished)
        })
        .await;
        let set = limits(if round % 2 == 0 { 1_000 } else { 2_000 });
        Outbox::builder().limits(set).migrated(&log.pool).await.expect("set");
    }
    stop.store(true, Ordering::Relaxed);
    for publisher in publishers {
        publisher.await.expect("a publisher");
    }
    Outbox::connect(&log.pool).await.expect("all is as it should be");
}

/// A dump leaves functions out, unless it is asked for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_its_limit_is_named_and_a_migration_repairs_it() {
    let log = My::default().my_log(Clock::Database).await;
    log.outbox.record_outside_transaction(&event_of(1)).await.expect("record");
    log.run("drop function postrider_max_payload").await;
    // A session of MySQL that knows the function goes on with it.
    let options = log.pool.connect_options();
    let mut fresh = MySqlConnection::connect_with(&options).await.expect("a connection");
    let refused = log.outbox.record(&mut fresh, &event_of(2)).await.expect_err("no limit is known");
    assert_eq!(refused.kind(), ErrorKind::NotMigrated, "{refused}");
    let error = Outbox::connect(&log.pool).await.expect_err("it is missing");
    assert!(error.message().contains("postrider_max_payload"), "{error}");
    let checks = log.patched().checks(OffsetDateTime::now_utc()).await.expect("checks");
    assert!(checks.iter().any(|check| check.name == "routines" && check.severity == Severity::Bad));
    let outbox = Outbox::migrated(&log.pool).await.expect("repaired");
    assert_eq!(limit_of(&log.pool).await, GIB, "nobody knows what it was");
    outbox.record_outside_transaction(&event_of(3)).await.expect("record");
}

/// On a server without `create or replace function` the trigger calls another function meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sets_the_limit_and_is_cut_off_leaves_one_that_a_migration_takes_over() {
    let log = My::default().my_log(Clock::Database).await;
    log.outbox.record_outside_transaction(&event_of(1)).await.expect("record");
    let text = include_str!("../sql/migrations/0010_limits.sql");
    let trigger =
        text.split("create or replace trigger").nth(1).expect("the trigger").trim_end_matches(";\n");
    let trigger = trigger.replace("postrider_max_payload()", "postrider_max_payload_spare()");
    log.run("create function postrider_max_payload_spare() returns bigint deterministic no sql return 99")
        .await;
    log.run("drop trigger postrider_event_record").await;
    log.run(&format!("create trigger{trigger}")).await;
    log.run("drop function postrider_max_payload").await;
    let insert = |size: usize| {
        AssertSqlSafe(format!(
            "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) values ('T', 'A', '1', repeat('1', {size}))"
        ))
    };
    for _ in 0..2 {
        sqlx::query(insert(99)).execute(&log.pool).await.expect("within the limit");
        let said = sqlx::query(insert(100)).execute(&log.pool).await.expect_err("above it").to_string();
        assert!(said.contains(&refusal(100, 99)), "{said}");
        Outbox::migrated(&log.pool).await.expect("repaired");
        assert_eq!(limit_of(&log.pool).await, 99);
    }
    all_meet(&log, &Outbox::builder().limits(limits(50)).migrated(&log.pool).await.expect("set"), 50).await;
}

/// E18: an outbox refuses what its publisher may not record, whichever way it is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_refuses_streams_and_types_that_are_not_allowed() {
    let log = My::default().my_log(Clock::Database).await;
    let builder = Outbox::builder().allowed_streams(["orders"]).allowed_types(["Order*"]);
    let outbox = builder.connect(&log.pool).await.expect("outbox");
    let ticker = NewEvent::of("market", "TickerReceived", "Market", "KRW-BTC", &1).expect("JSON");
    let order = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON");
    let refused = outbox.record_outside_transaction(&ticker).await.expect_err("not its stream");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("the stream \"market\" is not allowed"), "{refused}");
    let other = NewEvent { event_type: "TickerReceived".into(), ..order.clone() };
    let mut tx = log.pool.begin().await.expect("a transaction");
    assert!(outbox.record(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_once(&mut tx, &other).await.is_err(), "not its type");
    assert!(outbox.record_all(&mut tx, &[order.clone(), ticker]).await.is_err(), "one is not its own");
    outbox.record(&mut tx, &order).await.expect("the transaction goes on");
    tx.commit().await.expect("commit");
    let recorded: Vec<String> = sqlx::query_scalar("select event_type from postrider_event")
        .fetch_all(&log.pool)
        .await
        .expect("events");
    assert_eq!(recorded, ["OrderPaid"]);
}
