//! What lanes promise: a key is in one of them, and their number can change under running relays.

use std::collections::HashMap;
use std::time::Duration;

use postrider_core::{LeaseStatus, Relane, Subscription};

use crate::crew::{Crew, Manner};
use crate::harness::Harness;
use crate::relay::{LONG, commit_one, drain, drain_lane, ids, log, log_with_clock, read, settle, until};

/// A key is in one lane, always the same; all lanes get some.
pub async fn a_key_stays_in_one_lane(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(4)).await.expect("subscribe");
    let mut committed = Vec::new();
    for n in 0..120 {
        committed.push(commit_one(&*log, &format!("키-{}", n % 40)).await);
    }
    let mut lane_of: HashMap<String, u32> = HashMap::new();
    let mut got = Vec::new();
    while let Some(mut lease) = store.claim("s", "relay", LONG).await.expect("claim") {
        for event in drain_lane(&*store, &mut lease, 7).await {
            got.push(event.event_id);
            assert_eq!(*lane_of.entry(event.aggregate_id.clone()).or_insert(lease.lane), lease.lane);
        }
    }
    got.sort_unstable();
    committed.sort_unstable();
    assert_eq!(got, committed);
    let used: std::collections::HashSet<u32> = lane_of.values().copied().collect();
    assert_eq!(used.len(), 4, "40 keys in 4 lanes");
}

/// T6: the number of lanes changes while relays and writers run: nothing lost, repeated or out of order.
pub async fn changing_lanes_loses_repeats_and_reorders_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(3)).await.expect("subscribe");
    let mut crew = Crew::new(&log);
    for number in 0..3 {
        crew.relay("s", number, Manner { lease: LONG, walks_away: u64::MAX, batch: 20 }).await;
    }
    let change = async {
        for lanes in [1, 4, 2, 5, 3] {
            until(&format!("there are {lanes} lanes"), || async {
                store.relane("s", lanes).await.expect("relane") == Relane::Done
            })
            .await;
        }
    };
    let (committed, ()) = tokio::join!(crew.write(4, 60, 12), change);
    crew.finish(committed.len()).await.assert_exactly(&committed);
}

/// Holders of lanes that are to change learn it from whatever they do next.
pub async fn a_change_of_lanes_recalls_its_holders(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let first = commit_one(&*log, "a").await;
    let mut one = store.claim("s", "one", LONG).await.expect("claim").expect("a lane");
    let mut two = store.claim("s", "two", LONG).await.expect("claim").expect("a lane");
    let batch = read(&*store, &one, 10).await;
    assert!(!batch.recalled);
    assert_eq!(store.relane("s", 3).await.expect("relane"), Relane::Recalling);
    assert!(read(&*store, &two, 10).await.recalled);
    assert_eq!(store.extend(&mut two, LONG, None).await.expect("extend"), LeaseStatus::Recalled);
    assert_eq!(
        settle(&*store, &mut one, &batch).await,
        LeaseStatus::Recalled,
        "what was in flight is settled"
    );
    assert!(store.claim("s", "three", LONG).await.expect("claim").is_none(), "nobody else gets in meanwhile");
    let settled = batch.events.len();
    store.release(one).await.expect("release");
    assert_eq!(store.relane("s", 3).await.expect("relane"), Relane::Recalling, "one is still held");
    store.release(two).await.expect("release");
    let rest = drain(&*store, "s").await;
    assert_eq!(settled + rest.len(), 1, "{first} comes once");
    until("there are 3 lanes", || async { store.relane("s", 3).await.expect("relane") == Relane::Done })
        .await;
    let mut lanes = Vec::new();
    while let Some(lease) = store.claim("s", "relay", LONG).await.expect("claim") {
        lanes.push((lease.lane, lease.lanes));
    }
    lanes.sort_unstable();
    assert_eq!(lanes, [(0, 3), (1, 3), (2, 3)]);
}

/// A holder that dies while lanes change is waited for until its lease runs out; what it left open is repeated.
pub async fn a_relay_that_dies_during_a_change_of_lanes_loses_nothing(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    let lease_for = Duration::from_secs(30);
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut committed = Vec::new();
    for n in 0..40 {
        committed.push(commit_one(&*log, &format!("a{}", n % 8)).await);
    }
    let mut dead = store.claim("s", "dead", lease_for).await.expect("claim").expect("a lane");
    let first = read(&*store, &dead, 15).await;
    settle(&*store, &mut dead, &first).await;
    let open = read(&*store, &dead, 15).await;
    assert_eq!(store.relane("s", 3).await.expect("relane"), Relane::Recalling);
    assert!(drain(&*store, "s").await.is_empty());
    clock.advance(lease_for);
    let mut got: Vec<_> = first.events.iter().map(|read| read.event.event_id).collect();
    got.extend(ids(&drain(&*store, "s").await));
    assert_eq!(settle(&*store, &mut dead, &open).await, LeaseStatus::Lost, "it comes back too late");
    until("there are 3 lanes", || async { store.relane("s", 3).await.expect("relane") == Relane::Done })
        .await;
    got.extend(ids(&drain(&*store, "s").await));
    got.sort_unstable();
    committed.sort_unstable();
    assert_eq!(got, committed, "each once: the open batch was never delivered");
}
