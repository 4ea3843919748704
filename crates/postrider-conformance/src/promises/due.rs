//! What a look at the open deliveries finds: all that is due, in the order of its key, in bounded portions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postrider_core::{
    DeliveryChange, DeliveryState, Due, Lease, LeaseStatus, NewEvent, OnDead, Order, Replay, ReplayFrom,
    ResolveDead, Settlement, Store, Subscription, Uuid,
};

use super::scene::{MINUTE, Scene, delivered, due_ids, failure};
use crate::harness::Harness;
use crate::relay::{Dice, change_lanes, claim, commit_one, read};

/// Looks and delivers until nothing is due any more. What came, in its order.
async fn deliver_all(scene: &mut Scene, limit: u32) -> Vec<Due> {
    let mut came: Vec<Due> = Vec::new();
    loop {
        let due = scene.store.due(&scene.lease, limit).await.expect("due").deliveries;
        assert!(due.len() <= limit as usize, "{} of at most {limit}", due.len());
        assert!(due.is_sorted_by_key(|due| due.event.id));
        if due.is_empty() {
            return came;
        }
        scene.settle_due(&due, delivered).await;
        came.extend(due);
    }
}

/// Asserts that each of these came once, those of a key in their order.
fn assert_all_in_order(came: &[Due], expected: &[Uuid]) {
    let ids: BTreeSet<Uuid> = came.iter().map(|due| due.event.event_id).collect();
    assert_eq!((ids.len(), came.len()), (expected.len(), expected.len()), "each comes once");
    assert!(expected.iter().all(|id| ids.contains(id)));
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for due in came {
        let before = last.insert(&due.event.aggregate_id, due.event.id).unwrap_or(0);
        assert!(before < due.event.id, "{} came before {before}", due.event.id);
    }
}

/// What is due brings along what waits behind it, up to one whose time has not come or that is dead and holds.
pub async fn a_key_comes_up_to_the_first_one_that_is_not_due(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = scene
        .batch(&["a", "a", "a", "a", "b", "b", "b", "c", "c"], |n, id| {
            Some(match n {
                2 => DeliveryChange::retrying(id, 1, 2 * MINUTE, failure()),
                5 => DeliveryChange::dead(id, 1, failure()),
                7 => DeliveryChange::retrying(id, 1, MINUTE, failure()),
                _ => DeliveryChange::waiting(id),
            })
        })
        .await;
    assert_eq!(due_ids(&scene.due().await), [events[0], events[1], events[4]]);
    assert_eq!(scene.look().await.next_in, Some(MINUTE), "of c");
    scene.clock.advance(MINUTE);
    assert_eq!(due_ids(&scene.due().await), [events[0], events[1], events[4], events[7], events[8]]);
    scene.clock.advance(MINUTE);
    let due = scene.due().await;
    assert_eq!(due_ids(&due), [&events[..5], &events[7..]].concat());
    scene.settle_due(&due, delivered).await;
    assert!(scene.due().await.is_empty(), "the rest of b is behind a dead one");
    assert!(scene.look().await.holds);
}

/// However many wait behind one, a look brings a portion of them, and the next one goes on.
pub async fn a_look_is_bounded_and_the_next_one_goes_on(harness: &dyn Harness) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let mut scene = Scene::new(harness, order, OnDead::Skip).await;
        let events = scene
            .batch(&["a"; 25], |n, id| {
                Some(match n {
                    0 => DeliveryChange::retrying(id, 1, MINUTE, failure()),
                    _ => DeliveryChange::waiting(id),
                })
            })
            .await;
        scene.clock.advance(MINUTE);
        for limit in [1, 10] {
            let due = scene.store.due(&scene.lease, limit).await.expect("due").deliveries;
            assert_eq!(due.len(), limit as usize, "{order:?}");
            if order != Order::None {
                assert_eq!(due_ids(&due), events[..limit as usize], "{order:?}");
            }
        }
        let came = deliver_all(&mut scene, 10).await;
        if order == Order::None {
            assert_eq!(due_ids(&came).into_iter().collect::<BTreeSet<_>>(), events.into_iter().collect());
        } else {
            assert_all_in_order(&came, &events);
        }
        assert!(!scene.look().await.holds, "{order:?}");
    }
}

/// Many keys with many behind each: every look is bounded, and every key goes on in its order.
pub async fn many_keys_share_a_look(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let keys: Vec<String> = (0..70).map(|n| format!("k{}", n % 7)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let events = scene.batch(&keys, |_, id| Some(DeliveryChange::waiting(id))).await;
    let first = scene.store.due(&scene.lease, 10).await.expect("due").deliveries;
    let of: BTreeSet<&str> = first.iter().map(|due| due.event.aggregate_id.as_str()).collect();
    assert!(of.len() > 1, "one key does not keep the others from a look");
    let came = deliver_all(&mut scene, 10).await;
    assert_all_in_order(&came, &events);
}

/// E8: requeued in front of one that was due already, it comes before that one.
pub async fn one_that_is_requeued_in_front_comes_first(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "a", "a"], |n, id| {
            Some(match n {
                0 => DeliveryChange::dead(id, 1, failure()),
                _ => DeliveryChange::waiting(id),
            })
        })
        .await;
    assert_eq!(due_ids(&scene.due().await), events[1..]);
    assert_eq!(
        scene.resolve_dead(ResolveDead::Requeue { subscription: "s".into(), events: vec![] }).await,
        1
    );
    for limit in [1, 2, 100] {
        let due = scene.store.due(&scene.lease, limit).await.expect("due").deliveries;
        assert_eq!(due_ids(&due), events[..3.min(limit as usize)], "at most {limit}");
    }
    let due = scene.due().await;
    scene.settle_due(&due[..1], |due| DeliveryChange::retrying(&due.event, 1, MINUTE, failure())).await;
    assert!(scene.due().await.is_empty(), "the others wait behind it");
    scene.clock.advance(MINUTE);
    let came = deliver_all(&mut scene, 2).await;
    assert_eq!(due_ids(&came), events);
}

/// A subscription that is asked for again with other policies: what is open is due as they say.
pub async fn a_new_policy_places_what_is_open(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = scene
        .batch(&["a", "a", "b", "b", "c"], |n, id| {
            Some(match n {
                0 => DeliveryChange::dead(id, 1, failure()),
                2 => DeliveryChange::retrying(id, 1, MINUTE, failure()),
                _ => DeliveryChange::waiting(id),
            })
        })
        .await;
    let of = |places: &[usize]| places.iter().map(|n| events[*n]).collect::<Vec<_>>();
    for (order, on_dead, due) in [
        (Order::Key, OnDead::Hold, of(&[4])),
        (Order::Key, OnDead::Skip, of(&[1, 4])),
        (Order::None, OnDead::Skip, of(&[1, 3, 4])),
        (Order::Key, OnDead::Hold, of(&[4])),
        (Order::None, OnDead::Hold, of(&[1, 3, 4])),
        (Order::Strict, OnDead::Skip, of(&[1])),
        (Order::Strict, OnDead::Hold, of(&[])),
        (Order::Key, OnDead::Skip, of(&[1, 4])),
    ] {
        let subscription = Subscription::new("s").order(order).on_dead(on_dead);
        scene.store.subscribe(&subscription).await.expect("subscribe");
        let lease = Lease { order, ..scene.lease.clone() };
        let look = scene.store.due(&lease, 100).await.expect("due");
        assert_eq!(due_ids(&look.deliveries), due, "{order:?}, {on_dead:?}");
        assert_eq!(look.holds, order != Order::None, "{order:?}, {on_dead:?}");
    }
    scene.clock.advance(MINUTE);
    let came = deliver_all(&mut scene, 100).await;
    assert_all_in_order(&came, &events[1..]);
}

/// After a change of lanes every open one is found by the holder of its key's lane, and by nobody else.
pub async fn a_change_of_lanes_places_what_is_open(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let keys: Vec<String> = (0..60).map(|n| format!("k{}", n % 20)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let events = scene
        .batch(&keys, |n, id| {
            Some(match n {
                0..10 => DeliveryChange::dead(id, 1, failure()),
                _ => DeliveryChange::waiting(id),
            })
        })
        .await;
    scene.store.release(scene.lease.clone()).await.expect("release");
    for lanes in [3, 5, 1] {
        change_lanes(&*scene.store, "s", lanes).await;
        let mut leases = Vec::new();
        let mut found = Vec::new();
        for _ in 0..lanes {
            let lease = claim(&*scene.store, "s").await;
            found.extend(scene.store.due(&lease, 100).await.expect("due").deliveries);
            leases.push(lease);
        }
        assert_all_in_order(&found, &events[10..]);
        for lease in leases {
            scene.store.release(lease).await.expect("release");
        }
    }
    // What was dead while the lanes changed is found where its key is now.
    change_lanes(&*scene.store, "s", 4).await;
    assert_eq!(
        scene.resolve_dead(ResolveDead::Requeue { subscription: "s".into(), events: vec![] }).await,
        10
    );
    let mut found = Vec::new();
    while let Some(lease) = scene.store.claim("s", "relay", 5 * MINUTE).await.expect("claim") {
        found.extend(scene.store.due(&lease, 100).await.expect("due").deliveries);
    }
    assert_all_in_order(&found, &events);
}

/// A replay forgets what comes again. What the subscription wants no longer does not: it is due when nothing is in front of it.
pub async fn what_a_replay_leaves_is_found(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let mut events = Vec::new();
    for event_type in ["OrderKept", "OrderDropped", "OrderDropped"] {
        let mut writer = scene.log.begin().await;
        let event = NewEvent::of("orders", event_type, "Order", "a", &1).expect("a number is JSON");
        events.push(writer.record(&event).await.expect("record"));
        writer.commit().await.expect("commit");
    }
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    for (n, read) in batch.events.iter().enumerate() {
        settlement.deliveries.push(match n {
            0 => DeliveryChange::retrying(&read.event, 1, 100 * MINUTE, failure()),
            _ => DeliveryChange::waiting(&read.event),
        });
    }
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    assert!(scene.due().await.is_empty());
    scene.store.release(scene.lease.clone()).await.expect("release");
    scene.store.subscribe(&Subscription::new("s").types(["OrderKept"])).await.expect("subscribe");
    let from = ReplayFrom::Event(events[0]);
    let again = Replay { subscription: "s".into(), from, effects_may_repeat: false, dry_run: false };
    scene.log.store().replay(&again).await.expect("replay");
    scene.lease = claim(&*scene.store, "s").await;
    assert_eq!(due_ids(&scene.due().await), events[1..], "nothing is in front of them any more");
    let came = deliver_all(&mut scene, 1).await;
    assert_all_in_order(&came, &events[1..]);
}

/// Operators requeue and discard while a relay settles: whatever the moment, nothing that is open is forgotten, and no key goes out
/// of its order.
pub async fn what_operators_do_beside_settles_leaves_nothing_behind(harness: &dyn Harness) {
    for (on_dead, seed) in [(OnDead::Hold, 1), (OnDead::Skip, 2)] {
        let mut scene = Scene::new(harness, Order::Key, on_dead).await;
        let over = Arc::new(AtomicBool::new(false));
        let operators: Vec<_> = (0..2)
            .map(|n| {
                let (store, over) = (Arc::clone(&scene.store), Arc::clone(&over));
                let dice = Dice::new(seed * 100 + n);
                tokio::spawn(async move { requeue_and_discard(&*store, dice, &over).await })
            })
            .collect();
        let mut dice = Dice::new(seed);
        for _ in 0..60 {
            for _ in 0..3 {
                commit_one(&*scene.log, &format!("k{}", dice.roll(3))).await;
            }
            let_what_comes_die(&mut scene).await;
            settle_some_of_what_is_due(&mut scene, &mut dice).await;
        }
        over.store(true, Ordering::Relaxed);
        for operator in operators {
            operator.await.expect("an operator");
        }
        scene.resolve_dead(ResolveDead::Discard { subscription: "s".into(), events: vec![] }).await;
        scene.clock.advance(MINUTE);
        deliver_all(&mut scene, 7).await;
        let figures = scene.store.figures("s").await.expect("figures");
        let open: u64 = figures.iter().map(|figures| figures.undelivered() + figures.dead).sum();
        assert_eq!(open, 0, "nothing is left, under {on_dead:?}: {figures:?}");
        assert!(!scene.look().await.holds);
    }
}

/// An operator, until it is over.
async fn requeue_and_discard(store: &dyn Store, mut dice: Dice, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let (subscription, events) = ("s".to_owned(), vec![]);
        let action = match dice.roll(2) {
            0 => ResolveDead::Requeue { subscription, events },
            _ => ResolveDead::Discard { subscription, events },
        };
        // Two of them may stand in each other's way.
        let _ = store.resolve_dead(&action).await;
        tokio::task::yield_now().await;
    }
}

/// Reads on. The first event of each key that nothing holds becomes a dead one, and the others wait.
async fn let_what_comes_die(scene: &mut Scene) {
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    let mut stopped = BTreeSet::new();
    for read in &batch.events {
        let key = read.event.aggregate_id.clone();
        settlement.deliveries.push(if read.held || stopped.contains(&key) {
            DeliveryChange::waiting(&read.event)
        } else {
            stopped.insert(key);
            DeliveryChange::dead(&read.event, 1, failure())
        });
    }
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
}

/// Tries some of what is due: each key up to the first one that is not delivered.
async fn settle_some_of_what_is_due(scene: &mut Scene, dice: &mut Dice) {
    let due = scene.store.due(&scene.lease, 5).await.expect("due").deliveries;
    let mut stopped: BTreeSet<String> = BTreeSet::new();
    let mut settlement = Settlement::at(scene.lease.position.clone());
    for due in &due {
        if !stopped.contains(&due.event.aggregate_id) {
            let change = match dice.roll(10) {
                0..3 => DeliveryChange::dead(&due.event, 1, failure()),
                3..5 => DeliveryChange::retrying(&due.event, 1, std::time::Duration::ZERO, failure()),
                _ => DeliveryChange::delivered(&due.event, 2),
            };
            if change.state != DeliveryState::Delivered {
                stopped.insert(due.event.aggregate_id.clone());
            }
            settlement.deliveries.push(change);
        }
    }
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
}
