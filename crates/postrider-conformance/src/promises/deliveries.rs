//! What holds for events that did not simply succeed.

use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryState, DueBatch, LeaseStatus, OnDead, Order, ResolveDead, Settlement, State,
    Subscription, UNWRITABLE,
};

use super::scene::{MINUTE, Scene, delivered, due_ids, failure};
use crate::harness::Harness;
use crate::relay::{LONG, claim, commit_one, drain_lane, ids, read, settle};

/// U11, E7: a failed event is due when its time has come, not before, and keeps its attempts and error.
pub async fn a_failed_event_is_due_when_its_time_has_come(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "b", "c"], |n, id| (n == 1).then(|| DeliveryChange::retrying(id, 1, MINUTE, failure())))
        .await;
    assert!(scene.due().await.is_empty());
    scene.clock.advance(MINUTE - Duration::from_millis(1));
    assert!(scene.due().await.is_empty());
    scene.clock.advance(Duration::from_millis(1));
    let due = scene.due().await;
    assert_eq!((due_ids(&due), due[0].attempts, due[0].state), (vec![events[1]], 1, DeliveryState::Retrying));
    assert_eq!(due[0].first_failed_at, Some(scene.clock.now() - MINUTE));
    assert_eq!((due[0].now, due[0].error_code.as_deref()), (scene.clock.now(), Some("timeout")));
    scene.settle_due(&due, |due| DeliveryChange::retrying(&due.event, 2, 5 * MINUTE, failure())).await;
    scene.clock.advance(5 * MINUTE);
    let due = scene.due().await;
    assert_eq!((due[0].attempts, due[0].first_failed_at), (2, Some(scene.clock.now() - 6 * MINUTE)));
    scene.settle_due(&due, delivered).await;
    assert!(scene.due().await.is_empty());
    let state = scene.state(events[1]).await;
    assert_eq!((state.state, state.attempts, state.error_code.as_deref()), (State::Done, 3, Some("timeout")));
    assert_eq!(state.delivered_at, Some(scene.clock.now()));
    assert!(!scene.lease.open || scene.due().await.is_empty());
}

/// A look says when the next one's time comes, and whether anything holds; of its own lane only.
pub async fn a_look_says_when_to_look_again(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    assert_eq!(scene.look().await, DueBatch::default(), "nothing is open");
    scene
        .batch(&["a", "b", "b", "c"], |n, id| match n {
            0 => Some(DeliveryChange::retrying(id, 1, 2 * MINUTE, failure())),
            1 => Some(DeliveryChange::dead(id, 1, failure())),
            2 => Some(DeliveryChange::retrying(id, 1, MINUTE, failure())),
            _ => None,
        })
        .await;
    let look = scene.look().await;
    let next = (look.deliveries.len(), look.next_in, look.holds);
    assert_eq!(next, (0, Some(2 * MINUTE), true), "what waits behind a dead one is no next");
    scene.clock.advance(2 * MINUTE - Duration::from_millis(3));
    assert_eq!(scene.look().await.next_in, Some(Duration::from_millis(3)));
    scene.clock.advance(Duration::from_millis(3));
    let look = scene.look().await;
    assert_eq!((look.deliveries.len(), look.next_in, look.holds), (1, None, true));
    scene.settle_due(&look.deliveries, delivered).await;
    assert_eq!(
        scene.resolve_dead(ResolveDead::Discard { subscription: "s".into(), events: vec![] }).await,
        1
    );
    let due = scene.due().await;
    scene.settle_due(&due, delivered).await;
    assert_eq!(scene.look().await, DueBatch::default(), "nothing is open any more");

    let store = &scene.store;
    store.subscribe(&Subscription::new("lanes").lanes(2).order(Order::None)).await.expect("subscribe");
    let mut failed = 0;
    for _ in 0..2 {
        let mut lease = claim(&**store, "lanes").await;
        let batch = read(&**store, &lease, 100).await;
        let mut settlement = Settlement::of(&batch);
        if let Some(first) = batch.events.first().filter(|_| failed == 0) {
            settlement.deliveries.push(DeliveryChange::retrying(&first.event, 1, MINUTE, failure()));
            failed += 1;
        }
        let mine = !settlement.deliveries.is_empty();
        store.settle(&mut lease, &settlement).await.expect("settle");
        assert!(!mine || lease.open, "a retry is open, whatever the order");
        let look = store.due(&lease, 100).await.expect("due");
        assert_eq!((look.next_in, look.holds), (mine.then_some(MINUTE), false), "of its own lane");
    }
    assert_eq!(failed, 1);
}

/// U6: under key order, later events of a failing event's key wait behind it and follow in order.
pub async fn later_events_of_a_key_wait_behind_it(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let first = scene
        .batch(&["a", "b", "a"], |n, id| match n {
            0 => Some(DeliveryChange::retrying(id, 1, MINUTE, failure())),
            2 => Some(DeliveryChange::waiting(id)),
            _ => None,
        })
        .await;
    commit_one(&*scene.log, "a").await;
    commit_one(&*scene.log, "c").await;
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let held: Vec<_> =
        batch.events.iter().map(|read| (read.event.aggregate_id.as_str(), read.held)).collect();
    assert_eq!(held, [("a", true), ("c", false)], "a read says whose key is held");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::waiting(&batch.events[0].event));
    scene.store.settle(&mut scene.lease, &settlement).await.expect("settle");
    assert!(scene.due().await.is_empty());
    scene.clock.advance(MINUTE);
    let due = scene.due().await;
    let third = batch.events[0].event.event_id;
    assert_eq!(due_ids(&due), [first[0], first[2], third], "the head brings those behind it along, in order");
    // The second of them fails: the third goes on waiting.
    scene
        .settle_due(&due, |due| match () {
            () if due.event.event_id == first[0] => delivered(due),
            () if due.event.event_id == first[2] => {
                DeliveryChange::retrying(&due.event, 1, MINUTE, failure())
            }
            () => DeliveryChange::waiting(&due.event),
        })
        .await;
    assert!(scene.due().await.is_empty());
    scene.clock.advance(MINUTE);
    let due = scene.due().await;
    assert_eq!(due_ids(&due), [first[2], third]);
    scene.settle_due(&due, delivered).await;
    commit_one(&*scene.log, "a").await;
    assert!(!read(&*scene.store, &scene.lease, 100).await.events[0].held, "the key is free again");
}

/// Order none: each failed event stands for itself.
pub async fn without_order_nothing_waits(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::None, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "a"], |n, id| {
            Some(DeliveryChange::retrying(id, 1, MINUTE * (2 - u32::try_from(n).unwrap_or(0)), failure()))
        })
        .await;
    commit_one(&*scene.log, "a").await;
    assert!(!read(&*scene.store, &scene.lease, 100).await.events[0].held);
    scene.clock.advance(MINUTE);
    assert_eq!(due_ids(&scene.due().await), [events[1]], "the second does not wait for the first");
    scene.clock.advance(MINUTE);
    assert_eq!(due_ids(&scene.due().await), events);
}

/// C6: under strict order nothing of the lane overtakes the failed event.
pub async fn under_strict_order_the_first_decides_for_all(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Strict, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "b", "c"], |n, id| match n {
            0 => Some(DeliveryChange::retrying(id, 1, MINUTE, failure())),
            _ => Some(DeliveryChange::waiting(id)),
        })
        .await;
    assert!(scene.due().await.is_empty(), "b and c wait although nothing of theirs failed");
    scene.clock.advance(MINUTE);
    let due = scene.due().await;
    assert_eq!(due_ids(&due), events);
    scene.settle_due(&due[..1], |due| DeliveryChange::dead(&due.event, 2, failure())).await;
    assert_eq!(due_ids(&scene.due().await), events[1..], "after its death the rest goes on");
}

/// E8: requeued, a dead event has no attempts and its place before its key's waiting ones.
pub async fn a_requeued_event_keeps_its_place(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = scene
        .batch(&["a", "a", "b", "a"], |n, id| match n {
            0 => Some(DeliveryChange::dead(id, 5, failure())),
            2 => None,
            _ => Some(DeliveryChange::waiting(id)),
        })
        .await;
    assert!(scene.due().await.is_empty());
    let requeue = |events| ResolveDead::Requeue { subscription: "s".into(), events };
    assert_eq!(scene.resolve_dead(requeue(vec![events[1]])).await, 0, "only dead ones");
    assert_eq!(scene.resolve_dead(requeue(vec![events[0]])).await, 1);
    let due = scene.due().await;
    assert_eq!(due_ids(&due), [events[0], events[1], events[3]]);
    assert_eq!((due[0].attempts, due[0].first_failed_at), (0, None), "as if it had never been tried");
    scene.settle_due(&due, delivered).await;
    assert!(scene.due().await.is_empty());
    assert!(
        scene
            .store
            .resolve_dead(&ResolveDead::Requeue { subscription: "nobody".into(), events: vec![] })
            .await
            .is_err()
    );
}

/// `on_dead = hold`: the key waits until an operator acts; discarding lets it go on.
pub async fn a_dead_event_under_hold_holds_its_key_until_discarded(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events =
        scene.batch(&["a", "b"], |n, id| (n == 0).then(|| DeliveryChange::dead(id, 3, failure()))).await;
    commit_one(&*scene.log, "a").await;
    let batch = read(&*scene.store, &scene.lease, 100).await;
    assert!(batch.events[0].held);
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::waiting(&batch.events[0].event));
    scene.store.settle(&mut scene.lease, &settlement).await.expect("settle");
    scene.clock.advance(Duration::from_secs(1_000_000));
    assert!(scene.due().await.is_empty());
    assert_eq!(
        scene.resolve_dead(ResolveDead::Discard { subscription: "s".into(), events: vec![] }).await,
        1
    );
    assert_eq!(scene.state(events[0]).await.state, State::Discarded);
    assert_eq!(due_ids(&scene.due().await), [batch.events[0].event.event_id]);
}

/// E8, `on_dead = skip`: the key goes on, the dead one stays dead until somebody acts.
pub async fn a_dead_event_stays_dead_until_somebody_acts(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene.batch(&["a"], |_, id| Some(DeliveryChange::dead(id, 1, failure()))).await;
    let later = commit_one(&*scene.log, "a").await;
    assert_eq!(ids(&drain_lane(&*scene.store, &mut scene.lease, 10).await), [later], "not held");
    scene.clock.advance(Duration::from_secs(1_000_000));
    assert!(scene.due().await.is_empty());
    assert_eq!(scene.state(events[0]).await.state, State::Dead);
    assert_eq!(
        scene.resolve_dead(ResolveDead::Requeue { subscription: "s".into(), events: vec![] }).await,
        1
    );
    assert_eq!(due_ids(&scene.due().await), events);
}

/// E3: no other step than those of the state machine, whoever takes it.
pub async fn a_final_state_is_final(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "b", "c"], |n, id| match n {
            0 => Some(DeliveryChange::delivered(id, 2)),
            1 => Some(DeliveryChange::dead(id, 2, failure())),
            _ => Some(DeliveryChange::retrying(id, 2, MINUTE, failure())),
        })
        .await;
    for (event, refused, allowed) in [
        (events[0], vec!["waiting", "retrying", "dead", "discarded"], None),
        (events[1], vec!["waiting", "delivered", "nonsense"], Some("discarded")),
        (events[1], vec!["waiting", "retrying", "dead", "delivered"], None),
        (events[2], vec!["waiting", "discarded"], Some("dead")),
    ] {
        for state in refused {
            scene.log.force_delivery(event, state).await.expect_err(state);
        }
        if let Some(state) = allowed {
            scene.log.force_delivery(event, state).await.expect(state);
        }
    }
}

/// A refused settle writes nothing at all.
pub async fn delivery_rows_of_a_refused_settle_are_not_written(harness: &dyn Harness) {
    let scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let event = commit_one(&*scene.log, "a").await;
    let batch = read(&*scene.store, &scene.lease, 10).await;
    scene.clock.advance(LONG);
    let mut next_holder = claim(&*scene.store, "s").await;
    let mut stale = scene.lease.clone();
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 1, failure()));
    assert_eq!(scene.store.settle(&mut stale, &settlement).await.expect("settle"), LeaseStatus::Lost);
    assert_eq!(scene.state(event).await.state, State::Pending);
    let batch = read(&*scene.store, &next_holder, 10).await;
    assert_eq!(settle(&*scene.store, &mut next_holder, &batch).await, LeaseStatus::Held);
    assert_eq!(scene.state(event).await.state, State::Done);
}

/// What became of an event whose row does not take it is written as a dead one, and nothing else is kept up by it.
pub async fn a_delivery_that_the_database_refuses_becomes_a_dead_one(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let refs = std::sync::Mutex::new(Vec::new());
    let dead = |_, event| {
        refs.lock().expect("refs").push(event);
        Some(DeliveryChange::dead(event, 1, failure()))
    };
    let first = scene.batch(&["a", "b"], dead).await;
    // What is discarded is final.
    let discarded = refs.lock().expect("refs")[0];
    let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![first[0]] };
    assert_eq!(scene.store.resolve_dead(&discard).await.expect("discard"), 1);
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![first[1]] };
    assert_eq!(scene.store.resolve_dead(&requeue).await.expect("requeue"), 1);
    for aggregate in ["c", "d"] {
        commit_one(&*scene.log, aggregate).await;
    }
    let due = scene.due().await;
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries = vec![
        DeliveryChange::retrying(discarded, 7, MINUTE, failure()),
        DeliveryChange::dead(&due[0].event, 2, failure()),
        DeliveryChange::retrying(&batch.events[0].event, 1, MINUTE, failure()),
    ];
    let mut lease = scene.lease.clone();
    let refused = scene.store.settle(&mut lease, &settlement).await.expect_err("a final state is final");
    assert!(!refused.is_retryable(), "{refused}");
    assert_eq!(scene.state(first[1]).await.state, State::Retrying, "nothing of it is written");
    settlement.one_by_one = true;
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    let unwritable = scene.state(first[0]).await;
    assert_eq!((unwritable.state, unwritable.error_code.as_deref()), (State::Dead, Some(UNWRITABLE)));
    assert_eq!((unwritable.attempts, unwritable.error_message), (7, None));
    let other = scene.state(first[1]).await;
    assert_eq!((other.state, other.error_code.as_deref()), (State::Dead, Some("timeout")));
    for (read, wanted) in batch.events.iter().zip([State::Retrying, State::Done]) {
        assert_eq!(scene.state(read.event.event_id).await.state, wanted, "the position has moved");
    }
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![first[0]] };
    assert_eq!(scene.store.resolve_dead(&requeue).await.expect("requeue"), 1, "somebody can act");
}
