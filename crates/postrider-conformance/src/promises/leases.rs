//! What leases promise: one holder at a time, and nothing from a stale one.

use std::time::Duration;

use postrider_core::{Lease, LeaseStatus, Settlement, Store, Subscription};

use crate::harness::Harness;
use crate::relay::{
    LONG, claim, commit_one, drain, drain_lane, ids, log, log_with_clock, read, settle, subscribe,
};

const LEASE: Duration = Duration::from_secs(30);

/// E10: a lane is held by one at a time.
pub async fn a_lane_is_held_by_one(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, other) = (log.store(), log.second_store().await);
    subscribe(&*store, "s").await;
    let lease = store.claim("s", "one", LONG).await.expect("claim").expect("a free lane");
    assert_eq!((lease.lane, lease.lanes, lease.owner.as_str()), (0, 1, "one"));
    assert!(other.claim("s", "two", LONG).await.expect("claim").is_none());
    assert!(store.claim("s", "one", LONG).await.expect("claim").is_none(), "not even by the same owner");
}

/// E5: a crashed holder's work is taken up after the lease runs out, where it was settled last.
pub async fn a_lease_runs_out_and_the_next_holder_goes_on(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, other) = (log.store(), log.second_store().await);
    subscribe(&*store, "s").await;
    commit_one(&*log, "a").await;
    let mut lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    drain_lane(&*store, &mut lease, 10).await;
    let second = commit_one(&*log, "a").await;
    read(&*store, &lease, 10).await;
    clock.advance(LEASE - Duration::from_millis(1));
    assert!(other.claim("s", "two", LEASE).await.expect("claim").is_none(), "it still runs");
    clock.advance(Duration::from_millis(1));
    let mut next_holder = other.claim("s", "two", LEASE).await.expect("claim").expect("it has run out");
    assert!(next_holder.epoch > lease.epoch);
    assert_eq!(ids(&drain_lane(&*other, &mut next_holder, 10).await), [second]);
}

/// A lease is extended from now while a batch runs.
pub async fn a_lease_is_extended(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    for _ in 0..5 {
        clock.advance(LEASE / 2);
        assert_eq!(store.extend(&mut lease, LEASE, None).await.expect("extend"), LeaseStatus::Held);
        assert_eq!(lease.until, clock.now() + LEASE);
    }
    assert!(store.claim("s", "two", LEASE).await.expect("claim").is_none());
    clock.advance(LEASE);
    let next_holder = store.claim("s", "two", LEASE).await.expect("claim").expect("it has run out");
    assert_eq!(store.extend(&mut lease, LEASE, None).await.expect("extend"), LeaseStatus::Lost);
    assert_eq!(next_holder.owner, "two");
}

/// A released lane is free at once; a stale release frees nothing.
pub async fn a_released_lane_is_free_at_once(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    store.release(lease.clone()).await.expect("release");
    let second = store.claim("s", "two", LEASE).await.expect("claim").expect("free again");
    store.release(lease).await.expect("a stale release is no error");
    assert!(store.claim("s", "three", LEASE).await.expect("claim").is_none(), "and frees nothing");
    clock.advance(LEASE);
    assert!(store.claim("s", "three", LEASE).await.expect("claim").is_some());
    drop(second);
}

/// A stale holder can't settle once another has claimed the lane, even if nothing has moved since.
pub async fn a_stale_settle_is_refused_by_its_epoch(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let event = commit_one(&*log, "a").await;
    let mut stale = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    let batch = read(&*store, &stale, 10).await;
    clock.advance(LEASE);
    let mut next_holder = store.claim("s", "one", LEASE).await.expect("claim").expect("it has run out");
    assert_eq!(settle(&*store, &mut stale, &batch).await, LeaseStatus::Lost);
    assert_eq!(
        ids(&drain_lane(&*store, &mut next_holder, 10).await),
        [event],
        "the stale settle moved nothing"
    );
}

/// A settle that does not start where the lane stands is refused: the database's past may have changed.
pub async fn a_stale_settle_is_refused_by_its_position(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    commit_one(&*log, "a").await;
    let mut lease = claim(&*store, "s").await;
    let first = read(&*store, &lease, 10).await;
    let mut copy = lease.clone();
    assert_eq!(settle(&*store, &mut lease, &first).await, LeaseStatus::Held);
    assert_eq!(settle(&*store, &mut copy, &first).await, LeaseStatus::Lost, "the same batch twice");
    commit_one(&*log, "a").await;
    commit_one(&*log, "a").await;
    let second = read(&*store, &lease, 1).await;
    let third = store.read(&lease, &second.next, 1).await.expect("read ahead");
    assert_eq!(settle(&*store, &mut copy, &third).await, LeaseStatus::Lost, "a batch before its turn");
    assert_eq!(settle(&*store, &mut lease, &second).await, LeaseStatus::Held);
    assert_eq!(settle(&*store, &mut lease, &third).await, LeaseStatus::Held);
}

/// A lease further in the future than it was given for is void: the clock went back.
pub async fn a_lease_too_far_in_the_future_is_void(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let now = clock.now();
    clock.advance(Duration::from_secs(86_400));
    store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    clock.set(now);
    assert!(store.claim("s", "two", LEASE).await.expect("claim").is_some());
}

/// A holder that goes away without settling or releasing is noticed.
pub async fn claims_since_the_last_settle_are_counted(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    for expected in 1..=3 {
        let lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
        assert_eq!(lease.claims, expected);
        clock.advance(LEASE);
    }
    commit_one(&*log, "a").await;
    let mut lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    drain_lane(&*store, &mut lease, 10).await;
    clock.advance(LEASE);
    let lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    assert_eq!(
        lease.claims, 2,
        "a settle begins the count anew, with the one who settled and then went away"
    );
    store.release(lease).await.expect("release");
    let lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    assert_eq!(lease.claims, 1, "nobody went away without a word");
}

/// U4: a crash between deliver and settle repeats the open batch and nothing else.
pub async fn a_crash_before_settle_repeats_only_the_open_batch(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut committed = Vec::new();
    for _ in 0..30 {
        committed.push(commit_one(&*log, "a").await);
    }
    let mut lease = store.claim("s", "one", LEASE).await.expect("claim").expect("a free lane");
    let first = read(&*store, &lease, 10).await;
    settle(&*store, &mut lease, &first).await;
    let open = read(&*store, &lease, 10).await;
    assert_eq!(open.events.len(), 10);
    clock.advance(LEASE);
    assert_eq!(ids(&drain(&*store, "s").await), committed[10..]);
    assert_eq!(store.settle(&mut lease, &Settlement::of(&open)).await.expect("settle"), LeaseStatus::Lost);
}

/// E5: a relay that goes from lane to lane comes to the one that a dead relay left.
pub async fn no_free_lane_is_passed_over(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(3)).await.expect("subscribe");
    let dead = store.claim("s", "dead", LEASE).await.expect("claim").expect("a free lane");
    let mut seen = std::collections::HashSet::new();
    for _ in 0..12 {
        clock.advance(LEASE / 3);
        let lease = store.claim("s", "alive", LEASE).await.expect("claim").expect("a free lane");
        seen.insert(lease.lane);
        store.release(lease).await.expect("release");
    }
    assert!(seen.contains(&dead.lane) && seen.len() == 3, "only lanes {seen:?} were claimed");
}

/// T6, E10: many claimers share the lanes; each lane has one holder.
pub async fn sixteen_claimers_share_four_lanes(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(4)).await.expect("subscribe");
    let mut claims = tokio::task::JoinSet::new();
    for n in 0..16 {
        let store = log.store();
        // Somebody else's claim may be in the way; then it is for the next one.
        claims.spawn(async move {
            let mut got = Vec::new();
            for _ in 0..4 {
                got.extend(store.claim("s", &format!("relay {n}"), LONG).await.expect("claim"));
            }
            got
        });
    }
    let mut lanes: Vec<u32> = claims.join_all().await.into_iter().flatten().map(|lease| lease.lane).collect();
    while let Some(lease) = store.claim("s", "last", LONG).await.expect("claim") {
        lanes.push(lease.lane);
    }
    lanes.sort_unstable();
    assert_eq!(lanes, [0, 1, 2, 3]);
}

/// Which of a holder's lanes it is to give up, by what an extension, or a settle, says of each.
async fn recalled(store: &dyn Store, leases: &mut [Lease], by_settle: bool) -> Vec<usize> {
    let mut recalled = Vec::new();
    for (place, lease) in leases.iter_mut().enumerate() {
        let status = if by_settle {
            let settlement = Settlement::at(lease.position.clone());
            store.settle(lease, &settlement).await.expect("settle")
        } else {
            store.extend(lease, LONG, None).await.expect("extend")
        };
        assert_ne!(status, LeaseStatus::Lost);
        if status == LeaseStatus::Recalled {
            recalled.push(place);
        }
    }
    recalled
}

/// A relay that joins gets its share: holders give up as many lanes as it takes, one at a time, and don't take them back.
pub async fn lanes_end_up_shared_evenly(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, other) = (log.store(), log.second_store().await);
    store.subscribe(&Subscription::new("s").lanes(4)).await.expect("subscribe");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    while let Some(lease) = store.claim("s", "first", LONG).await.expect("claim") {
        first.push(lease);
    }
    assert_eq!(first.len(), 4);
    assert!(recalled(&*store, &mut first, false).await.is_empty(), "nobody wants any");
    for by_settle in [false, true] {
        assert!(other.claim("s", "second", LONG).await.expect("claim").is_none(), "none is free");
        let wanted = recalled(&*store, &mut first, by_settle).await;
        assert_eq!(wanted.len(), 1, "one at a time");
        assert_eq!(
            recalled(&*store, &mut first, !by_settle).await,
            wanted,
            "the same, whatever the holder does"
        );
        store.release(first.remove(wanted[0])).await.expect("release");
        assert!(recalled(&*store, &mut first, by_settle).await.is_empty(), "one is free: that is enough");
        assert!(store.claim("s", "first", LONG).await.expect("claim").is_none(), "it does not get it back");
        second.push(
            other.claim("s", "second", LONG).await.expect("claim").expect("the lane that was given up"),
        );
        assert!(recalled(&*store, &mut first, by_settle).await.is_empty(), "nobody has asked again");
    }
    assert!(other.claim("s", "second", LONG).await.expect("claim").is_none());
    assert!(store.claim("s", "first", LONG).await.expect("claim").is_none());
    assert_eq!((first.len(), second.len()), (2, 2));
    for leases in [&mut first, &mut second] {
        assert!(recalled(&*store, leases, false).await.is_empty(), "it stays that way");
    }

    // A third one asks and goes away: what was asked for is forgotten.
    assert!(other.claim("s", "third", LONG).await.expect("claim").is_none());
    assert_eq!(recalled(&*store, &mut first, false).await.len(), 1);
    store.release(first.remove(0)).await.expect("release");
    assert!(store.claim("s", "first", LONG).await.expect("claim").is_none(), "it is kept for the third");
    clock.advance(Duration::from_secs(11));
    assert!(recalled(&*store, &mut second, false).await.is_empty());
    assert!(store.claim("s", "first", LONG).await.expect("claim").is_some(), "the third is gone");
}

/// Who only stands by disturbs nobody: lanes are given up only to somebody who holds at least two less.
pub async fn a_standby_of_a_single_lane_recalls_nobody(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, other) = (log.store(), log.second_store().await);
    for lanes in [1, 2, 3] {
        let name = format!("in {lanes} lanes");
        store.subscribe(&Subscription::new(&name).lanes(lanes)).await.expect("subscribe");
        let mut held = Vec::new();
        for lane in 0..lanes {
            let owner = format!("relay {}", lane % 2);
            held.push(store.claim(&name, &owner, LONG).await.expect("claim").expect("a free lane"));
        }
        // With three lanes, the one that holds a single lane asks; with fewer, somebody who holds none.
        let asks = if lanes == 3 { "relay 1" } else { "standby" };
        for _ in 0..3 {
            assert!(other.claim(&name, asks, LONG).await.expect("claim").is_none());
            for by_settle in [false, true] {
                assert!(recalled(&*store, &mut held, by_settle).await.is_empty(), "{name}");
            }
            clock.advance(Duration::from_secs(6));
        }
    }
}
