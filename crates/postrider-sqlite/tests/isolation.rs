//! Nothing of one row stops a lane, and nothing of another time moves one.

mod fixture;

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fixture::{Database, Fixture, event};
use postrider::testing::until_quiet;
use postrider::{Failure, OnDead, Raw, Received, Relay, Retry, Running};
use postrider_core::{
    DeliveryChange, DeliveryFailure, ErrorKind, EventLog, EventState, LeaseStatus, ResolveDead, Settlement,
    State, StateQuery, Store, Subscription, UNWRITABLE,
};
use postrider_sqlite::Outbox;
use sqlx::SqlitePool;
use uuid::Uuid;

/// A row that a publisher in another language has written, with a payload that is not UTF-8.
const UNREADABLE: &str = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload)
    values ('OrderPaid', 'Order', 'a', cast(x'22ff22' as text))";

async fn outbox() -> (Database, Outbox, SqlitePool) {
    let database = Database::new();
    let pool = database.pool().await;
    let outbox = Outbox::migrated(&pool).await.expect("migrated");
    (database, outbox, pool)
}

async fn run(pool: &SqlitePool, sql: &'static str) {
    sqlx::raw_sql(sql).execute(pool).await.expect(sql);
}

async fn ids(pool: &SqlitePool) -> Vec<Uuid> {
    sqlx::query_scalar("select event_id from postrider_event order by id").fetch_all(pool).await.expect("ids")
}

async fn state(store: &dyn Store, event_id: Uuid) -> EventState {
    let subscription = Some("s".to_owned());
    let query = StateQuery { subscription, event_id: Some(event_id), ..StateQuery::default() };
    store.states(&query).await.expect("states").pop().expect("a state")
}

type Seen = Arc<Mutex<Vec<String>>>;

async fn relay(outbox: &Outbox, on_dead: OnDead, seen: &Seen) -> Running {
    let notes = Arc::clone(seen);
    let handler = move |event: Received<Raw>| {
        notes.lock().expect("notes").push(event.event().aggregate_id.clone());
        async { Ok::<(), Failure>(()) }
    };
    Relay::new(outbox)
        .poll_interval(Duration::from_millis(50))
        .subscribe("s", |s| s.on_type("OrderPaid", handler).on_dead(on_dead))
        .start()
        .await
        .expect("started")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_read_is_dead_with_its_reason_and_the_lane_goes_on() {
    for on_dead in [OnDead::Skip, OnDead::Hold] {
        let (_database, outbox, pool) = outbox().await;
        run(&pool, UNREADABLE).await;
        for aggregate in ["a", "b"] {
            outbox.record_outside_transaction(&event(aggregate)).await.expect("recorded");
        }
        let seen = Seen::default();
        let running = relay(&outbox, on_dead, &seen).await;
        let (events, store) = (ids(&pool).await, Arc::clone(running.store()));
        running.delivered("s", events[2], Duration::from_secs(30)).await.expect("the other key goes on");
        let dead = state(&*store, events[0]).await;
        assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("unreadable")));
        let said = dead.error_message.expect("a reason");
        assert!(said.contains("payload must be UTF-8"), "{said}");
        assert_eq!(dead.attempts, 0, "it was never tried");
        let behind = state(&*store, events[1]).await.state;
        match on_dead {
            OnDead::Skip => {
                running.delivered("s", events[1], Duration::from_secs(30)).await.expect("it goes on");
            }
            OnDead::Hold => assert_ne!(behind, State::Done, "it waits behind the dead one"),
        }
        // Requeued it is due, and still can't be read.
        let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![events[0]] };
        assert_eq!(store.resolve_dead(&requeue).await.expect("requeued"), 1);
        let end = tokio::time::Instant::now() + Duration::from_secs(30);
        while state(&*store, events[0]).await.state != State::Dead {
            assert!(tokio::time::Instant::now() < end, "it is not dead again");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![events[0]] };
        assert_eq!(store.resolve_dead(&discard).await.expect("discarded"), 1);
        running.delivered("s", events[1], Duration::from_secs(30)).await.expect("it is free");
        running.stop().await.expect("stopped");
        let mut seen = seen.lock().expect("notes").clone();
        seen.sort();
        assert_eq!(seen, ["a", "b"], "what can't be read is never given to a handler");
    }
}

/// With checks off, a writer can put more into a row than the table allows.
#[tokio::test]
async fn whatever_a_row_holds_it_is_read_with_its_number() {
    let fixture = Fixture::new().await;
    let mut writer = fixture.pool.acquire().await.expect("a connection");
    for sql in [
        "pragma ignore_check_constraints = on",
        "insert into postrider_event (event_id, event_type, aggregate_type, aggregate_id, payload)
         values (x'00', 'OrderPaid', 'Order', 'a', '{}')",
        "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload, occurred_at)
         values ('OrderPaid', 'Order', 'b', '{}', 9223372036854775807)",
        "insert into postrider_event (event_type, aggregate_type, aggregate_id, max_attempts, recorded_at)
         values ('OrderPaid', 'Order', 'c', -1, -9223372036854775807)",
    ] {
        sqlx::raw_sql(sql).execute(&mut *writer).await.expect(sql);
    }
    drop(writer);
    fixture.subscribe(Subscription::new("s")).await;
    let mut lease = fixture.hold().await;
    let batch = fixture.store.read(&lease, &lease.position, 10).await.expect("read");
    let read: Vec<(i64, bool)> =
        batch.events.iter().map(|read| (read.event.id, read.unreadable.is_some())).collect();
    assert_eq!(read, [(1, true), (2, false), (3, false)]);
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("unreadable", "no");
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 0, failure));
    assert_eq!(fixture.store.settle(&mut lease, &settlement).await.expect("settled"), LeaseStatus::Held);
    let dead = "select count(*) from postrider_delivery where state = 'dead' and id = 1";
    assert_eq!(fixture.number(dead).await, 1, "it has its row");
}

/// What a replay left final can't be changed: the event that fails again is dead then, and the lane goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_the_database_refuses_is_dead_and_the_rest_goes_on() {
    let (_database, outbox, pool) = outbox().await;
    for aggregate in ["a", "b", "c"] {
        outbox.record_outside_transaction(&event(aggregate)).await.expect("recorded");
    }
    run(
        &pool,
        "insert into postrider_delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts)
         select 's', id, event_id, 'Order:a', 0, 'delivered', 0, 1 from postrider_event where aggregate_id = 'a'",
    )
    .await;
    let handler = |event: Received<Raw>| async move {
        match event.event().aggregate_id.as_str() {
            "c" => Ok(()),
            _ => Err(Failure::retry("not now")),
        }
    };
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(3);
    let running = Relay::new(&outbox)
        .subscribe("s", |s| s.on_type("OrderPaid", handler).retry(retry))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("the lane goes on");
    let (events, store) = (ids(&pool).await, Arc::clone(running.store()));
    running.stop().await.expect("stopped");
    let refused = state(&*store, events[0]).await;
    assert_eq!((refused.state, refused.error_code.as_deref()), (State::Dead, Some(UNWRITABLE)));
    assert_eq!(refused.error_message, None);
    let (failed, done) = (state(&*store, events[1]).await, state(&*store, events[2]).await);
    assert_eq!((failed.state, failed.attempts, done.state), (State::Dead, 3, State::Done));
}

/// By the backup API, as `.restore` of the sqlite3 shell does it: into the file that everybody has open.
fn restore(from: &std::path::Path, to: &std::path::Path) {
    let program = "import sqlite3, sys\n\
                   source, target = sqlite3.connect(sys.argv[1]), sqlite3.connect(sys.argv[2], timeout=30)\n\
                   source.backup(target)\n\
                   target.close()";
    let done = Command::new("python3").arg("-c").arg(program).arg(from).arg(to).output().expect("python3");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The lane stands where its holder believes it to be, under its epoch; but the numbers of its batch are other events' now.
#[tokio::test]
async fn a_file_that_is_set_back_under_a_running_relay_loses_nothing() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    fixture.record(event("before")).await;
    let mut lease = fixture.hold().await;
    fixture.drain(&mut lease).await;
    let copy = fixture.database.path.with_extension("copy");
    restore(&fixture.database.path, &copy);
    for aggregate in ["gone", "gone", "gone"] {
        fixture.record(event(aggregate)).await;
    }
    let batch = fixture.store.read(&lease, &lease.position, 10).await.expect("read");
    let due = Settlement {
        deliveries: vec![DeliveryChange::dead(&batch.events[0].event, 1, DeliveryFailure::new("x", "y"))],
        ..Settlement::at(lease.position.clone())
    };
    restore(&copy, &fixture.database.path);
    let after = [fixture.record(event("after")).await, fixture.record(event("after")).await];
    // What became of one event is not written to the one that has its number now.
    let mut unmoved = lease.clone();
    assert_eq!(fixture.store.settle(&mut unmoved, &due).await.expect("settle"), LeaseStatus::Held);
    assert_eq!(fixture.number("select count(*) from postrider_delivery").await, 0);
    let status = fixture.store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    assert_eq!(status, LeaseStatus::Lost, "what was read is not what is there");
    let behind = fixture.store.read(&unmoved, &unmoved.position, 10).await.expect("read");
    let read: Vec<Uuid> = behind.events.iter().map(|read| read.event.event_id).collect();
    assert_eq!(read, after, "nothing is passed over");
    // The copy is of a time before this claim: the lane is another's.
    fixture.store.release(unmoved).await.expect("released");
    let later = fixture.hold().await;
    restore(&copy, &fixture.database.path);
    let lost = fixture.store.read(&later, &later.position, 10).await.expect_err("it is of another time");
    assert_eq!(lost.kind(), ErrorKind::LeaseLost, "{lost}");
    let lost = fixture.store.due(&later, 10).await.expect_err("it is of another time");
    assert_eq!(lost.kind(), ErrorKind::LeaseLost, "{lost}");
}

/// A full disk, or a trigger of the application, may roll back what the store is writing.
#[tokio::test]
async fn a_transaction_that_sqlite_ends_by_itself_ends_no_relay() {
    let fixture = Fixture::new().await;
    fixture.subscribe(Subscription::new("s")).await;
    fixture.record(event("a")).await;
    let mut lease = fixture.hold().await;
    let batch = fixture.store.read(&lease, &lease.position, 10).await.expect("read");
    run(
        &fixture.pool,
        "create trigger full before update on postrider_lane begin select raise(rollback, 'full'); end",
    )
    .await;
    fixture.store.settle(&mut lease, &Settlement::of(&batch)).await.expect_err("it is rolled back");
    run(&fixture.pool, "drop trigger full").await;
    let status = fixture.store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settle");
    assert_eq!(status, LeaseStatus::Held, "the next one is written");
}

/// Neither replaced by a random one nor taken as it is.
#[tokio::test]
async fn an_event_id_that_is_none_is_refused() {
    let fixture = Fixture::new().await;
    for id in
        ["'0198f3a0-0000-7000-8000-000000000000'", "'0123456789abcdef'", "x'00'", "x''", "7", "zeroblob(17)"]
    {
        for verb in ["insert", "insert or replace", "insert or fail", "insert or abort"] {
            let sql = format!(
                "{verb} into postrider_event (event_id, event_type, aggregate_type, aggregate_id, payload)
                 values ({id}, 'OrderPaid', 'Order', 'a', '{{}}')"
            );
            let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&fixture.pool).await;
            assert!(refused.is_err(), "{sql}");
        }
    }
    assert_eq!(fixture.number("select count(*) from postrider_event").await, 0);
}
