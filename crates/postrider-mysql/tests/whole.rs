//! What a handler's transaction comes to when the server, or its handler, has ended it on the way.

mod support;

use std::time::Duration;

use postrider_core::{Clock, Effect, ErrorKind, OutboxSource, Uuid};
use postrider_mysql::Outbox;
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{Executor, MySqlPool};
use support::{My, MyLog, run};

const PATIENCE: Duration = Duration::from_secs(30);

fn effect(events: &[Uuid]) -> Effect<'_> {
    Effect { lease: None, consumer: "licences", events, timeout: Duration::from_secs(20) }
}

/// An outbox whose application gets the handler's session next, with this autocommit of its own.
async fn outbox_of_one_session(log: &MyLog, autocommit: &'static str) -> (Outbox, MySqlPool) {
    let pool = MySqlPoolOptions::new()
        .max_connections(1)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute(autocommit).await?;
                Ok(())
            })
        })
        .connect_lazy_with(log.pool.connect_options().as_ref().clone());
    (Outbox::builder().connect(&pool).await.expect("connect"), pool)
}

/// Commits what is not whole: nothing of it stays, and the next one can be handled.
async fn refused(log: &MyLog, tx: <Outbox as OutboxSource>::Transaction, events: &[Uuid]) {
    let error = Outbox::commit(tx).await.expect_err("it is not whole");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, "commit"), "{error}");
    assert!(error.message().contains("ended before the handler did"), "{error}");
    assert_eq!(log.outbox.handled("licences", events).await.expect("handled"), [false], "nothing is marked");
    let (tx, first) = log.outbox.begin(effect(events)).await.expect("begin");
    assert_eq!(first, [true]);
    Outbox::rollback(tx).await.expect("rollback");
}

async fn autocommit(pool: &MySqlPool) -> i64 {
    let look = "select cast(@@session.autocommit as signed)";
    sqlx::query_scalar(look).fetch_one(pool).await.expect("a setting")
}

/// A real one, with a second session: the server rolls the handler's transaction back and would go on in autocommit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_that_a_handler_swallows_leaves_nothing_behind() {
    let log = My::default().my_log(Clock::Database).await;
    let (outbox, pool) = outbox_of_one_session(&log, "set session autocommit = 1").await;
    let mut setup = log.pool.acquire().await.expect("a connection");
    run(&mut setup, "insert into app values ('a', 0), ('b', 0)").await;
    drop(setup);
    let events = [Uuid::now_v7()];
    let (mut tx, _) = outbox.begin(effect(&events)).await.expect("begin");
    let a = "update app set version = version + 1 where id = 'a'";
    let b = "update app set version = version + 1 where id = 'b'";
    sqlx::query(a).execute(&mut *tx).await.expect("the first row");
    let mut other = log.pool.begin().await.expect("begin");
    // Who has written more is not the one that the server gives up.
    for n in 0..200 {
        sqlx::query("insert into touched values (?)").bind(n).execute(&mut *other).await.expect("insert");
    }
    sqlx::query(b).execute(&mut *other).await.expect("the second row");
    let other = tokio::spawn(async move {
        sqlx::query(a).execute(&mut *other).await.expect("it gets the first row in the end");
        other.rollback().await.expect("rollback");
    });
    // What the server says of transactions is not made anew for who asks all the time.
    let waits = "select count(*) from information_schema.processlist \
                 where db = database() and id <> connection_id() and info like 'update app %'";
    support::until_within("the other waits", PATIENCE, async || {
        sqlx::query_scalar::<_, i64>(waits).fetch_one(&log.pool).await.expect("look") > 0
    })
    .await;
    let deadlock = sqlx::query(b).execute(&mut *tx).await.expect_err("a deadlock");
    assert!(deadlock.to_string().contains("1213"), "{deadlock}");
    sqlx::query("insert into touched values (1000)").execute(&mut *tx).await.expect("insert");
    other.await.expect("the other");
    refused(&log, tx, &events).await;
    assert_eq!(log.count("touched").await, 0, "what came after the deadlock went with it");
    assert_eq!(autocommit(&pool).await, 1);
}

/// It commits the marks along: they are taken back, so that what came after it happens.
#[tokio::test]
async fn what_commits_by_itself_within_a_handler_makes_its_event_come_again() {
    let log = My::default().my_log(Clock::Database).await;
    let (outbox, pool) = outbox_of_one_session(&log, "set session autocommit = 1").await;
    let events = [Uuid::now_v7()];
    let (mut tx, _) = outbox.begin(effect(&events)).await.expect("begin");
    run(&mut tx, "create table later (n bigint)").await;
    run(&mut tx, "insert into touched values (1)").await;
    refused(&log, tx, &events).await;
    assert_eq!(log.count("touched").await, 0);
    assert_eq!(autocommit(&pool).await, 1);
}

/// Statement by statement, as without a transaction, they would stay.
#[tokio::test]
async fn what_a_handler_does_after_its_own_rollback_is_not_kept() {
    let log = My::default().my_log(Clock::Database).await;
    // Whatever the application's sessions have: they get it back.
    for (own, set) in [(1, "set session autocommit = 1"), (0, "set session autocommit = 0")] {
        let (outbox, pool) = outbox_of_one_session(&log, set).await;
        for steps in [&["rollback"][..], &["commit"], &["rollback", "start transaction"]] {
            let events = [Uuid::now_v7()];
            let (mut tx, _) = outbox.begin(effect(&events)).await.expect("begin");
            for step in steps {
                run(&mut tx, step).await;
            }
            run(&mut tx, "insert into touched values (1)").await;
            refused(&log, tx, &events).await;
            assert_eq!(log.count("touched").await, 0, "after {steps:?}");
            assert_eq!(autocommit(&pool).await, own, "after {steps:?}");
        }
        let events = [Uuid::now_v7()];
        let (tx, _) = outbox.begin(effect(&events)).await.expect("begin");
        Outbox::commit(tx).await.expect("commit");
        assert_eq!(autocommit(&pool).await, own, "after a commit");
    }
}

/// After a rollback somebody else may have handled the event.
#[tokio::test]
async fn a_mark_of_somebody_else_is_left_alone() {
    let log = My::default().my_log(Clock::Database).await;
    let events = [Uuid::now_v7()];
    let (mut tx, _) = log.outbox.begin(effect(&events)).await.expect("begin");
    run(&mut tx, "rollback").await;
    let (other, first) = log.outbox.begin(effect(&events)).await.expect("begin");
    assert_eq!(first, [true]);
    Outbox::commit(other).await.expect("commit");
    Outbox::commit(tx).await.expect_err("it is not whole");
    assert_eq!(log.outbox.handled("licences", &events).await.expect("handled"), [true]);
}
