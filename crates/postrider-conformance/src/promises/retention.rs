//! What retention promises: it takes only what nobody needs any more.

use std::time::Duration;

use postrider_core::{Amend, DeliveryChange, DeliveryFailure, Settlement, Subscription, Sweep, Swept};

use crate::harness::Harness;
use crate::relay::{change_lanes, claim, commit_one, drain, log_with_clock, read, settle, subscribe};

const DAY: Duration = Duration::from_secs(86_400);
const PRUNE: Sweep = Sweep::Prune { older_than: DAY, limit: 1000 };

/// L7, T7: an event goes when every subscription has settled it long enough ago.
pub async fn only_what_every_subscription_settled_long_enough_ago_is_pruned(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "one").await;
    subscribe(&*store, "two").await;
    commit_one(&*log, "a").await;
    commit_one(&*log, "b").await;
    drain(&*store, "one").await;
    clock.advance(DAY * 2);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune"), Swept::default(), "two has settled nothing");
    let mut lease = claim(&*store, "two").await;
    let first = read(&*store, &lease, 1).await;
    settle(&*store, &mut lease, &first).await;
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 0, "two has only just settled it");
    clock.advance(DAY);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 1);
    let second = read(&*store, &lease, 1).await;
    settle(&*store, &mut lease, &second).await;
    clock.advance(DAY);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 1);
    assert!(log.event_ids().await.is_empty());
    let after = commit_one(&*log, "c").await;
    assert_eq!(drain(&*store, "one").await[0].event_id, after, "an empty log goes on");
}

/// U12: dead and waiting events stay until an operator acts.
pub async fn dead_and_waiting_events_stay(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut events = Vec::new();
    for aggregate in ["dead", "retrying", "waiting", "late success", "done"] {
        events.push(commit_one(&*log, aggregate).await);
    }
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    let id = |n: usize| batch.events[n].event.id;
    let failure = DeliveryFailure::new("x", "y");
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::dead(id(0), 1, failure.clone()));
    settlement.deliveries.push(DeliveryChange::retrying(id(1), 1, DAY, failure.clone()));
    settlement.deliveries.push(DeliveryChange::waiting(id(2)));
    settlement.deliveries.push(DeliveryChange::retrying(id(3), 1, DAY, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    clock.advance(DAY * 10);
    let mut settlement = Settlement::at(lease.position.clone());
    settlement.deliveries.push(DeliveryChange::delivered(id(3), 2));
    store.settle(&mut lease, &settlement).await.expect("settle");
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 1);
    assert_eq!(log.event_ids().await, events[..4], "what was delivered in the end counts from then");
    store
        .amend(&Amend::Discard { subscription: "s".into(), events: vec![events[0]] })
        .await
        .expect("discard");
    clock.advance(DAY);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 2);
    assert_eq!(log.event_ids().await, events[1..3]);
}

/// U12: archived events can be read, and are never delivered again.
pub async fn the_archive_can_be_read_but_not_delivered(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let event = commit_one(&*log, "a").await;
    drain(&*store, "s").await;
    clock.advance(DAY * 30);
    let archive = Sweep::Archive { older_than: DAY * 30, limit: 10 };
    assert_eq!(store.sweep(&archive).await.expect("archive"), Swept { taken: 1, more: false });
    assert_eq!((log.archived_ids().await, log.event_ids().await), (vec![event], vec![]));
    subscribe(&*store, "new").await;
    assert!(drain(&*store, "new").await.is_empty());
}

/// Without a subscription nobody has settled anything.
pub async fn nothing_is_pruned_without_a_subscription(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    commit_one(&*log, "a").await;
    clock.advance(DAY * 1000);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 0);
    assert_eq!(log.event_ids().await.len(), 1);
}

/// A change of lanes neither hastens nor delays retention.
pub async fn retention_counts_from_the_settle_also_after_a_change_of_lanes(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    for n in 0..10 {
        commit_one(&*log, &format!("old{n}")).await;
    }
    drain(&*store, "s").await;
    clock.advance(DAY / 2);
    change_lanes(&*store, "s", 3).await;
    commit_one(&*log, "new").await;
    drain(&*store, "s").await;
    clock.advance(DAY / 2);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 10);
    clock.advance(DAY / 2);
    assert_eq!(store.sweep(&PRUNE).await.expect("prune").taken, 1);
}

/// Retention works in batches, so that it never holds a lock for long.
pub async fn retention_works_in_batches(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    for _ in 0..25 {
        commit_one(&*log, "a").await;
    }
    drain(&*store, "s").await;
    clock.advance(DAY);
    let prune = Sweep::Prune { older_than: DAY, limit: 10 };
    let mut taken = Vec::new();
    loop {
        let swept = store.sweep(&prune).await.expect("prune");
        taken.push(swept.taken);
        if !swept.more {
            break;
        }
    }
    assert_eq!(taken, [10, 10, 5]);
}
