//! What a relay has in memory counts only if the log agrees: each statement proves it for itself.

use postrider_core::{
    DeliveryChange, DeliveryFailure, ErrorKind, EventRef, LeaseStatus, Settlement, State, StateQuery, Uuid,
};

use crate::harness::Harness;
use crate::relay::{LONG, claim, commit_one, log, log_with_clock, read, settle, subscribe};

/// A holder that lost its lane reads nothing more, and finds nothing due.
pub async fn a_stale_lease_reads_nothing(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, other) = (log.store(), log.second_store().await);
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    commit_one(&*log, "a").await;
    let batch = read(&*store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("refused", "no");
    let retrying = DeliveryChange::retrying(&batch.events[0].event, 1, std::time::Duration::ZERO, failure);
    settlement.deliveries.push(retrying);
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    commit_one(&*log, "b").await;

    clock.advance(LONG * 2);
    let next_holder = other.claim("s", "next", LONG).await.expect("claim").expect("it has run out");
    let error = store.read(&lease, &lease.position, 10).await.expect_err("somebody else holds the lane");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let error = store.due(&lease, 10).await.expect_err("somebody else holds the lane");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    assert_eq!(read(&*other, &next_holder, 10).await.events.len(), 1);
    assert_eq!(other.due(&next_holder, 10).await.expect("due").deliveries.len(), 1);
}

/// A lease whose lane stands elsewhere reads nothing: it was settled by another hand, or the database was set back.
pub async fn a_lane_that_stands_elsewhere_is_not_read(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let before = lease.clone();
    commit_one(&*log, "a").await;
    let batch = read(&*store, &lease, 10).await;
    // What is read ahead begins where the batch in hand will leave the lane.
    assert!(store.read(&lease, &batch.next, 10).await.expect("a read ahead").is_idle());
    settle(&*store, &mut lease, &batch).await;
    assert!(store.read(&before, &batch.next, 10).await.expect("begun before the settle").is_idle());
    let error = store.read(&before, &before.position, 10).await.expect_err("the lane has moved on");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    // A lane that was given back, and that nobody has claimed since, may be looked at.
    store.release(lease.clone()).await.expect("release");
    commit_one(&*log, "a").await;
    assert_eq!(read(&*store, &lease, 10).await.events.len(), 1);
}

/// After a failover a number may belong to another event: what became of the one is not written to the other.
pub async fn what_became_of_an_event_is_not_written_to_a_stranger(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    for aggregate in ["a", "b"] {
        commit_one(&*log, aggregate).await;
    }
    let batch = read(&*store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("refused", "no");
    let stranger = EventRef { id: batch.events[0].event.id, event_id: Uuid::now_v7() };
    settlement.deliveries.push(DeliveryChange::dead(stranger, 1, failure.clone()));
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[1].event, 1, failure));
    // A store whose history is one line knows by the stranger that the batch is of another, and takes none of it.
    let status = store.settle(&mut lease, &settlement).await.expect("settle");
    let states = store.states(&StateQuery::default()).await.expect("states");
    let states: Vec<State> = states.iter().map(|state| state.state).collect();
    let expected = if status == LeaseStatus::Lost {
        [State::Pending, State::Pending]
    } else {
        [State::Done, State::Dead]
    };
    assert_eq!(states, expected);
}

/// After a failover an event may be in the log, and the effect that its handler committed gone: it is not settled.
pub async fn an_effect_without_its_mark_is_not_settled(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let event = commit_one(&*log, "a").await;
    let batch = read(&*store, &lease, 10).await;
    let settlement = Settlement { effects: vec![event], ..Settlement::of(&batch) };
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Lost);
    let mut writer = log.begin().await;
    assert!(writer.first_time("s", event).await.expect("mark"));
    writer.commit().await.expect("commit");
    assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
}
