//! What the bell promises: no event waits for the poll, and publishers ring only when somebody sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider_core::{Bell, Lease, Store, Uuid};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::crew::Crew;
use crate::harness::Harness;
use crate::relay::{claim, commit_one, event, log, read, settle, subscribe};

/// The poll is only the net: a bell that is missed shows as a wait of this length.
const POLL: Duration = Duration::from_secs(60);
/// How late an event may be.
const LATEST: Duration = Duration::from_secs(1);

/// A reader that sleeps on the bell and tells when it saw which event.
struct Sleeper {
    seen: mpsc::UnboundedReceiver<(Uuid, Instant)>,
    waits: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sleeper {
    async fn start(store: Arc<dyn Store>, subscription: &str) -> Self {
        subscribe(&*store, subscription).await;
        let lease = claim(&*store, subscription).await;
        let bell = store.bell();
        let (tell, seen) = mpsc::unbounded_channel();
        let (told, waits) = mpsc::unbounded_channel();
        let task = tokio::spawn(follow(store, lease, bell, tell, told));
        Self { seen, waits, task }
    }

    /// The next event, and how long after `since` it came.
    async fn next(&mut self, since: Instant) -> (Uuid, Duration) {
        let seen = tokio::time::timeout(LATEST * 5, self.seen.recv()).await;
        let (id, at) = seen.expect("an event must be seen long before the poll").expect("the reader runs");
        (id, at.saturating_duration_since(since))
    }

    /// Lets it look in vain `times` times, so that it is as deep asleep as it gets or on its way there.
    async fn settle_down(&mut self, times: usize) {
        while self.waits.try_recv().is_ok() {}
        for _ in 0..times {
            if tokio::time::timeout(Duration::from_millis(80), self.waits.recv()).await.is_err() {
                return;
            }
        }
    }
}

async fn follow(
    store: Arc<dyn Store>,
    mut lease: Lease,
    mut bell: Box<dyn Bell>,
    tell: mpsc::UnboundedSender<(Uuid, Instant)>,
    told: mpsc::UnboundedSender<()>,
) {
    loop {
        let batch = read(&*store, &lease, 100).await;
        if batch.is_idle() {
            let _ = told.send(());
            bell.wait(POLL).await.expect("wait");
        } else {
            bell.worked();
            let now = Instant::now();
            settle(&*store, &mut lease, &batch).await;
            for read in batch.events {
                let _ = tell.send((read.event.event_id, now));
            }
        }
    }
}

/// 500 single events to a reader that falls asleep in between, at every depth of sleep; 5,000 in a soak run.
pub async fn the_bell_is_never_missed(harness: &dyn Harness) {
    let log = log(harness).await;
    let mut sleeper = Sleeper::start(log.store(), "s").await;
    let rounds = if std::env::var_os("POSTRIDER_SOAK").is_some() { 5_000 } else { 500 };
    for round in 0..rounds {
        sleeper.settle_down(round % 16).await;
        let id = commit_one(&*log, "a").await;
        let (seen, after) = sleeper.next(Instant::now()).await;
        assert_eq!(seen, id);
        assert!(after < LATEST, "event {round} came after {after:?}");
    }
}

/// One event wakes everybody who sleeps; nobody silences another's bell.
pub async fn two_sleepers_are_both_woken(harness: &dyn Harness) {
    let log = log(harness).await;
    let mut one = Sleeper::start(log.store(), "one").await;
    let mut two = Sleeper::start(log.second_store().await, "two").await;
    for round in 0..60 {
        one.settle_down(round % 13).await;
        two.settle_down(round % 7).await;
        let id = commit_one(&*log, "a").await;
        let since = Instant::now();
        for sleeper in [&mut one, &mut two] {
            let (seen, after) = sleeper.next(since).await;
            assert!(seen == id && after < LATEST, "event {round} came after {after:?}");
        }
    }
}

/// Who recorded before the reader fell asleep and commits afterwards is found, too.
pub async fn a_late_commit_rings_or_is_found(harness: &dyn Harness) {
    let log = log(harness).await;
    let mut sleeper = Sleeper::start(log.store(), "s").await;
    for round in 0..40 {
        sleeper.settle_down(round % 11).await;
        let mut writer = log.begin().await;
        let id = writer.record(&event("late", 1)).await.expect("record");
        // It falls asleep while the transaction is open.
        sleeper.settle_down(3 + round % 9).await;
        let since = Instant::now();
        writer.commit().await.expect("commit");
        let (seen, after) = sleeper.next(since).await;
        assert!(seen == id && after < LATEST, "event {round} came after {after:?}");
    }
}

/// A wait may be dropped halfway: what it had to look out for is not forgotten.
pub async fn a_wait_that_is_dropped_forgets_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut lease = claim(&*store, "s").await;
    let mut bell = store.bell();
    for round in 0..5 {
        let mut writer = log.begin().await;
        let id = writer.record(&event("late", 1)).await.expect("record");
        // Deep asleep but for the transaction that could not know, and then dropped again and again.
        for _ in 0..40 {
            assert!(read(&*store, &lease, 10).await.is_idle());
            let _ = tokio::time::timeout(Duration::from_millis(20), bell.wait(POLL)).await;
        }
        let since = Instant::now();
        writer.commit().await.expect("commit");
        let batch = loop {
            bell.wait(POLL).await.expect("wait");
            let batch = read(&*store, &lease, 10).await;
            if !batch.is_idle() {
                break batch;
            }
        };
        assert_eq!(batch.events[0].event.event_id, id);
        assert!(since.elapsed() < LATEST, "event {round} came after {:?}", since.elapsed());
        bell.worked();
        settle(&*store, &mut lease, &batch).await;
    }
}

/// An insert that began when nobody slept and writes its row when somebody does rings.
pub async fn a_slow_insert_rings(harness: &dyn Harness) {
    let log = log(harness).await;
    let mut sleeper = Sleeper::start(log.store(), "s").await;
    for round in 0..3 {
        commit_one(&*log, "a").await;
        sleeper.next(Instant::now()).await;
        // The reader is awake, and falls asleep while the statement runs.
        let mut writer = log.begin().await;
        writer.record_slowly("slow", LATEST).await.expect("record");
        writer.commit().await.expect("commit");
        let (_, after) = sleeper.next(Instant::now()).await;
        assert!(after < LATEST, "event {round} came after {after:?}");
    }
}

/// A relay that is faster than its publishers does not arm the bell between any two commits.
pub async fn a_fast_relay_does_not_make_every_commit_ring(harness: &dyn Harness) {
    let log = log(harness).await;
    let before = log.rings().await.expect("a store that counts rings");
    let sleeper = Sleeper::start(log.store(), "s").await;
    let crew = Crew::new(&log);
    let committed = crew.write(16, 60, 200).await;
    let rung = log.rings().await.expect("a store that counts rings") - before;
    let transactions = committed.len() as u64 / 3;
    assert!(rung * 10 <= transactions.max(100), "{rung} rings for some {transactions} transactions");
    drop(sleeper);
}
