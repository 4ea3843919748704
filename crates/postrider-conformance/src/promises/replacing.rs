//! What is promised to who replaces a dead event: all of it happens, or nothing.

use std::sync::Arc;

use postrider_core::{
    AuditEntry, DeliveryChange, ErrorKind, EventQuery, OnDead, Order, Payload, Recorded, ReplaceDead,
    Settlement, State, StateQuery, Store, Uuid,
};

use super::scene::{Scene, due_ids, failure};
use crate::harness::Harness;
use crate::relay::{claim, commit_one, drain, ids, log, read, subscribe};

async fn found(store: &dyn Store, event_id: Uuid) -> Recorded {
    let query = EventQuery { event_id: Some(event_id), ..EventQuery::default() };
    store.events(&query).await.expect("events").events.remove(0).event
}

fn replacement(dead: &Recorded) -> ReplaceDead {
    ReplaceDead::of(dead, Payload::Json("\"mended\"".into()), "ada", "a typo")
}

/// Settles all that a subscription has to read; every event of it is dead.
async fn all_die(store: &dyn Store, subscription: &str) {
    let mut lease = claim(store, subscription).await;
    let batch = read(store, &lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    let dead = batch.events.iter().map(|read| DeliveryChange::dead(&read.event, 3, failure()));
    settlement.deliveries.extend(dead);
    store.settle(&mut lease, &settlement).await.expect("settle");
    store.release(lease).await.expect("release");
}

async fn state_of(store: &dyn Store, subscription: &str, event_id: Uuid) -> State {
    let query = StateQuery {
        event_id: Some(event_id),
        subscription: Some(subscription.into()),
        ..StateQuery::default()
    };
    store.states(&query).await.expect("states").remove(0).state
}

/// E8: the corrected event is recorded, every dead delivery of the old one is discarded, and both are written down. The new one
/// goes to every subscription, also to one that has delivered the old one; the old one comes no more.
pub async fn a_dead_event_is_replaced_wherever_it_is_dead(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    for name in ["mail", "done", "bill"] {
        subscribe(&*store, name).await;
    }
    let old = commit_one(&*log, "a").await;
    let other = commit_one(&*log, "b").await;
    all_die(&*store, "mail").await;
    all_die(&*store, "bill").await;
    assert_eq!(ids(&drain(&*store, "done").await), [old, other]);

    let dead = found(&*store, old).await;
    let replacement = replacement(&dead);
    let new = replacement.by.event_id;
    assert_eq!(store.replace_dead(&replacement).await.expect("replace"), ["bill", "mail"]);

    assert_eq!(log.event_ids().await, [old, other, new]);
    for name in ["bill", "mail"] {
        assert_eq!(state_of(&*store, name, old).await, State::Discarded, "{name}");
        assert_eq!(state_of(&*store, name, other).await, State::Dead, "{name}: another one is left alone");
    }
    let written = store.audits(10).await.expect("audits");
    let entry = |subscription: &str| AuditEntry {
        who: "ada".into(),
        what: format!("replace by {new}"),
        why: Some("a typo".into()),
        subscription: Some(subscription.into()),
        event_id: Some(old),
    };
    let written: Vec<_> = written.into_iter().map(|audit| audit.entry).collect();
    assert_eq!(written, [entry("mail"), entry("bill")], "the newest first");

    assert_eq!(found(&*store, old).await, dead, "what is recorded stays as it is");
    for name in ["bill", "mail", "done"] {
        let events = drain(&*store, name).await;
        assert_eq!(ids(&events), [new], "{name}");
        let event = &events[0];
        assert_eq!(event.payload.as_json(), Some("\"mended\""));
        assert_eq!(event.headers.causation_id(), Some(old));
        assert_eq!((event.key(), event.occurred_at), (dead.key(), dead.occurred_at));
        assert_eq!((&event.stream, &event.event_type), (&dead.stream, &dead.event_type));
    }
}

/// E8: an id that is taken, an event that can't be recorded, no reason, an event that is not dead: all is as it was.
pub async fn a_replacement_that_fails_changes_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let delivered = commit_one(&*log, "a").await;
    drain(&*store, "s").await;
    let old = commit_one(&*log, "a").await;
    all_die(&*store, "s").await;
    let (dead, alive) = (found(&*store, old).await, found(&*store, delivered).await);

    let mut taken = replacement(&dead);
    taken.by.event_id = delivered;
    let mut nameless = replacement(&dead);
    nameless.by.stream = String::new();
    let reasonless = ReplaceDead { why: String::new(), ..replacement(&dead) };
    let unknown = ReplaceDead { event_id: Uuid::now_v7(), ..replacement(&dead) };
    for (replacement, kind) in [
        (taken, ErrorKind::AlreadyRecorded),
        (nameless, ErrorKind::Invalid),
        (reasonless, ErrorKind::Invalid),
        (replacement(&alive), ErrorKind::Refused),
        (unknown, ErrorKind::Refused),
    ] {
        let refused = store.replace_dead(&replacement).await.expect_err("must be refused");
        assert_eq!(refused.kind(), kind, "{refused}");
        assert_eq!(log.event_ids().await, [delivered, old], "{refused}");
        assert_eq!(state_of(&*store, "s", old).await, State::Dead, "{refused}");
        assert_eq!(store.audits(10).await.expect("audits"), [], "{refused}");
    }
    store.replace_dead(&replacement(&dead)).await.expect("a good one is taken afterwards");
}

/// E8: what waited behind the dead event goes on at once; the new one comes at the end of its key.
pub async fn what_waited_behind_a_replaced_event_goes_on_before_the_new_one(harness: &dyn Harness) {
    let mut scene = Scene::new(harness, Order::Key, OnDead::Hold).await;
    let events = scene
        .batch(&["a", "a"], |n, id| {
            let dead = DeliveryChange::dead(id, 3, failure());
            Some(if n == 0 { dead } else { DeliveryChange::waiting(id) })
        })
        .await;
    assert!(scene.due().await.is_empty(), "the key waits for an operator");
    let replacement = replacement(&found(&*scene.store, events[0]).await);
    assert_eq!(scene.store.replace_dead(&replacement).await.expect("replace"), ["s"]);
    assert_eq!(due_ids(&scene.due().await), [events[1]]);
    let batch = read(&*scene.store, &scene.lease, 100).await;
    let read: Vec<_> = batch.events.iter().map(|read| (read.event.event_id, read.held)).collect();
    assert_eq!(read, [(replacement.by.event_id, true)], "behind what waited, until that is delivered");
}

/// E8: of several who replace an event at once, one does.
pub async fn of_several_who_replace_an_event_one_does(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    for name in ["one", "two"] {
        subscribe(&*store, name).await;
    }
    let old = commit_one(&*log, "a").await;
    for name in ["one", "two"] {
        all_die(&*store, name).await;
    }
    let dead = found(&*store, old).await;
    let racers = (0..8).map(|_| {
        let (store, replacement) = (Arc::clone(&store), replacement(&dead));
        tokio::spawn(async move { store.replace_dead(&replacement).await })
    });
    let mut winners = 0;
    for racer in racers.collect::<Vec<_>>() {
        match racer.await.expect("joined") {
            Ok(subscriptions) => {
                assert_eq!(subscriptions, ["one", "two"]);
                winners += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
        }
    }
    assert_eq!((winners, log.event_ids().await.len()), (1, 2));
    assert_eq!(store.audits(10).await.expect("audits").len(), 2, "one entry for each subscription");
}
