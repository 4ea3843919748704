//! What is promised of the tries that failed: the last ones are kept with their delivery, and go with it.

use std::time::Duration;

use postrider_core::{
    DeliveryChange, DeliveryFailure, DeliveryState, EventRef, Excerpt, OnDead, Order, PastAttempt, Replay,
    ReplayFrom, ResolveDead, Settlement, State, Sweep,
};

use super::scene::{MINUTE, Scene, delivered, failure};
use crate::harness::Harness;

/// A try that failed, with all that a database could stumble over.
fn attempt(scene: &Scene, number: u32) -> PastAttempt {
    let message = format!("try {number}: \"Größe\" is no \\size\\, it's 主文 😀 {{}} $1 ?1 %s");
    let answer =
        Excerpt::new(format!("{{\"try\": {number}, \"path\": \"C:\\\\tmp\", \"e\": \"ß→😀'\"}}").as_bytes());
    let failure = DeliveryFailure::new("http_500", message).answer(answer);
    PastAttempt::new(
        scene.clock.now(),
        "relay-ü",
        Some(Duration::from_millis(u64::from(number) * 7)),
        &failure,
    )
}

async fn shown(scene: &Scene, event: EventRef) -> Vec<PastAttempt> {
    let mut found = scene.log.store().attempts(event).await.expect("attempts");
    assert!(found.len() <= 1, "of one subscription");
    found.pop().map(|found| (found.subscription, found.attempts)).map_or_else(Vec::new, |(name, attempts)| {
        assert_eq!(name, "s");
        attempts
    })
}

/// The tries come back with what is due, character by character, and only the last ten of them; what does not name any leaves them.
pub async fn the_last_tries_that_failed_come_with_what_is_due(harness: &dyn Harness) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let mut scene = Scene::new(harness, order, OnDead::Skip).await;
        let first = vec![attempt(&scene, 1)];
        let past = first.clone();
        scene
            .batch(&["a"], |_, event| {
                Some(DeliveryChange::retrying(event, 1, Duration::ZERO, failure()).past(past.clone()))
            })
            .await;
        let due = scene.due().await;
        let event = EventRef::from(&due[0].event);
        assert_eq!((&due[0].past, shown(&scene, event).await), (&first, first.clone()));
        let mut past = first;
        for number in 2..=14 {
            past = PastAttempt::with(past, attempt(&scene, number));
            let due = scene.due().await;
            let all = past.clone();
            scene
                .settle_due(&due, |due| {
                    let again =
                        DeliveryChange::retrying(&due.event, due.attempts + 1, Duration::ZERO, failure());
                    again.past(all.clone())
                })
                .await;
        }
        let due = scene.due().await;
        assert_eq!((due[0].past.len(), &due[0].past), (PastAttempt::MOST, &past));
        assert!(due[0].past[0].message.starts_with("try 5: "), "{}", due[0].past[0].message);
        // More than the most, by a program that does not count.
        let many: Vec<_> = (0..30).map(|number| attempt(&scene, number)).collect();
        scene
            .settle_due(&due, |due| {
                DeliveryChange::retrying(&due.event, due.attempts, Duration::ZERO, failure())
                    .past(many.clone())
            })
            .await;
        let due = scene.due().await;
        assert_eq!(due[0].past, many[20..]);
        scene.settle_due(&due, |due| DeliveryChange::running(&due.event, due.attempts + 1)).await;
        assert_eq!(shown(&scene, event).await, many[20..], "they stay while it is tried");
        let mut settlement = Settlement::at(scene.lease.position.clone());
        settlement.deliveries.push(DeliveryChange::given_back(event, 3));
        scene.store.settle(&mut scene.lease, &settlement).await.expect("settle");
        let due = scene.due().await;
        assert_eq!(due[0].past, many[20..], "and when it is given back");
        scene.settle_due(&due, delivered).await;
        assert_eq!(shown(&scene, event).await, many[20..], "and when it is delivered in the end");
    }
}

/// A delivery that never failed has none, and neither has a stranger of the same number.
pub async fn what_never_failed_has_no_tries_on_record(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let refs = std::sync::Mutex::new(Vec::new());
    let past = vec![attempt(&scene, 1)];
    scene
        .batch(&["fine", "waits", "dead"], |place, event: EventRef| {
            refs.lock().expect("refs").push(event);
            match place {
                0 => None,
                1 => Some(DeliveryChange::waiting(event)),
                _ => Some(DeliveryChange::dead(event, 1, failure()).past(past.clone())),
            }
        })
        .await;
    let refs = refs.into_inner().expect("refs");
    assert!(shown(&scene, refs[0]).await.is_empty());
    assert!(shown(&scene, refs[1]).await.is_empty());
    assert_eq!(shown(&scene, refs[2]).await, past);
    let stranger = EventRef { id: refs[2].id, event_id: refs[0].event_id };
    assert!(shown(&scene, stranger).await.is_empty());
    let due = scene.due().await;
    assert_eq!((due.len(), due[0].past.len()), (1, 0));
}

/// Who requeues or discards a dead delivery finds its tries there afterwards.
pub async fn what_is_requeued_or_discarded_keeps_its_tries(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let refs = std::sync::Mutex::new(Vec::new());
    let past = vec![attempt(&scene, 1), attempt(&scene, 2)];
    let events = scene
        .batch(&["a", "b"], |_, event: EventRef| {
            refs.lock().expect("refs").push(event);
            Some(DeliveryChange::dead(event, 2, failure()).past(past.clone()))
        })
        .await;
    let refs = refs.into_inner().expect("refs");
    scene.resolve_dead(ResolveDead::Requeue { subscription: "s".into(), events: vec![events[0]] }).await;
    scene.resolve_dead(ResolveDead::Discard { subscription: "s".into(), events: vec![events[1]] }).await;
    assert_eq!((shown(&scene, refs[0]).await, shown(&scene, refs[1]).await), (past.clone(), past.clone()));
    let due = scene.due().await;
    assert_eq!((due[0].attempts, &due[0].past), (0, &past), "its next try is noted behind them");
}

/// Retention takes them with their delivery, a replay forgets them, and what the database refuses leaves none.
pub async fn tries_go_with_their_delivery(harness: &dyn Harness) {
    const DAY: Duration = Duration::from_secs(86_400);
    let mut scene = Scene::new(harness, Order::Key, OnDead::Skip).await;
    let refs = std::sync::Mutex::new(Vec::new());
    let past = vec![attempt(&scene, 1)];
    let events = scene
        .batch(&["old", "again", "refused"], |_, event: EventRef| {
            refs.lock().expect("refs").push(event);
            Some(DeliveryChange::dead(event, 2, failure()).past(past.clone()))
        })
        .await;
    let refs = refs.into_inner().expect("refs");
    scene
        .resolve_dead(ResolveDead::Discard { subscription: "s".into(), events: vec![events[0], events[2]] })
        .await;
    // What is discarded is final: the change is refused, and a dead row takes its place.
    let mut settlement = Settlement::at(scene.lease.position.clone());
    let change = DeliveryChange::retrying(refs[2], 3, MINUTE, failure()).past(vec![attempt(&scene, 9)]);
    settlement.deliveries.push(change);
    settlement.one_by_one = true;
    scene.store.settle(&mut scene.lease, &settlement).await.expect("settle");
    assert_eq!(scene.state(events[2]).await.state, State::Dead);
    assert!(shown(&scene, refs[2]).await.is_empty(), "what was refused may be what was tried");
    scene.clock.advance(2 * DAY);
    assert_eq!(shown(&scene, refs[0]).await, past);
    let swept = scene.store.sweep(&Sweep::Prune { older_than: DAY, limit: 100 }).await.expect("sweep");
    assert_eq!(swept.taken, 1, "the dead stay");
    assert!(shown(&scene, refs[0]).await.is_empty());
    assert_eq!(shown(&scene, refs[1]).await, past);
    let replay = Replay {
        subscription: "s".into(),
        from: ReplayFrom::Event(events[1]),
        effects_may_repeat: true,
        dry_run: false,
    };
    scene.log.store().replay(&replay).await.expect("replay");
    assert!(shown(&scene, refs[1]).await.is_empty());
}

/// What is due is cut by its bytes with the tries counted: many failing events are no reason to hold more in memory.
pub async fn tries_count_among_the_bytes_of_what_is_due(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::None, OnDead::Skip).await;
    let wide: Vec<_> = (0..10).map(|number| attempt(&scene, number)).collect();
    let size = PastAttempt::encode(&wide).len() as u64;
    scene
        .batch(&["a", "b", "c", "d"], |_, event| {
            Some(DeliveryChange::retrying(event, 1, Duration::ZERO, failure()).past(wide.clone()))
        })
        .await;
    scene.lease.bytes = size * 5 / 2;
    let due = scene.due().await;
    assert!((1..=2).contains(&due.len()), "{} of 4", due.len());
    assert!(due.iter().all(|due| due.state == DeliveryState::Retrying && due.past == wide));
}
