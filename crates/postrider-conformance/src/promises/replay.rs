//! What a replay promises: everything from a point on comes again, nothing that is owed is lost.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use postrider_core::{
    ArchiveOptions, DeliveryChange, DeliveryFailure, ErrorKind, LeaseStatus, ManualClock, OffsetDateTime,
    Replay, ReplayFrom, Replayed, ResolveDead, Result, Settlement, Start, State, StateQuery, Store,
    Subscription, Sweep, Uuid,
};

use crate::harness::{Harness, TestLog};
use crate::relay::{
    LONG, change_lanes, claim, commit_one, drain, ids, log, log_with_clock, read, settle, subscribe,
};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn wanted(from: ReplayFrom) -> Replay {
    Replay { subscription: "s".into(), from, effects_may_repeat: false, dry_run: false }
}

pub(super) async fn replay_from(operator: &dyn Store, event: Uuid) -> Result<Replayed> {
    operator.replay(&wanted(ReplayFrom::Event(event))).await
}

/// Everything from an event on comes again, in its order, in every lane, and then what is new.
pub async fn everything_from_an_event_on_comes_again(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.subscribe(&Subscription::new("s").lanes(3)).await.expect("subscribe");
    subscribe(&*store, "other").await;
    let mut events = Vec::new();
    for n in 0..20 {
        events.push(commit_one(&*log, &format!("a{}", n % 5)).await);
    }
    assert_eq!(drain(&*store, "s").await.len(), 20);
    drain(&*store, "other").await;
    let replayed = replay_from(&*operator, events[8]).await.expect("replay");
    assert_eq!((replayed.events, replayed.counted), (12, true));
    let new = commit_one(&*log, "a0").await;
    let again = drain(&*store, "s").await;
    let came: HashSet<Uuid> = ids(&again).into_iter().collect();
    let expected: HashSet<Uuid> = events[8..].iter().copied().chain([new]).collect();
    assert_eq!((came, again.len()), (expected, 13));
    let mut versions: HashMap<&str, i64> = HashMap::new();
    for event in &again {
        let version: i64 = event.payload.decode().expect("a version");
        let last = versions.insert(&event.aggregate_id, version).unwrap_or(0);
        assert!(version > last, "{} came after {last} of {}", version, event.aggregate_id);
    }
    assert_eq!(ids(&drain(&*store, "other").await), [new], "another subscription stays where it is");
    assert!(drain(&*store, "s").await.is_empty());
}

/// From a time on: what was recorded then or later. A dry run says how much that is, and changes nothing.
pub async fn a_dry_run_counts_and_changes_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.subscribe(&Subscription::new("s").types(["OrderChanged"])).await.expect("subscribe");
    let mut events = Vec::new();
    for _ in 0..6 {
        events.push(commit_one(&*log, "a").await);
    }
    let read = drain(&*store, "s").await;
    let from = ReplayFrom::Time(read[2].recorded_at);
    let expected = read.iter().filter(|event| event.recorded_at >= read[2].recorded_at).count();
    let before = operator.subscriptions().await.expect("subscriptions");
    let dry = operator.replay(&Replay { dry_run: true, ..wanted(from) }).await.expect("dry run");
    assert_eq!((dry.events, dry.first_recorded_at), (expected as u64, Some(read[2].recorded_at)));
    assert_eq!(operator.subscriptions().await.expect("subscriptions"), before);
    assert!(drain(&*store, "s").await.is_empty());
    assert_eq!(operator.replay(&wanted(from)).await.expect("replay"), dry);
    assert_eq!(ids(&drain(&*store, "s").await), events[events.len() - expected..]);
    let later = ReplayFrom::Time(OffsetDateTime::now_utc() + DAY);
    assert_eq!(operator.replay(&wanted(later)).await.expect("nothing").events, 0);
    assert!(drain(&*store, "s").await.is_empty());
    let all = ReplayFrom::Time(OffsetDateTime::UNIX_EPOCH);
    assert_eq!(operator.replay(&wanted(all)).await.expect("all").events, 6);
    assert_eq!(ids(&drain(&*store, "s").await), events);
}

/// Holders lose their lanes, who only looks is told, and what holders had not settled comes from the new place.
pub async fn a_replay_takes_lanes_from_their_holders(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(commit_one(&*log, "a").await);
    }
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 2).await;
    settle(&*store, &mut lease, &batch).await;
    let batch = read(&*store, &lease, 2).await;
    assert_eq!(replay_from(&*operator, events[1]).await.expect("replay").events, 1, "one was read of those");
    assert_eq!(settle(&*store, &mut lease, &batch).await, LeaseStatus::Lost);
    assert_eq!(store.extend(&mut lease, LONG, None).await.expect("extend"), LeaseStatus::Lost);
    store.release(lease.clone()).await.expect("a stale release changes nothing");
    let next_holder = claim(&*store, "s").await;
    assert_eq!(next_holder.claims, 1, "nobody vanished");
    store.release(next_holder).await.expect("release");
    assert_eq!(ids(&drain(&*store, "s").await), events[1..]);

    // A lane that was given back is looked at by its last lease: that look has to notice.
    let mut idle = claim(&*store, "s").await;
    assert!(read(&*store, &idle, 10).await.is_idle());
    assert_eq!(store.extend(&mut idle, LONG, None).await.expect("extend"), LeaseStatus::Held);
    store.release(idle.clone()).await.expect("release");
    let notices = async || {
        let due = store.due(&idle, 1).await;
        let looked = store.read(&idle, &idle.position, 1).await;
        due.is_err_and(|error| error.kind() == ErrorKind::LeaseLost)
            || looked.is_ok_and(|batch| batch.recalled)
    };
    assert!(!notices().await, "nothing has happened");
    replay_from(&*operator, events[2]).await.expect("replay");
    assert!(notices().await);
    assert_eq!(ids(&drain(&*store, "s").await), events[2..]);
}

/// What comes again is pending again, whatever had become of it; what lies before stays as it is.
pub async fn deliveries_of_what_comes_again_are_forgotten(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let mut events = Vec::new();
    for aggregate in ["dead before", "fine", "dead", "retrying", "done"] {
        events.push(commit_one(&*log, aggregate).await);
    }
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("refused", "no");
    for place in [0, 2] {
        let id = &batch.events[place].event;
        settlement.deliveries.push(DeliveryChange::dead(id, 3, failure.clone()));
    }
    let id = &batch.events[3].event;
    settlement.deliveries.push(DeliveryChange::retrying(id, 1, LONG, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    store.release(lease).await.expect("release");
    let states = async || -> Vec<(State, u32)> {
        let query = StateQuery { subscription: Some("s".into()), ..StateQuery::default() };
        let states = store.states(&query).await.expect("states");
        states.iter().map(|state| (state.state, state.attempts)).collect()
    };
    assert_eq!(replay_from(&*operator, events[2]).await.expect("replay").events, 3);
    let pending = (State::Pending, 0);
    assert_eq!(states().await, [(State::Dead, 3), (State::Done, 1), pending, pending, pending]);
    assert_eq!(ids(&drain(&*store, "s").await), events[2..]);
    let done = (State::Done, 1);
    assert_eq!(states().await, [(State::Dead, 3), done, done, done, done]);
}

/// What was discarded comes again, too, when its subscription is replayed from before it.
pub async fn what_was_discarded_comes_with_a_replay(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let event = commit_one(&*log, "a").await;
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("refused", "no");
    settlement.deliveries.push(DeliveryChange::dead(&batch.events[0].event, 1, failure));
    store.settle(&mut lease, &settlement).await.expect("settle");
    store.release(lease).await.expect("release");
    let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![event] };
    assert_eq!(store.resolve_dead(&discard).await.expect("discard"), 1);
    assert!(drain(&*store, "s").await.is_empty(), "it does not come by itself");
    assert_eq!(replay_from(&*operator, event).await.expect("replay").events, 1, "and the count says so");
    assert_eq!(ids(&drain(&*store, "s").await), [event]);
}

/// A lane that has not got so far stays where it is; what was before the subscription's start stays before it.
pub async fn a_replay_skips_nothing_and_begins_at_the_start_at_the_earliest(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    let before = commit_one(&*log, "before").await;
    store.subscribe(&Subscription::new("s").start(Start::Now)).await.expect("subscribe");
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(commit_one(&*log, "a").await);
    }
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 1).await;
    settle(&*store, &mut lease, &batch).await;
    assert_eq!(replay_from(&*operator, events[3]).await.expect("replay").events, 0);
    assert_eq!(ids(&drain(&*store, "s").await), events[1..], "it had read one");
    assert_eq!(replay_from(&*operator, before).await.expect("replay").events, 4);
    assert_eq!(ids(&drain(&*store, "s").await), events);
    let since = OffsetDateTime::UNIX_EPOCH;
    assert_eq!(operator.replay(&wanted(ReplayFrom::Time(since))).await.expect("replay").events, 4);
    assert_eq!(ids(&drain(&*store, "s").await), events);
}

/// It is refused, in a sentence, where it is forbidden or can't be whole.
pub async fn a_replay_that_cannot_be_whole_is_refused(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    let refusal = async |replay: &Replay, kind: ErrorKind, says: &str| {
        for dry_run in [true, false] {
            let error = operator.replay(&Replay { dry_run, ..replay.clone() }).await.expect_err(says);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    };
    let first = commit_one(&*log, "a").await;
    let from_first = wanted(ReplayFrom::Event(first));
    refusal(&from_first, ErrorKind::NotFound, "\"s\"").await;
    store.subscribe(&Subscription::new("s").replay(false)).await.expect("subscribe");
    drain(&*store, "s").await;
    refusal(&from_first, ErrorKind::Refused, "forbids replay").await;
    subscribe(&*store, "s").await;
    assert_eq!(operator.replay(&from_first).await.expect("allowed now").events, 1);
    assert_eq!(ids(&drain(&*store, "s").await), [first]);
    refusal(&wanted(ReplayFrom::Event(Uuid::now_v7())), ErrorKind::NotFound, "no event").await;
    let held = claim(&*store, "s").await;
    store.relane("s", 2).await.expect("relane");
    refusal(&from_first, ErrorKind::Refused, "being changed").await;
    store.release(held).await.expect("release");
    change_lanes(&*store, "s", 2).await;

    // The inbox has forgotten what was handled: its effect would happen again.
    clock.advance(DAY);
    let mut writer = log.begin().await;
    assert!(writer.first_time("s", first).await.expect("mark"));
    writer.commit().await.expect("commit");
    assert_eq!(operator.replay(&from_first).await.expect("the inbox knows it").events, 1);
    assert_eq!(ids(&drain(&*store, "s").await), [first]);
    clock.advance(DAY);
    let inbox = Sweep::Inbox { older_than: DAY / 2, limit: 10 };
    assert_eq!(store.sweep(&inbox).await.expect("sweep").taken, 1);
    refusal(&from_first, ErrorKind::Refused, "forgotten").await;
    let repeat = Replay { effects_may_repeat: true, ..from_first.clone() };
    assert_eq!(operator.replay(&repeat).await.expect("it may").events, 1);
    assert_eq!(ids(&drain(&*store, "s").await), [first]);

    let [second, third] = leave_a_hole(&*log, &*store, &clock).await;
    let last = commit_one(&*log, "d").await;
    for event in [first, second, third] {
        let from = Replay { effects_may_repeat: true, ..wanted(ReplayFrom::Event(event)) };
        refusal(&from, ErrorKind::Refused, "you can replay from").await;
    }
    let time = ReplayFrom::Time(OffsetDateTime::UNIX_EPOCH);
    refusal(&Replay { effects_may_repeat: true, ..wanted(time) }, ErrorKind::Refused, "retention").await;
    drain(&*store, "s").await;
    let from = Replay { effects_may_repeat: true, ..wanted(ReplayFrom::Event(last)) };
    assert_eq!(operator.replay(&from).await.expect("from there it is whole").events, 1);
    assert_eq!(ids(&drain(&*store, "s").await), [last]);
}

/// Retention takes the first; the second is dead and stays, and so the log has a hole behind it once the third goes. Returns
/// those two.
async fn leave_a_hole(log: &dyn TestLog, store: &dyn Store, clock: &ManualClock) -> [Uuid; 2] {
    let second = commit_one(log, "b").await;
    let third = commit_one(log, "c").await;
    for _ in 0..2 {
        let mut lease = claim(store, "s").await;
        let batch = read(store, &lease, 10).await;
        let mut settlement = Settlement::of(&batch);
        for read in batch.events.iter().filter(|read| read.event.event_id == second) {
            let dead = DeliveryChange::dead(&read.event, 1, DeliveryFailure::new("x", "y"));
            settlement.deliveries.push(dead);
        }
        store.settle(&mut lease, &settlement).await.expect("settle");
    }
    clock.advance(DAY * 3);
    let archive = Sweep::Archive { older_than: DAY, limit: 10, archiving: ArchiveOptions::default() };
    assert_eq!(store.sweep(&archive).await.expect("archive").taken, 2);
    [second, third]
}

/// Retention takes nothing that is to come again, and counts anew from when it came.
pub async fn retention_waits_for_what_comes_again(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut events = Vec::new();
    for n in 0..6 {
        events.push(commit_one(&*log, &format!("a{n}")).await);
    }
    drain(&*store, "s").await;
    clock.advance(DAY * 2);
    replay_from(&*operator, events[2]).await.expect("replay");
    let prune = Sweep::Prune { older_than: DAY, limit: 10 };
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 2, "what lies before may go");
    assert_eq!(log.event_ids().await, events[2..]);
    assert_eq!(drain(&*store, "s").await.len(), 4);
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 0, "it has only just come");
    clock.advance(DAY * 2);
    assert_eq!(store.sweep(&prune).await.expect("prune").taken, 4);
}
