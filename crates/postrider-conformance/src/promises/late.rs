//! What holds when transactions commit in another order than they wrote: nothing lost, stalled or twice.

use std::time::Duration;

use postrider_core::{Figures, NewEvent, Start, Subscription, Sweep};

use crate::harness::Harness;
use crate::relay::{
    LONG, change_lanes, claim, commit_one, drain, drain_lane, event, ids, log, log_with_clock, read, settle,
    subscribe,
};

/// An event that was recorded first and committed last is delivered.
pub async fn an_event_of_a_late_commit_is_delivered(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    for round in 0..5 {
        let mut late = log.begin().await;
        let held_back = late.record(&event("late", round)).await.expect("record");
        let prompt = commit_one(&*log, "prompt").await;
        assert_eq!(ids(&drain_lane(&*store, &mut lease, 10).await), [prompt], "round {round}");
        late.commit().await.expect("commit");
        let batch = read(&*store, &lease, 10).await;
        let late: Vec<bool> = batch.events.iter().map(|read| read.late).collect();
        assert_eq!(late, [true], "round {round}");
        assert_eq!(batch.events[0].event.event_id, held_back);
        settle(&*store, &mut lease, &batch).await;
        assert!(read(&*store, &lease, 10).await.is_idle());
    }
}

/// A transaction that began to write early and records late is delivered, wherever the reader was meanwhile.
pub async fn an_early_transaction_that_inserts_late_is_delivered(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let mut early = log.begin().await;
    early.touch().await.expect("touch");
    let first = commit_one(&*log, "a").await;
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 10).await), [first]);
    let held_back = early.record(&event("early", 1)).await.expect("record");
    let second = commit_one(&*log, "a").await;
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 10).await), [second]);
    early.commit().await.expect("commit");
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 10).await), [held_back]);
}

/// An older transaction takes the higher id and commits first; the younger one, whose transaction id is beyond all that
/// have ended, is still open. What it commits afterwards lies below the reader.
pub async fn an_older_transaction_that_commits_first_hides_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    for round in 0..10 {
        let (mut older, mut younger) = (log.begin().await, log.begin().await);
        older.touch().await.expect("touch");
        let below = younger.record(&event("younger", round)).await.expect("record");
        let above = older.record(&event("older", round)).await.expect("record");
        older.commit().await.expect("commit");
        let first = read(&*store, &lease, 10).await;
        assert_eq!(first.events.iter().map(|read| read.event.event_id).collect::<Vec<_>>(), [above]);
        settle(&*store, &mut lease, &first).await;
        younger.commit().await.expect("commit");
        assert_eq!(ids(&drain_lane(&*store, &mut lease, 10).await), [below], "round {round}");
    }
}

/// A transaction left open delays nobody's events but its own.
pub async fn a_long_transaction_delays_only_itself(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let mut long = log.begin().await;
    let mut own = vec![long.record(&event("long", 1)).await.expect("record")];
    let mut others = Vec::new();
    let mut got = Vec::new();
    for n in 0..50 {
        others.push(commit_one(&*log, "a").await);
        if n % 10 == 0 {
            own.push(long.record(&event("long", n)).await.expect("record"));
        }
        got.extend(ids(&drain_lane(&*store, &mut lease, 3).await));
        assert_eq!(got.len(), others.len(), "each is delivered as it comes");
    }
    assert_eq!(got, others);
    long.commit().await.expect("commit");
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 3).await), own);
}

/// One transaction of 100,000 events that commits late comes in bounded batches, by id, none twice.
pub async fn many_late_events_come_in_bounded_batches_none_twice(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let (mut bulk, mut other) = (log.begin().await, log.begin().await);
    let mut held_back = Vec::new();
    let mut others = vec![other.record(&event("other", 0)).await.expect("record")];
    for chunk in 0..20 {
        let events: Vec<_> = (0..5_000).map(|n| event("bulk", chunk * 5_000 + n)).collect();
        held_back.extend(bulk.record_all(&events).await.expect("record"));
        others.push(other.record(&event("other", chunk)).await.expect("record"));
    }
    let prompt = commit_one(&*log, "prompt").await;
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 100).await), [prompt]);
    bulk.commit().await.expect("commit");
    let mut got = Vec::new();
    let mut other = Some(other);
    loop {
        let batch = read(&*store, &lease, 4_000).await;
        if batch.is_idle() {
            break;
        }
        assert!(batch.events.len() <= 4_000, "a batch of {}", batch.events.len());
        settle(&*store, &mut lease, &batch).await;
        got.extend(batch.events.into_iter().map(|read| read.event));
        // Another late one appears while the first is being read in parts.
        if got.len() > 20_000
            && let Some(other) = other.take()
        {
            other.commit().await.expect("commit");
        }
    }
    let (bulk, rest): (Vec<_>, Vec<_>) = got.into_iter().partition(|event| event.aggregate_id == "bulk");
    assert!(bulk.is_sorted_by_key(|event| event.id), "by id");
    assert!(ids(&bulk) == held_back, "{} of {} came", bulk.len(), held_back.len());
    assert_eq!(ids(&rest), others);
}

/// Late events go through the same filters and lanes as the others.
pub async fn late_events_respect_filters_and_lanes(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(3).types(["Wanted"])).await.expect("subscribe");
    let mut late = log.begin().await;
    let mut wanted = Vec::new();
    for n in 0..60 {
        let event_type = if n % 3 == 0 { "Wanted" } else { "Unwanted" };
        let event = NewEvent::of("x", event_type, "A", format!("a{n}"), &n).expect("JSON");
        let id = late.record(&event).await.expect("record");
        if n % 3 == 0 {
            wanted.push(id);
        }
    }
    commit_one(&*log, "prompt").await;
    assert!(drain(&*store, "s").await.is_empty());
    late.commit().await.expect("commit");
    let mut got = Vec::new();
    while let Some(mut lease) = store.claim("s", "relay", LONG).await.expect("claim") {
        got.extend(ids(&drain_lane(&*store, &mut lease, 7).await));
    }
    got.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(got, wanted);
}

/// Below a lane's frontier there may be events that nobody has seen: retention must not take them.
pub async fn prune_never_takes_an_event_that_a_lane_has_not_seen(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let mut late = log.begin().await;
    let held_back = late.record(&event("late", 1)).await.expect("record");
    for _ in 0..20 {
        commit_one(&*log, "a").await;
    }
    drain_lane(&*store, &mut lease, 100).await;
    late.commit().await.expect("commit");
    clock.advance(Duration::from_secs(86_400));
    let prune = Sweep::Prune { older_than: Duration::from_secs(3600), limit: 1000 };
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 20);
    assert_eq!(log.event_ids().await, [held_back]);
    assert_eq!(ids(&drain_lane(&*store, &mut lease, 100).await), [held_back]);
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 0, "its own time counts from its own settle");
    clock.advance(Duration::from_secs(7200));
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 1);
}

/// Lanes at different places, with late events owed by each, come together without loss or repetition.
pub async fn late_events_survive_a_change_of_lanes(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut got = Vec::new();
    let mut committed = Vec::new();
    let mut late = log.begin().await;
    for n in 0..20 {
        committed.push(late.record(&event(&format!("late{n}"), n)).await.expect("record"));
        committed.push(commit_one(&*log, &format!("a{n}")).await);
    }
    // One lane reads before the late commit, the other not at all.
    let mut one = store.claim("s", "one", LONG).await.expect("claim").expect("a lane");
    got.extend(ids(&drain_lane(&*store, &mut one, 5).await));
    let mut later = log.begin().await;
    committed.push(later.record(&event("later", 1)).await.expect("record"));
    late.commit().await.expect("commit");
    let batch = read(&*store, &one, 3).await;
    settle(&*store, &mut one, &batch).await;
    got.extend(batch.events.iter().map(|read| read.event.event_id));
    store.release(one).await.expect("release");
    store.relane("s", 3).await.expect("relane");
    committed.push(commit_one(&*log, "meanwhile").await);
    got.extend(ids(&drain(&*store, "s").await));
    later.commit().await.expect("commit");
    got.extend(ids(&change_lanes(&*store, "s", 3).await));
    got.extend(ids(&drain(&*store, "s").await));
    got.sort_unstable();
    committed.sort_unstable();
    assert_eq!(got, committed);
}

/// Starting now excludes what is committed, not what is about to be.
pub async fn a_subscription_that_starts_now_sees_what_commits_later(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    let mut open = log.begin().await;
    let held_back = open.record(&event("open", 1)).await.expect("record");
    commit_one(&*log, "before").await;
    store.subscribe(&Subscription::new("s").start(Start::Now)).await.expect("subscribe");
    let after = commit_one(&*log, "after").await;
    open.commit().await.expect("commit");
    assert_eq!(ids(&drain(&*store, "s").await), [held_back, after]);
}

/// What commits behind the reader is pending until it is read, like everything else.
pub async fn late_events_count_as_pending_until_they_are_read(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let pending =
        async || -> u64 { store.figures("s").await.expect("figures").iter().map(Figures::undelivered).sum() };
    let mut late = log.begin().await;
    for n in 0..10 {
        late.record(&event(&format!("late{n}"), 1)).await.expect("record");
    }
    for n in 0..5 {
        commit_one(&*log, &format!("prompt{n}")).await;
    }
    assert_eq!(pending().await, 5);
    assert_eq!(drain(&*store, "s").await.len(), 5);
    assert_eq!(pending().await, 0, "what is not committed does not count");
    late.commit().await.expect("commit");
    assert_eq!(pending().await, 10);
    let mut one = store.claim("s", "one", LONG).await.expect("claim").expect("a lane");
    let read = drain_lane(&*store, &mut one, 100).await.len() as u64;
    assert_eq!(pending().await, 10 - read, "each lane has its own");
    drain(&*store, "s").await;
    assert_eq!(pending().await, 0);
}
