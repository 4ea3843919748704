//! What is promised of keys and names: they are bytes. Those that differ in a space at the end, in case or in an accent are two.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use postrider_core::{DeliveryChange, DeliveryFailure, LeaseStatus, Settlement, Subscription};

use crate::harness::{Harness, TestLog};
use crate::relay::{LONG, claim, commit_one, drain_lane, event, log, read, subscribe};

/// As different as keys can be that look alike; the last two are the same letter in two ways to write it.
const ALIKE: [&str; 6] = ["billing", "billing ", "billing  ", "Billing", "b\u{ed}lling", "bi\u{301}lling"];

async fn record_each(log: &dyn TestLog) {
    for key in ALIKE {
        let mut writer = log.begin().await;
        writer.record(&event("1", 1).ordered_by(key).sequenced()).await.expect("record");
        writer.commit().await.expect("commit");
    }
}

/// A failing event holds its own key and no other, and every one that fails does.
pub async fn keys_that_look_alike_are_held_each_by_its_own(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    record_each(&*log).await;
    let batch = read(&*store, &lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    for failed in &batch.events {
        let failure = DeliveryFailure::new("down", "not now");
        settlement.deliveries.push(DeliveryChange::retrying(&failed.event, 1, Duration::ZERO, failure));
    }
    store.settle(&mut lease, &settlement).await.expect("settle");

    // One after the other succeeds, and no longer holds its own.
    let mut open: BTreeSet<&str> = ALIKE.into_iter().collect();
    for key in ALIKE {
        record_each(&*log).await;
        let ahead = read(&*store, &lease, 100).await;
        for read in &ahead.events {
            let key = read.event.key().into_owned();
            assert_eq!(read.held, open.contains(&*key), "{key:?}, while {open:?} are open");
        }
        let due = store.due(&lease, 100).await.expect("due").deliveries;
        let found: BTreeSet<String> = due.iter().map(|due| due.event.key().into_owned()).collect();
        assert!(
            found.iter().map(String::as_str).eq(open.iter().copied()),
            "{found:?} are due, {open:?} are open"
        );
        let delivered = due.iter().find(|due| due.event.key() == key).expect("it is due");
        let mut settlement = Settlement::at(lease.position.clone());
        settlement.deliveries.push(DeliveryChange::delivered(&delivered.event, 2));
        let status = store.settle(&mut lease, &settlement).await.expect("settle");
        assert_ne!(status, LeaseStatus::Lost);
        open.remove(key);
    }
}

/// Each key counts for itself.
pub async fn keys_that_look_alike_have_counters_of_their_own(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    record_each(&*log).await;
    record_each(&*log).await;
    let mut numbers: HashMap<String, Vec<i64>> = HashMap::new();
    for event in drain_lane(&*store, &mut claim(&*store, "s").await, 100).await {
        numbers.entry(event.key().into_owned()).or_default().extend(event.sequence);
    }
    assert_eq!(numbers.len(), ALIKE.len());
    assert!(numbers.values().all(|numbers| numbers == &[1, 2]), "{numbers:?}");
}

/// Keys that look alike are kept in order in whichever lanes they are.
pub async fn keys_that_look_alike_are_each_in_one_lane(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(4)).await.expect("subscribe");
    record_each(&*log).await;
    record_each(&*log).await;
    let mut lanes: HashMap<String, Vec<(u32, i64)>> = HashMap::new();
    for _ in 0..4 {
        let mut lease = claim(&*store, "s").await;
        for event in drain_lane(&*store, &mut lease, 100).await {
            let number = event.sequence.expect("it is sequenced");
            lanes.entry(event.key().into_owned()).or_default().push((lease.lane, number));
        }
    }
    for (key, came) in &lanes {
        assert!(matches!(came[..], [(first, 1), (second, 2)] if first == second), "{key:?}: {came:?}");
    }
    assert_eq!(lanes.len(), ALIKE.len());
}

/// What one consumer has handled is new to another.
pub async fn consumers_whose_names_look_alike_have_inboxes_of_their_own(harness: &dyn Harness) {
    let log = log(harness).await;
    let id = commit_one(&*log, "a").await;
    for again in [false, true] {
        for consumer in ALIKE {
            let mut writer = log.begin().await;
            let first = writer.first_time(consumer, id).await.expect("inbox");
            assert_eq!(first, !again, "{consumer:?}");
            writer.commit().await.expect("commit");
        }
    }
}

/// Subscriptions, their positions and their leases are each one's own.
pub async fn subscriptions_whose_names_look_alike_are_several(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    for name in ALIKE {
        subscribe(&*store, name).await;
    }
    commit_one(&*log, "a").await;
    for name in ALIKE {
        let mut lease = claim(&*store, name).await;
        assert_eq!(drain_lane(&*store, &mut lease, 10).await.len(), 1, "{name:?}");
    }
    let shown = operator.subscriptions().await.expect("subscriptions");
    let shown: BTreeSet<&str> = shown.iter().map(|info| info.subscription.name.as_str()).collect();
    assert_eq!(shown, ALIKE.into_iter().collect());
    operator.remove("billing ", true).await.expect("remove");
    assert_eq!(operator.subscriptions().await.expect("subscriptions").len(), ALIKE.len() - 1);
}

/// Leader leases and their holders are each their own.
pub async fn leader_leases_whose_names_look_alike_are_several(harness: &dyn Harness) {
    let log = log(harness).await;
    let operator = log.store();
    for name in ALIKE {
        operator.acquire_leader_lease(name, "a", LONG).await.expect("asked").expect("it is free");
        assert_eq!(
            operator.acquire_leader_lease(name, "a ", LONG).await.expect("asked"),
            None,
            "{name:?} is another's"
        );
    }
}
