//! What the transactions of handlers promise.

use std::time::Duration;

use postrider_core::{
    Clock, Effect, ErrorKind, EventLog, Lease, LeaseStatus, ManualClock, NewEvent, OffsetDateTime, Operate,
    OutboxSource, Relane, Subscription, Uuid,
};
use postrider_memory::{MemoryStore, Outbox};

const LEASE: Duration = Duration::from_secs(30);

struct Scene {
    outbox: Outbox,
    store: MemoryStore,
    clock: ManualClock,
    lease: Lease,
    event: Uuid,
}

impl Scene {
    async fn new() -> Self {
        let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH);
        let outbox = Outbox::builder().clock(Clock::Manual(clock.clone())).build();
        let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &7).expect("JSON");
        let event = outbox.record_outside_transaction(&event).await.expect("record");
        let store = outbox.store();
        store.subscribe(&Subscription::new("licences")).await.expect("subscribe");
        let lease = store.claim("licences", "one", LEASE).await.expect("claim").expect("a free lane");
        Self { outbox, store, clock, lease, event }
    }

    fn effect<'a>(&'a self, events: &'a [Uuid]) -> Effect<'a> {
        Effect { lease: Some(&self.lease), consumer: "licences", events, timeout: LEASE }
    }

    async fn is_handled(&self) -> bool {
        self.outbox.handled("licences", &[self.event]).await.expect("handled")[0]
    }
}

#[tokio::test]
async fn an_effect_commits_with_its_mark_and_its_follow_up() {
    let scene = Scene::new().await;
    let events = [scene.event];
    let (mut tx, first) = OutboxSource::begin(&scene.outbox, scene.effect(&events)).await.expect("begin");
    assert_eq!(first, [true]);
    tx.set("licence 7", "granted").await.expect("set");
    let granted = NewEvent::of("licences", "LicenceGranted", "Licence", "7", &7).expect("JSON");
    let follow_up = scene.outbox.record_in(&mut tx, &granted).await.expect("record");
    assert!(!scene.is_handled().await, "not before the commit");
    <Outbox as OutboxSource>::commit(tx).await.expect("commit");

    assert!(scene.is_handled().await);
    assert_eq!(scene.outbox.get("licence 7").as_deref(), Some("granted"));
    assert_eq!(scene.outbox.recorded()[1].event_id, follow_up);
    let (_, again) = OutboxSource::begin(&scene.outbox, scene.effect(&events)).await.expect("begin");
    assert_eq!(again, [false], "its effect is there already");
}

#[tokio::test]
async fn a_dropped_effect_is_not_marked() {
    let scene = Scene::new().await;
    let events = [scene.event];
    for _ in 0..2 {
        let (mut tx, first) = OutboxSource::begin(&scene.outbox, scene.effect(&events)).await.expect("begin");
        assert_eq!(first, [true]);
        tx.set("licence 7", "granted").await.expect("set");
    }
    assert!(!scene.is_handled().await && scene.outbox.get("licence 7").is_none());
}

#[tokio::test]
async fn two_handlers_of_one_event_wait_for_each_other() {
    let scene = Scene::new().await;
    let events = [scene.event];
    let (one, first) = OutboxSource::begin(&scene.outbox, scene.effect(&events)).await.expect("begin");
    let other = OutboxSource::begin(&scene.outbox, scene.effect(&events));
    let (other, committed) = tokio::join!(other, one.commit());
    committed.expect("commit");
    assert_eq!((first, other.expect("begin").1), (vec![true], vec![false]));
}

#[tokio::test]
async fn a_stale_holder_begins_nothing() {
    let scene = Scene::new().await;
    scene.clock.advance(LEASE);
    scene.store.claim("licences", "two", LEASE).await.expect("claim").expect("it has run out");
    let error =
        OutboxSource::begin(&scene.outbox, scene.effect(&[scene.event])).await.expect_err("it is stale");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    assert!(!scene.is_handled().await);
}

#[tokio::test]
async fn nobody_gets_the_lane_while_a_handler_is_at_work_in_it() {
    let mut scene = Scene::new().await;
    let (tx, _) = OutboxSource::begin(&scene.outbox, scene.effect(&[scene.event])).await.expect("begin");
    scene.clock.advance(LEASE);
    assert!(scene.store.claim("licences", "two", LEASE).await.expect("claim").is_none());
    assert_eq!(scene.store.relane("licences", 2).await.expect("relane"), Relane::Recalling);
    let status = scene.store.extend(&mut scene.lease, LEASE, None).await.expect("extend");
    assert_eq!(status, LeaseStatus::Recalled, "its holder still has it");
    scene.clock.advance(LEASE);
    tx.commit().await.expect("commit");
    assert!(scene.is_handled().await);
    let next_holder = scene.store.claim("licences", "two", LEASE).await.expect("claim");
    assert!(next_holder.is_some(), "free as soon as the transaction has ended");
    let status = scene.store.extend(&mut scene.lease, LEASE, None).await.expect("extend");
    assert_eq!(status, LeaseStatus::Lost);
}
