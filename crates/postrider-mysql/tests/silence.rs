//! A server that keeps its connections open and answers nothing.

mod support;

use std::time::{Duration, Instant};

use postrider_core::{Clock, Effect, ErrorKind, EventLog, OutboxSource, Subscription, Uuid};
use postrider_mysql::{Outbox, StoreOptions};
use postrider_testkit::until;
use sqlx::mysql::MySqlPoolOptions;
use support::{My, MyLog};
use xtask::line::Line;

/// A log, a line to it, and an outbox with few connections by that line.
async fn fixture() -> (MyLog, Line, Outbox) {
    let log = My::default().my_log(Clock::Database).await;
    let server = (*log.pool.connect_options()).clone();
    let address = format!("{}:{}", server.get_host(), server.get_port()).parse().expect("an address");
    let line = Line::to(address).expect("a line");
    let through = server.host("127.0.0.1").port(line.port());
    let pool = MySqlPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(5));
    let options = StoreOptions { connections: 2, ..StoreOptions::default() };
    let outbox = Outbox::builder().store_options(options);
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
    let store = outbox.store();
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
