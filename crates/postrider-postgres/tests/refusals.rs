//! What the database refuses to write stops nobody else.

mod support;

use std::time::Duration;

use postrider_conformance::relay::{claim, commit_one, read, settle, subscribe};
use postrider_core::{
    Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, Inspect, LeaseStatus, Settlement, State,
    StateQuery, UNWRITABLE,
};
use support::Pg;

fn failure(code: &str) -> DeliveryFailure {
    DeliveryFailure::new(code, "not now")
}

/// A plain insert can make a key of 700 characters with four bytes each, more than an index entry has room for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_too_long_for_an_index_holds_its_own_events_and_no_others() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    // Characters that can't be compressed, which an index would do.
    let letters = "select string_agg(chr(65536 + ('x' || substr(md5(n::text), 1, 6))::bit(24)::integer % 1000000), '' order by n) \
                  from generate_series";
    let record = async |last: &str| {
        log.run(&format!(
            "insert into {{schema}}.event (event_type, aggregate_type, aggregate_id, payload) \
             values ('Long', ({letters}(1, 200) as n), ({letters}(201, 699) as n) || '{last}', '1')"
        ))
        .await;
    };
    record("a").await;
    let batch = read(&log.store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let retrying = DeliveryChange::retrying(&batch.events[0].event, 1, Duration::ZERO, failure("refused"));
    settlement.deliveries.push(retrying);
    assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    record("a").await;
    record("b").await;
    let batch = read(&log.store, &lease, 10).await;
    assert_eq!(batch.events.iter().map(|read| read.held).collect::<Vec<_>>(), [true, false]);
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::waiting(&batch.events[0].event));
    assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    let due = log.store.due(&lease, 10).await.expect("due").deliveries;
    assert_eq!(due.len(), 2, "both of the long key, in their order");
}

/// One row that the database does not take becomes a dead delivery that it does take; the others are written as they are, and
/// the position moves with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_the_database_refuses_is_dead_and_the_rest_is_written() {
    let log = Pg::default().pg_log(Clock::Database).await;
    subscribe(&log.store, "s").await;
    let mut lease = claim(&log.store, "s").await;
    for aggregate in ["a", "b", "c"] {
        commit_one(&log, aggregate).await;
    }
    log.run("alter table {schema}.delivery add constraint picky check (error_code <> 'poison')").await;
    let batch = read(&log.store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    for (read, code) in batch.events.iter().zip(["one", "poison", "three"]) {
        settlement.deliveries.push(DeliveryChange::retrying(&read.event, 1, Duration::ZERO, failure(code)));
    }
    let before = lease.position.clone();
    let error = log.store.settle(&mut lease, &settlement).await.expect_err("refused as a whole");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(!error.is_retryable(), "{error}");
    settlement.one_by_one = true;
    let mut stale = lease.clone();
    assert_eq!(log.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    assert_ne!(lease.position, before);
    assert_eq!(log.store.settle(&mut stale, &settlement).await.expect("settle"), LeaseStatus::Lost);
    let states = log.store.states(&StateQuery::default()).await.expect("states");
    let seen: Vec<_> = states.iter().map(|state| (state.state, state.error_code.as_deref())).collect();
    let expected =
        [(State::Retrying, Some("one")), (State::Dead, Some(UNWRITABLE)), (State::Retrying, Some("three"))];
    assert_eq!(seen, expected);
    let next = commit_one(&log, "d").await;
    let batch = read(&log.store, &lease, 10).await;
    assert_eq!(batch.events[0].event.event_id, next);
    settle(&log.store, &mut lease, &batch).await;
}
