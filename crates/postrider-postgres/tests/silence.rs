//! A server that keeps its connections open and answers nothing.

mod support;

use std::time::{Duration, Instant};

use postrider_conformance::relay::{LONG, claim, commit_one, subscribe};
use postrider_core::{Clock, Effect, ErrorKind, EventLog, OutboxSource, Subscription, Uuid};
use postrider_postgres::{Outbox, StoreOptions};
use postrider_testkit::until;
use sqlx::postgres::PgPoolOptions;
use support::{Pg, PgLog, server};
use xtask::line::Line;

/// A log, a line to it, and an outbox with few connections by that line.
async fn fixture() -> (PgLog, Line, Outbox) {
    let log = Pg::default().pg_log(Clock::Database).await;
    let server = server();
    let address = format!("{}:{}", server.get_host(), server.get_port()).parse().expect("an address");
    let line = Line::to(address).expect("a line");
    let through = server.host("127.0.0.1").port(line.port());
    let pool = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(5));
    let options = StoreOptions { connections: 2, ..StoreOptions::default() };
    let outbox = Outbox::builder().schema(&log.schema).store_options(options);
    let outbox = outbox.connect(&pool.connect_lazy_with(through)).await.expect("an outbox");
    (log, line, outbox)
}

/// How soon it works again: what a connection has to say that it is there, and a new one.
const SOON: Duration = Duration::from_secs(9);

fn effect<'a>(events: &'a [Uuid]) -> Effect<'a> {
    Effect { lease: None, consumer: "mailer", events, timeout: Duration::from_secs(1) }
}

/// The driver's pool would wait for each of them until the network gives it up.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fall_silent_keep_no_place_in_the_pool() {
    let (log, line, outbox) = fixture().await;
    let store = outbox.store().await.expect("a store");
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let lease = store.claim("s", "relay", Duration::from_secs(60)).await.expect("claimed").expect("a lane");
    store.read(&lease, &lease.position, 10).await.expect("read");
    line.fall_silent();
    // Several times as many as there are connections.
    for _ in 0..6 {
        let read = store.read(&lease, &lease.position, 10);
        assert!(tokio::time::timeout(Duration::from_millis(300), read).await.is_err(), "it is silent");
    }
    line.let_new_ones_through();
    let began = Instant::now();
    store.read(&lease, &lease.position, 10).await.expect("read on a new connection");
    assert!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    until("no silent connection is kept", async || line.kept() == 0).await;
    drop(log);
}

/// Its handler has a time; what begins and ends its transaction has one, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_handlers_transaction_that_is_not_answered_ends() {
    let (log, line, outbox) = fixture().await;
    let first = [Uuid::now_v7()];
    let (committing, _) = outbox.begin(effect(&first)).await.expect("begun");
    let (leaving, _) = outbox.begin(effect(&[Uuid::now_v7()])).await.expect("begun");
    line.fall_silent();
    let began = Instant::now();
    let (committed, rolled_back) = tokio::join!(Outbox::commit(committing), Outbox::rollback(leaving));
    assert_eq!(committed.expect_err("no answer").kind(), ErrorKind::Unreachable);
    assert_eq!(rolled_back.expect_err("no answer").kind(), ErrorKind::Unreachable);
    let begun = outbox.begin(effect(&[Uuid::now_v7()])).await;
    assert!(begun.expect_err("no answer").is_retryable());
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    line.let_new_ones_through();
    let began = Instant::now();
    let (transaction, _) = outbox.begin(effect(&[Uuid::now_v7()])).await.expect("begun on a new connection");
    Outbox::commit(transaction).await.expect("committed");
    assert!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    drop(log);
}

/// A frozen holder's session is ended by its own timeouts, so that its locks are let go.
#[tokio::test]
async fn a_frozen_session_lets_the_next_holder_in() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let options = StoreOptions { patience: Duration::from_millis(300), ..StoreOptions::default() };
    let frozen = log.outbox.store_with(&options).await.expect("store");
    subscribe(&log.store, "s").await;
    let mut tx = frozen.pool().begin().await.expect("begin");
    sqlx::query(log.sql("select * from {schema}.lane for update")).execute(&mut *tx).await.expect("lock");
    assert!(log.store.claim("s", "next", LONG).await.expect("claim").is_none(), "the row is locked");
    until("the next holder gets in", async || {
        log.store.claim("s", "next", LONG).await.expect("claim").is_some()
    })
    .await;
    assert!(tx.commit().await.is_err(), "the frozen session was ended");
}

/// A lock that somebody else holds is waited for no longer than the relay's patience.
#[tokio::test]
async fn a_relay_waits_for_a_lock_no_longer_than_its_patience() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    commit_one(&log, "a").await;
    let options = StoreOptions { patience: Duration::from_millis(200), ..StoreOptions::default() };
    let store = log.outbox.store_with(&options).await.expect("store");
    let mut lease = claim(&store, "s").await;
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    let mut tx = log.pool.begin().await.expect("begin");
    sqlx::query(log.sql("select * from {schema}.lane for update")).execute(&mut *tx).await.expect("lock");
    let settlement = postrider_core::Settlement::of(&batch);
    let error = store.settle(&mut lease, &settlement).await.expect_err("the row is locked");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true), "{error}");
    tx.rollback().await.expect("rollback");
    assert_eq!(
        store.settle(&mut lease, &settlement).await.expect("settle"),
        postrider_core::LeaseStatus::Held
    );
}
