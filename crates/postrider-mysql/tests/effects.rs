//! The transactions that handlers are given: their marks, their lane, and the sessions that the application gets back.

mod support;

use std::time::Duration;

use postrider_conformance::relay::{commit_one, drain, event, subscribe, until};
use postrider_core::{
    Clock, Effect, ErrorKind, EventLog, Lease, ManualClock, OffsetDateTime, OutboxSource, Uuid,
};
use postrider_mysql::Outbox;
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{Connection, MySqlPool, Row};
use support::{My, MyLog};

const LEASE: Duration = Duration::from_secs(30);

fn effect<'a>(lease: Option<&'a Lease>, events: &'a [Uuid]) -> Effect<'a> {
    Effect { lease, consumer: "licences", events, timeout: Duration::from_secs(7) }
}

#[tokio::test]
async fn marks_stand_if_and_only_if_their_transaction_commits() {
    let log = My::default().my_log(Clock::Database).await;
    subscribe(&log.patched(), "s").await;
    let events: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let handled = async || log.outbox.handled("licences", &events).await.expect("handled");
    for end in ["rolled back", "dropped", "committed"] {
        let (mut tx, first) = log.outbox.begin(effect(None, &events[..2])).await.expect("begin");
        assert_eq!(first, [true, true], "before it is {end}");
        log.outbox.record_in(&mut tx, &event(end, 1)).await.expect("record");
        match end {
            "rolled back" => Outbox::rollback(tx).await.expect("rollback"),
            "committed" => {
                assert_eq!(handled().await, [false, false, false], "not yet");
                Outbox::commit(tx).await.expect("commit");
            }
            _ => drop(tx),
        }
    }
    assert_eq!(handled().await, [true, true, false]);
    let (tx, first) = log.outbox.begin(effect(None, &events)).await.expect("begin");
    assert_eq!(first, [false, false, true], "each is handled for the first time once");
    Outbox::rollback(tx).await.expect("rollback");
    let got = drain(&log.patched(), "s").await;
    assert_eq!((got[0].aggregate_id.as_str(), got.len()), ("committed", 1), "what it recorded goes with it");
}

/// The connection that the application gets next, and the two settings that handlers have otherwise.
async fn settings(pool: &MySqlPool) -> (i64, i64, i64) {
    let look = "select cast(@@session.wait_timeout as signed), cast(@@session.innodb_lock_wait_timeout as signed), \
                cast(connection_id() as signed)";
    let row = sqlx::query(look).fetch_one(pool).await.expect("settings");
    (row.get(0), row.get(1), row.get(2))
}

/// Whatever became of a handler, the session behind it has the application's own settings, or is no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_goes_back_to_the_application_with_a_handlers_settings() {
    let clock = ManualClock::at(OffsetDateTime::now_utc());
    let log = My::default().my_log(Clock::Manual(clock.clone())).await;
    // One connection, so that the next to ask gets it.
    let pool = MySqlPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(log.pool.connect_options().as_ref().clone());
    let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).connect(&pool).await.expect("connect");
    let store = log.patched();
    subscribe(&store, "s").await;
    let stale = store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane");
    clock.advance(LEASE);
    let lease = store.claim("s", "next", LEASE).await.expect("claim").expect("it has run out");
    let (wait, lock_wait, mut session) = settings(&pool).await;
    assert!(wait != 12 && lock_wait != 7, "the server's own are others");

    for end in
        ["committed", "rolled back", "stale", "dropped", "dropped in mid-statement", "dropped as it begins"]
    {
        let events = [commit_one(&log, "a").await];
        let held = if end == "stale" { &stale } else { &lease };
        let stays = end_handler(&log, &outbox, effect(Some(held), &events), end).await;
        let now = settings(&pool).await;
        assert_eq!((now.0, now.1), (wait, lock_wait), "after it was {end}");
        assert_eq!(
            now.2 == session,
            stays,
            "after it was {end}: only a session that is restored is used again"
        );
        session = now.2;
        let handled = outbox.handled("licences", &events).await.expect("handled");
        assert_eq!(handled, [end == "committed"], "after it was {end}");
    }
    // And no door is left locked.
    clock.advance(LEASE);
    until("the lane is free", async || store.claim("s", "next", LEASE).await.expect("claim").is_some()).await;
}

/// Begins a handler's transaction and ends it in this way. Returns whether its session stays.
async fn end_handler(log: &MyLog, outbox: &Outbox, effect: Effect<'_>, end: &str) -> bool {
    let begun = outbox.begin(effect);
    match end {
        "committed" => {
            let (mut tx, _) = begun.await.expect("begin");
            let own = "select cast(@@session.wait_timeout as signed), cast(@@session.innodb_lock_wait_timeout as signed)";
            let row = sqlx::query(own).fetch_one(&mut *tx).await.expect("settings");
            assert_eq!((row.get::<i64, _>(0), row.get::<i64, _>(1)), (12, 7), "a handler's are short");
            Outbox::commit(tx).await.expect("commit");
            true
        }
        "rolled back" => {
            Outbox::rollback(begun.await.expect("begin").0).await.expect("rollback");
            true
        }
        "stale" => {
            assert_eq!(begun.await.expect_err("it is stale").kind(), ErrorKind::LeaseLost);
            true
        }
        "dropped in mid-statement" => {
            let (mut tx, _) = begun.await.expect("begin");
            let slow = sqlx::query("select sleep(1)").execute(&mut *tx);
            assert!(tokio::time::timeout(Duration::from_millis(100), slow).await.is_err());
            drop(tx);
            false
        }
        "dropped as it begins" => {
            // Somebody has the door, and the handler's time is over while it waits for it.
            let mut held = log.pool.begin().await.expect("begin");
            let lock = "select * from postrider_lane_door for update";
            sqlx::query(lock).fetch_all(&mut *held).await.expect("the door");
            assert!(tokio::time::timeout(Duration::from_millis(300), begun).await.is_err());
            held.rollback().await.expect("rollback");
            false
        }
        _ => {
            drop(begun.await.expect("begin"));
            false
        }
    }
}

/// What a handler begins within its transaction is a savepoint: its end is not the end of the transaction.
#[tokio::test]
async fn what_a_handler_begins_within_its_transaction_ends_within_it() {
    let log = My::default().my_log(Clock::Database).await;
    let events = [Uuid::now_v7()];
    let (mut tx, _) = log.outbox.begin(effect(None, &events)).await.expect("begin");
    for (n, keep) in [(1, true), (2, false)] {
        let mut within = tx.begin().await.expect("a savepoint");
        sqlx::query("insert into touched values (?)").bind(n).execute(&mut *within).await.expect("insert");
        if keep { within.commit().await } else { within.rollback().await }.expect("its end");
    }
    assert_eq!(log.count("touched").await, 0, "nothing is committed yet");
    Outbox::commit(tx).await.expect("commit");
    assert_eq!(log.count("touched").await, 1);
    assert_eq!(log.outbox.handled("licences", &events).await.expect("handled"), [true]);
}
