//! What a handler's transaction comes to when the server, or its handler, has ended it on the way.

mod support;

use std::time::Duration;

use postrider_core::{Clock, Effect, ErrorKind, OutboxSource, Uuid};
use postrider_postgres::Outbox;
use support::Pg;

fn effect(events: &[Uuid]) -> Effect<'_> {
    Effect { lease: None, consumer: "licences", events, timeout: Duration::from_secs(20) }
}

/// Whatever ended it: nothing is marked, and the event can be handled again.
#[tokio::test]
async fn what_is_no_longer_the_transaction_that_began_is_not_committed() {
    let log = Pg::default().pg_log(Clock::Database).await;
    for steps in [
        &["select 1 / 0"][..],
        &["rollback"],
        &["commit"],
        &["commit and chain"],
        &["rollback and chain"],
        &["commit", "begin", "select 1 / 0"],
        &["commit", "begin isolation level serializable"],
    ] {
        let events = [Uuid::now_v7()];
        let (mut tx, _) = log.outbox.begin(effect(&events)).await.expect("begin");
        for step in steps {
            let _ = sqlx::raw_sql(*step).execute(&mut *tx).await;
        }
        let error = Outbox::commit(tx).await.expect_err("it is not whole");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, "commit"), "{steps:?}: {error}");
        let handled = log.outbox.handled("licences", &events).await.expect("handled");
        assert_eq!(handled, [false], "nothing is marked after {steps:?}");
        let (tx, first) = log.outbox.begin(effect(&events)).await.expect("begin");
        assert_eq!(first, [true], "after {steps:?}");
        Outbox::commit(tx).await.expect("commit");
    }
}

/// After a rollback somebody else may have handled the event.
#[tokio::test]
async fn a_mark_of_somebody_else_is_left_alone() {
    let log = Pg::default().pg_log(Clock::Database).await;
    let events = [Uuid::now_v7()];
    let (mut tx, _) = log.outbox.begin(effect(&events)).await.expect("begin");
    sqlx::raw_sql("rollback").execute(&mut *tx).await.expect("rollback");
    let (other, first) = log.outbox.begin(effect(&events)).await.expect("begin");
    assert_eq!(first, [true]);
    Outbox::commit(other).await.expect("commit");
    Outbox::commit(tx).await.expect_err("it is not whole");
    assert_eq!(log.outbox.handled("licences", &events).await.expect("handled"), [true]);
}

/// A transaction within it that was left open is not committed in its place.
#[tokio::test]
async fn a_nested_transaction_that_was_left_open_is_a_failure() {
    use sqlx::Connection;
    let log = Pg::default().pg_log(Clock::Database).await;
    let events = [Uuid::now_v7()];
    let (mut tx, _) = log.outbox.begin(effect(&events)).await.expect("begin");
    std::mem::forget(tx.begin().await.expect("a savepoint"));
    Outbox::commit(tx).await.expect_err("it is not whole");
    assert_eq!(log.outbox.handled("licences", &events).await.expect("handled"), [false]);
}
