//! What holds for deliveries that were begun and not finished when their batch was settled.

use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryState, Due, EventRef, Figures, Lease, LeaseStatus, OnDead, OpenDeliveryQuery,
    Order, Replay, ReplayFrom, ResolveDead, Settlement, State, StateQuery, Subscription, Sweep, Uuid,
};

use super::scene::{MINUTE, Scene, delivered, due_ids, failure};
use crate::harness::Harness;
use crate::relay::{LONG, change_lanes, claim, commit_one, read};

/// Settles the events of these aggregates: the first is running, with its first try.
async fn first_runs(scene: &mut Scene, aggregates: &[&str]) -> Vec<Uuid> {
    scene.batch(aggregates, |n, id| (n == 0).then(|| DeliveryChange::running(id, 1))).await
}

/// Settles what simply succeeded under a lease.
async fn succeed(scene: &Scene, lease: &mut Lease, events: Vec<EventRef>) -> LeaseStatus {
    let settlement = Settlement { succeeded: events, ..Settlement::at(lease.position.clone()) };
    scene.store.settle(lease, &settlement).await.expect("settle")
}

/// The lane's next holder, after the present one's lease has run out.
async fn next_holder(scene: &Scene) -> Lease {
    scene.clock.advance(2 * LONG);
    claim(&*scene.store, "s").await
}

async fn due_of(scene: &Scene, lease: &Lease) -> Vec<Due> {
    scene.store.due(lease, 100).await.expect("due").deliveries
}

/// A reference to an event that is in a lane's hand: what a relay keeps in memory.
async fn reference(scene: &Scene, event_id: Uuid) -> EventRef {
    let state = scene.state(event_id).await;
    EventRef { id: state.id, event_id }
}

async fn figures(scene: &Scene) -> Figures {
    let mut figures = scene.store.figures("s").await.expect("figures");
    assert_eq!(figures.len(), 1);
    figures.remove(0)
}

/// Its own holder has it in hand, for however long, under every order.
pub async fn what_is_running_is_never_due_to_its_own_holder(harness: &dyn Harness) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let mut scene = Scene::new(harness, order, OnDead::Skip).await;
        first_runs(&mut scene, &["a"]).await;
        scene.clock.advance(100 * MINUTE);
        let look = scene.look().await;
        assert_eq!((look.deliveries, look.next_in), (vec![], None), "{order:?}");
        assert_eq!(look.holds, order != Order::None, "{order:?}");
        assert!(scene.lease.open, "{order:?}: a running one is open");
        let mut lease = scene.lease.clone();
        scene.store.extend(&mut lease, LONG, None).await.expect("extend");
        assert!(lease.open, "{order:?}: after an extension");
    }
}

/// What follows in its key waits behind it, in what was settled with it and in what is read later; other keys go on.
pub async fn what_is_running_holds_its_key(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "b", "a"], |n, id| match n {
            0 => Some(DeliveryChange::running(id, 1)),
            1 => None,
            _ => Some(DeliveryChange::waiting(id)),
        })
        .await;
    assert!(scene.due().await.is_empty(), "what waits behind it is not due");
    commit_one(&*scene.log, "a").await;
    commit_one(&*scene.log, "c").await;
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let held: Vec<_> =
        batch.events.iter().map(|read| (read.event.aggregate_id.as_str(), read.held)).collect();
    assert_eq!(held, [("a", true), ("c", false)]);
    let running = reference(&scene, events[0]).await;
    let mut lease = scene.lease.clone();
    assert_eq!(succeed(&scene, &mut lease, vec![running]).await, LeaseStatus::Held);
    assert_eq!(due_ids(&due_of(&scene, &lease).await), [events[2]], "its key goes on");

    let mut scene = Scene::new(harness, Order::Strict, OnDead::Skip).await;
    first_runs(&mut scene, &["a"]).await;
    commit_one(&*scene.log, "b").await;
    assert!(read(&*scene.store, &scene.lease, 100).await.events[0].held, "the lane, under strict order");
}

/// Under another epoch nobody has it in hand: it is due at once, with its tries, and those behind it come along.
pub async fn what_a_gone_holder_had_running_is_due_at_once(harness: &dyn Harness) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let mut scene = Scene::new(harness, order, OnDead::Skip).await;
        let events = scene
            .batch(&["a", "a"], |n, id| {
                Some(if n == 0 { DeliveryChange::running(id, 3) } else { DeliveryChange::waiting(id) })
            })
            .await;
        let next_holder = next_holder(&scene).await;
        assert!(next_holder.open, "{order:?}: a claim says that something is open");
        let due = due_of(&scene, &next_holder).await;
        assert_eq!(due_ids(&due), events, "{order:?}");
        assert_eq!((due[0].state, due[0].attempts), (DeliveryState::Running, 3), "{order:?}");
        // The next holder begins it anew: it is the next holder's then.
        let mut next_holder = next_holder;
        let mut settlement = Settlement::at(next_holder.position.clone());
        settlement.deliveries.push(DeliveryChange::running(&due[0].event, 4));
        assert_eq!(
            scene.store.settle(&mut next_holder, &settlement).await.expect("settle"),
            LeaseStatus::Held
        );
        let left = if order == Order::None { vec![events[1]] } else { vec![] };
        assert_eq!(due_ids(&due_of(&scene, &next_holder).await), left, "{order:?}");
        assert_eq!(scene.state(events[0]).await.attempts, 4, "{order:?}");
    }
}

/// A running one that succeeds at its first try is done like any other: nothing is left of it.
pub async fn a_first_try_that_succeeds_leaves_no_row(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a", "b"]).await;
    let running = reference(&scene, events[0]).await;
    let stranger = EventRef { id: running.id, event_id: Uuid::now_v7() };
    let unknown = EventRef { id: running.id + 1, event_id: events[1] };
    let mut lease = scene.lease.clone();
    assert_eq!(succeed(&scene, &mut lease, vec![stranger, unknown]).await, LeaseStatus::Held);
    assert_eq!(scene.state(events[0]).await.state, State::Processing, "by id and event id");
    assert_eq!(succeed(&scene, &mut lease, vec![running]).await, LeaseStatus::Held);
    let done = scene.state(events[0]).await;
    assert_eq!((done.state, done.attempts), (State::Done, 1));
    assert_eq!(scene.state(events[1]).await.state, State::Done);
    scene.store.extend(&mut lease, LONG, None).await.expect("extend");
    assert!(!lease.open, "nothing is open any more");
    commit_one(&*scene.log, "a").await;
    assert!(!read(&*scene.store, &lease, 100).await.events[0].held, "its key is free");
}

/// Who has lost the lane deletes nothing, and a holder deletes only what runs in its own hand.
pub async fn a_stale_holder_forgets_nothing(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a"]).await;
    let running = reference(&scene, events[0]).await;
    let mut stale = scene.lease.clone();
    let mut next_holder = next_holder(&scene).await;
    assert_eq!(succeed(&scene, &mut stale, vec![running]).await, LeaseStatus::Lost);
    assert_eq!(succeed(&scene, &mut next_holder, vec![running]).await, LeaseStatus::Held);
    assert_eq!(due_ids(&due_of(&scene, &next_holder).await), events, "it is nobody's, and still due");
    scene.store.release(next_holder).await.expect("release");
}

/// Cut short, it waits with the tries and the failure that it had.
pub async fn what_is_given_back_keeps_its_attempts_and_failure(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene.batch(&["a"], |_, id| Some(DeliveryChange::retrying(id, 2, MINUTE, failure()))).await;
    let failed_at = scene.clock.now();
    scene.clock.advance(MINUTE);
    let due = scene.due().await;
    scene.settle_due(&due, |due| DeliveryChange::running(&due.event, 3)).await;
    let state = scene.state(events[0]).await;
    assert_eq!(
        (state.attempts, state.next_retry_at, state.error_code.as_deref()),
        (3, None, Some("timeout"))
    );
    scene.settle_due(&due, |due| DeliveryChange::given_back(&due.event, 2)).await;
    let due = scene.due().await;
    assert_eq!((due_ids(&due), due[0].state, due[0].attempts), (events.clone(), DeliveryState::Waiting, 2));
    assert_eq!((due[0].first_failed_at, due[0].error_code.as_deref()), (Some(failed_at), Some("timeout")));
    scene.settle_due(&due, delivered).await;
    let done = scene.state(events[0]).await;
    assert_eq!((done.state, done.attempts, done.error_code.as_deref()), (State::Done, 3, Some("timeout")));
}

/// It may fail, die or be delivered after several tries: the row says so, and is nobody's any more.
pub async fn what_is_running_ends_like_any_other(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = scene.batch(&["a", "b", "c"], |_, id| Some(DeliveryChange::running(id, 1))).await;
    let mut settlement = Settlement::at(scene.lease.position.clone());
    settlement.deliveries = vec![
        DeliveryChange::retrying(reference(&scene, events[0]).await, 1, MINUTE, failure()),
        DeliveryChange::dead(reference(&scene, events[1]).await, 1, failure()),
        DeliveryChange::delivered(reference(&scene, events[2]).await, 2),
    ];
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    let mut states = Vec::new();
    for event in &events {
        states.push(scene.state(*event).await.state);
    }
    assert_eq!(states, [State::Retrying, State::Dead, State::Done]);
    let look = scene.look().await;
    assert_eq!((look.deliveries.len(), look.next_in, look.holds), (0, Some(MINUTE), true));
    scene.clock.advance(MINUTE);
    assert_eq!(due_ids(&scene.due().await), events[..1]);
}

/// To people it is being processed: in states, figures and lists; counted once.
pub async fn what_is_running_shows_as_processing(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "a", "b", "c"], |n, id| match n {
            0 => Some(DeliveryChange::running(id, 2)),
            1 => Some(DeliveryChange::waiting(id)),
            2 => Some(DeliveryChange::retrying(id, 1, MINUTE, failure())),
            _ => None,
        })
        .await;
    let state = scene.state(events[0]).await;
    assert_eq!((state.state, state.attempts, state.next_retry_at), (State::Processing, 2, None));
    assert_eq!((state.delivered_at, state.delivered_by), (None, None));
    let processing = StateQuery { state: Some(State::Processing), ..StateQuery::default() };
    let found = scene.store.states(&processing).await.expect("states");
    assert_eq!(found.iter().map(|state| state.event_id).collect::<Vec<_>>(), events[..1]);
    let retrying = StateQuery { state: Some(State::Retrying), ..StateQuery::default() };
    assert_eq!(scene.store.states(&retrying).await.expect("states").len(), 2);
    let counted = figures(&scene).await;
    assert_eq!((counted.pending, counted.processing, counted.retrying, counted.dead), (0, 1, 2, 0));
    assert_eq!((counted.undelivered(), counted.attempts), (3, 3));
    let open = OpenDeliveryQuery { retrying: true, ..OpenDeliveryQuery::default() };
    let open = scene.log.store().open_deliveries(&open).await.expect("open deliveries");
    let listed: Vec<_> =
        open.iter().map(|each| (each.event.event_id, each.state, each.next_at.is_some())).collect();
    assert_eq!(
        listed,
        [
            (events[0], DeliveryState::Running, false),
            (events[1], DeliveryState::Waiting, false),
            (events[2], DeliveryState::Retrying, true)
        ]
    );
    assert!(
        scene
            .log
            .store()
            .open_deliveries(&OpenDeliveryQuery::default())
            .await
            .expect("open deliveries")
            .is_empty(),
        "none is dead"
    );
}

/// However long it takes, its event and its mark in the inbox stay.
pub async fn retention_leaves_what_is_running_alone(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a", "b"]).await;
    let mut writer = scene.log.begin().await;
    for event in &events {
        assert!(writer.first_time("s", *event).await.expect("mark"));
    }
    writer.commit().await.expect("commit");
    scene.clock.advance(Duration::from_secs(40 * 86_400));
    let older_than = Duration::from_secs(30 * 86_400);
    for sweep in [Sweep::Inbox { older_than, limit: 100 }, Sweep::Prune { older_than, limit: 100 }] {
        assert_eq!(scene.store.sweep(&sweep).await.expect("sweep").taken, 1, "{sweep:?}");
    }
    assert_eq!(scene.log.event_ids().await, events[..1], "what is running stays");
    let mut writer = scene.log.begin().await;
    assert!(!writer.first_time("s", events[0]).await.expect("mark"), "and is still known as handled");
    writer.rollback().await;
}

/// E3: what may follow running, and what it may follow.
pub async fn running_has_its_steps_and_no_others(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = scene
        .batch(&["a", "b", "c", "d"], |n, id| {
            Some(match n {
                0 => DeliveryChange::waiting(id),
                1 => DeliveryChange::retrying(id, 1, MINUTE, failure()),
                2 => DeliveryChange::dead(id, 1, failure()),
                _ => DeliveryChange::delivered(id, 2),
            })
        })
        .await;
    for (event, steps) in [
        (events[0], vec!["running", "running", "waiting", "running", "retrying", "running", "delivered"]),
        (events[1], vec!["running", "dead"]),
        (events[2], vec![]),
        (events[3], vec![]),
    ] {
        for state in steps {
            if state != "running" {
                // Discarded is only what was dead.
                scene.log.force_delivery(event, "discarded").await.expect_err("discarded");
            }
            scene.log.force_delivery(event, state).await.expect(state);
        }
        scene.log.force_delivery(event, "running").await.expect_err("a dead or final one does not run");
    }
}

/// Operators act on the dead, and on nothing that somebody has in hand.
pub async fn operators_do_not_touch_what_is_running(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = first_runs(&mut scene, &["a"]).await;
    for events in [events.clone(), vec![]] {
        let subscription = "s".to_owned();
        let requeue = ResolveDead::Requeue { subscription: subscription.clone(), events: events.clone() };
        assert_eq!(scene.resolve_dead(requeue).await, 0);
        assert_eq!(scene.resolve_dead(ResolveDead::Discard { subscription, events }).await, 0);
    }
    assert_eq!(scene.state(events[0]).await.state, State::Processing);
    assert!(scene.due().await.is_empty());
}

/// Epochs go on through a change of lanes, so that nobody takes an old row for its own.
pub async fn a_change_of_lanes_makes_what_is_running_due(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let aggregates = ["a", "b", "c", "d", "e", "f"];
    let events = scene.batch(&aggregates, |_, id| Some(DeliveryChange::running(id, 1))).await;
    let before = scene.lease.epoch;
    scene.store.release(scene.lease.clone()).await.expect("release");
    let mut epochs = vec![before];
    for lanes in [3, 2, 1] {
        change_lanes(&*scene.store, "s", lanes).await;
        let mut due = Vec::new();
        let mut leases = Vec::new();
        for _ in 0..lanes {
            let mut lease = claim(&*scene.store, "s").await;
            assert!(epochs.iter().all(|epoch| lease.epoch > *epoch), "{} is new", lease.epoch);
            let found = due_of(&scene, &lease).await;
            let mut settlement = Settlement::at(lease.position.clone());
            settlement.deliveries = found.iter().map(|due| DeliveryChange::running(&due.event, 1)).collect();
            assert_eq!(scene.store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
            assert!(due_of(&scene, &lease).await.is_empty(), "in hand");
            due.extend(due_ids(&found));
            leases.push(lease);
        }
        due.sort();
        let mut all = events.clone();
        all.sort();
        assert_eq!(due, all, "with {lanes} lanes each is due, once");
        epochs.extend(leases.iter().map(|lease| lease.epoch));
        for lease in leases {
            scene.store.release(lease).await.expect("release");
        }
    }
}

/// What comes again is not running any more.
pub async fn a_replay_forgets_what_is_running(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a", "b"]).await;
    let running = reference(&scene, events[0]).await;
    let mut stale = scene.lease.clone();
    scene.store.release(scene.lease.clone()).await.expect("release");
    let from = ReplayFrom::Event(events[0]);
    let again = Replay { subscription: "s".into(), from, effects_may_repeat: false, dry_run: false };
    assert_eq!(scene.log.store().replay(&again).await.expect("replay").events, 2);
    assert_eq!(succeed(&scene, &mut stale, vec![running]).await, LeaseStatus::Lost);
    let lease = claim(&*scene.store, "s").await;
    assert!(due_of(&scene, &lease).await.is_empty());
    let batch = read(&*scene.store, &lease, 100).await;
    assert_eq!(
        batch.events.iter().map(|read| (read.event.event_id, read.held)).collect::<Vec<_>>(),
        [(events[0], false), (events[1], false)]
    );
}

/// A subscription that is asked for again with another order keeps what is in hand.
pub async fn a_new_policy_leaves_what_is_running_in_hand(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::None, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a"]).await;
    scene
        .store
        .subscribe(&Subscription::new("s").order(Order::Key).on_dead(OnDead::Skip))
        .await
        .expect("subscribe");
    let lease = Lease { order: Order::Key, ..scene.lease.clone() };
    let look = scene.store.due(&lease, 100).await.expect("due");
    assert_eq!((look.deliveries, look.holds), (vec![], true), "it holds its key from now on");
    commit_one(&*scene.log, "a").await;
    assert!(read(&*scene.store, &lease, 100).await.events[0].held);
    assert_eq!(scene.state(events[0]).await.state, State::Processing);
}

/// A settle that is written one by one writes running ones, and forgets those that succeeded.
pub async fn what_is_running_is_settled_one_by_one(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let events = first_runs(&mut scene, &["a", "b"]).await;
    commit_one(&*scene.log, "c").await;
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    settlement.succeeded = vec![reference(&scene, events[0]).await];
    settlement.deliveries = vec![DeliveryChange::running(&batch.events[0].event, 1)];
    settlement.one_by_one = true;
    assert_eq!(scene.store.settle(&mut scene.lease, &settlement).await.expect("settle"), LeaseStatus::Held);
    assert_eq!(scene.state(events[0]).await.state, State::Done);
    assert_eq!(scene.state(batch.events[0].event.event_id).await.state, State::Processing);
    assert!(scene.lease.open);
    assert!(scene.due().await.is_empty(), "it is in hand");
}
