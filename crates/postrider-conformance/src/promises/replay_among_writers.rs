//! Replays while transactions are open.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider_core::{ErrorKind, LeaseStatus, Replay, ReplayFrom, Start, Store, Subscription, Uuid};

use super::replay::wanted;
use crate::harness::{Harness, TestLog};
use crate::relay::{Dice, LONG, commit_one, drain, event, ids, log, settle, until};

/// What was owed when the replay came is still owed: what committed late before it and was not read, and what commits
/// after it, on both sides of the point.
pub async fn a_replay_forgets_no_late_event(harness: &dyn Harness) {
    let log = log(harness).await;
    let (store, operator) = (log.store(), log.store());
    for lanes in [1, 2] {
        let name = format!("s{lanes}");
        let subscription = Subscription::new(&name).lanes(lanes).start(Start::Now);
        store.subscribe(&subscription).await.expect("subscribe");
        let (mut owed, mut open, mut behind) = (log.begin().await, log.begin().await, log.begin().await);
        let owed_id = owed.record(&event("owed", 1)).await.expect("record");
        let open_id = open.record(&event("open", 1)).await.expect("record");
        let early = commit_one(&*log, "a").await;
        let point = commit_one(&*log, "a").await;
        let behind_id = behind.record(&event("behind", 1)).await.expect("record");
        let last = commit_one(&*log, "a").await;
        assert_eq!(ids(&drain(&*store, &name).await), [early, point, last]);
        owed.commit().await.expect("commit");
        let replay = Replay { subscription: name.clone(), ..wanted(ReplayFrom::Event(point)) };
        assert_eq!(operator.replay(&replay).await.expect("replay").events, 2);
        let came: HashSet<Uuid> = ids(&drain(&*store, &name).await).into_iter().collect();
        assert!(came.is_superset(&HashSet::from([owed_id, point, last])), "{lanes} lanes: {came:?}");
        assert!(!came.contains(&open_id) && !came.contains(&behind_id));
        open.commit().await.expect("commit");
        behind.commit().await.expect("commit");
        let came: HashSet<Uuid> = ids(&drain(&*store, &name).await).into_iter().collect();
        assert_eq!(came, HashSet::from([open_id, behind_id]));
        assert!(drain(&*store, &name).await.is_empty());
    }
}

/// Writers with open transactions, relays that claim and lose lanes, and replays meanwhile: everything that was committed
/// comes, everything from the last point on comes again after it, and a key's events come in order each time.
pub async fn replays_among_writers_lose_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let operator = log.store();
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(3)).await.expect("subscribe");
    let writing = Arc::new(AtomicBool::new(true));
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..8_u64 {
        let (log, writing) = (Arc::clone(&log), Arc::clone(&writing));
        writers.spawn(async move { write(&*log, number, &writing).await });
    }
    let mut relays = tokio::task::JoinSet::new();
    let (stop, settled) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    for number in 0..2 {
        let (store, stop, settled) = (log.second_store().await, Arc::clone(&stop), Arc::clone(&settled));
        relays.spawn(async move { relay(&*store, number, &stop, &settled).await });
    }
    let (point, before) = replay_from_anywhere(&*log, &*operator, &settled).await;
    writing.store(false, Ordering::Release);
    let mut committed = Vec::new();
    while let Some(written) = writers.join_next().await {
        committed.extend(written.expect("a writer"));
    }
    stop.store(true, Ordering::Release);
    while let Some(ended) = relays.join_next().await {
        ended.expect("a relay");
    }
    let mut settled = std::mem::take(&mut *settled.lock().expect("no panic"));
    settled.extend(ids(&drain(&*store, "s").await));
    let came: HashSet<Uuid> = settled.iter().copied().collect();
    let missing = committed.iter().filter(|id| !came.contains(id)).count();
    assert_eq!((missing, came.len()), (0, committed.len()), "missing, and all that came");
    let all = log.event_ids().await;
    let again: HashSet<Uuid> = settled[before..].iter().copied().collect();
    let from_there_on = all.iter().skip_while(|id| **id != point);
    let missing = from_there_on.filter(|id| !again.contains(id)).count();
    assert_eq!(missing, 0, "from the point of the last replay on");
    assert_a_quiet_log_comes_in_order(&*operator, &*store, &all).await;
}

/// Changes aggregates and records it, until it is told to stop. Returns what it committed.
async fn write(log: &dyn TestLog, number: u64, writing: &AtomicBool) -> Vec<Uuid> {
    let (mut dice, mut committed) = (Dice::new(number + 1), Vec::new());
    while writing.load(Ordering::Acquire) || committed.len() < 40 {
        let mut writer = log.begin().await;
        let aggregate = format!("w{number}-{}", dice.roll(3));
        let version = writer.change(&aggregate).await.expect("change");
        let id = writer.record(&event(&aggregate, version)).await.expect("record");
        // Some stay open for a while, past reads and replays.
        tokio::time::sleep(Duration::from_millis(dice.roll(25))).await;
        if dice.roll(8) == 0 {
            writer.rollback().await;
        } else {
            writer.commit().await.expect("commit");
            committed.push(id);
        }
    }
    committed
}

/// Replays from points all over the log, each once some more came. Returns the last one, and how many had come before it.
async fn replay_from_anywhere(
    log: &dyn TestLog,
    operator: &dyn Store,
    settled: &Mutex<Vec<Uuid>>,
) -> (Uuid, usize) {
    let mut dice = Dice::new(99);
    let mut last = None;
    for _ in 0..12 {
        let count = || settled.lock().expect("no panic").len();
        let enough = count() + 1 + usize::try_from(dice.roll(60)).expect("small");
        until("some more came", async || count() >= enough).await;
        let all = log.event_ids().await;
        let point = all[usize::try_from(dice.roll(all.len() as u64)).expect("an index")];
        let before = settled.lock().expect("no panic").len();
        operator.replay(&wanted(ReplayFrom::Event(point))).await.expect("replay");
        last = Some((point, before));
    }
    last.expect("there were replays")
}

/// Nobody writes any more: once more, from a point in the middle, and in order.
async fn assert_a_quiet_log_comes_in_order(operator: &dyn Store, store: &dyn Store, all: &[Uuid]) {
    let point = all[all.len() / 3];
    operator.replay(&wanted(ReplayFrom::Event(point))).await.expect("replay");
    let again = drain(store, "s").await;
    let came: HashSet<Uuid> = ids(&again).into_iter().collect();
    assert!(all[all.len() / 3..].iter().all(|id| came.contains(id)), "everything from the point on");
    let mut versions: HashMap<&str, i64> = HashMap::new();
    for event in &again {
        let version: i64 = event.payload.decode().expect("a version");
        assert!(versions.insert(&event.aggregate_id, version).is_none_or(|last| last < version));
    }
}

/// Claims, reads, settles; loses its lanes to replays. Within one hold of a lane, a key's events come in order.
async fn relay(store: &dyn Store, number: u32, stop: &AtomicBool, settled: &Mutex<Vec<Uuid>>) {
    let owner = format!("relay {number}");
    while !stop.load(Ordering::Acquire) {
        // A store in memory never waits; the writers must get their turn.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let Some(mut lease) = store.claim("s", &owner, LONG).await.expect("claim") else { continue };
        let mut versions: HashMap<String, i64> = HashMap::new();
        for _ in 0..10 {
            let batch = match store.read(&lease, &lease.position, 25).await {
                Ok(batch) if !batch.is_idle() => batch,
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::LeaseLost => break,
                Err(error) => panic!("{error}"),
            };
            for read in &batch.events {
                let version: i64 = read.event.payload.decode().expect("a version");
                let last = versions.insert(read.event.aggregate_id.clone(), version);
                assert!(last.is_none_or(|last| last < version), "out of order: {last:?}, then {version}");
            }
            if settle(store, &mut lease, &batch).await == LeaseStatus::Lost {
                break;
            }
            settled.lock().expect("no panic").extend(batch.events.iter().map(|read| read.event.event_id));
        }
        store.release(lease).await.expect("release");
    }
}
