//! What the inbox promises: an effect once.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Sweep, Uuid};
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::relay::{claim, commit_one, drain, log, log_with_clock, read, settle, subscribe};

/// U5, C11, T9: sixteen race to handle the same events; each event's effect happens once.
pub async fn an_effect_happens_once_under_sixteen_racers(harness: &dyn Harness) {
    let log = log(harness).await;
    let events: Arc<Vec<Uuid>> = Arc::new((0..10).map(|_| Uuid::now_v7()).collect());
    let mut racers = JoinSet::new();
    for _ in 0..16 {
        let (log, events) = (Arc::clone(&log), Arc::clone(&events));
        racers.spawn(async move {
            let mut won = 0;
            for event in events.iter() {
                let mut writer = log.begin().await;
                if writer.first_time("ledger", *event).await.expect("inbox") {
                    writer.change("effect").await.expect("change");
                    won += 1;
                }
                writer.commit().await.expect("commit");
            }
            won
        });
    }
    assert_eq!(racers.join_all().await.into_iter().sum::<i64>(), 10);
    let mut writer = log.begin().await;
    assert_eq!(writer.change("effect").await.expect("change"), 11, "ten effects and this one");
    assert!(writer.first_time("another", events[0]).await.expect("inbox"), "each consumer has its own");
    writer.commit().await.expect("commit");
}

/// The mark is part of the caller's transaction.
pub async fn a_rolled_back_effect_is_not_marked(harness: &dyn Harness) {
    let log = log(harness).await;
    let event = Uuid::now_v7();
    for commit in [false, true] {
        let mut writer = log.begin().await;
        assert!(writer.first_time("c", event).await.expect("inbox"));
        assert!(!writer.first_time("c", event).await.expect("inbox"));
        if commit { writer.commit().await.expect("commit") } else { writer.rollback().await }
    }
    let mut writer = log.begin().await;
    assert!(!writer.first_time("c", event).await.expect("inbox"));
    assert!(writer.first_time("", event).await.is_err(), "a consumer has a name");
    writer.rollback().await;
}

/// C16: pruned by age, but never before its event is settled everywhere.
pub async fn the_inbox_is_kept_until_its_event_is_settled_everywhere(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "fast").await;
    subscribe(&*store, "slow").await;
    let event = commit_one(&*log, "a").await;
    let stranger = Uuid::now_v7();
    let mut writer = log.begin().await;
    writer.first_time("c", event).await.expect("inbox");
    writer.first_time("c", stranger).await.expect("inbox");
    writer.commit().await.expect("commit");
    drain(&*store, "fast").await;
    let sweep = Sweep::Inbox { older_than: Duration::from_secs(3600), limit: 100 };
    assert_eq!(store.sweep(&sweep).await.expect("sweep").taken, 0, "too young");
    clock.advance(Duration::from_secs(3600));
    assert_eq!(
        store.sweep(&sweep).await.expect("sweep").taken,
        1,
        "only the one whose event is not in this log"
    );
    let mut lease = claim(&*store, "slow").await;
    let batch = read(&*store, &lease, 10).await;
    settle(&*store, &mut lease, &batch).await;
    assert_eq!(store.sweep(&sweep).await.expect("sweep").taken, 1);
}

/// L15: duplicates that are different events, known by a text that they share.
pub async fn a_text_key_is_marked_once_per_consumer(harness: &dyn Harness) {
    let log = log(harness).await;
    let mark = async |consumer: &str, key: &str| {
        let mut writer = log.begin().await;
        let first = writer.first_time_by_key(consumer, key).await.expect("inbox");
        writer.commit().await.expect("commit");
        first
    };
    assert!(mark("ledger", "T-1:A-1").await);
    assert!(!mark("ledger", "T-1:A-1").await, "the same key");
    for other in ["T-1:A-2", "t-1:a-1", "T-1:A-1 ", "T-1:A-1\u{301}", &"k".repeat(500)] {
        assert!(mark("ledger", other).await, "{other:?} is another key");
        assert!(!mark("ledger", other).await, "{other:?}");
    }
    assert!(mark("report", "T-1:A-1").await, "each consumer has its own");
    let id = Uuid::now_v7();
    assert!(mark("ledger", &id.to_string()).await);
    let mut writer = log.begin().await;
    assert!(writer.first_time("ledger", id).await.expect("inbox"), "the text of an id is not that id");
    for wrong in ["", &"k".repeat(501), "a\0b"] {
        let error = writer.first_time_by_key("ledger", wrong).await.expect_err("refused").to_string();
        assert!(error.contains("must have 1 to 500 bytes and no NUL character"), "{error}");
    }
    writer.commit().await.expect("the transaction goes on");
}

/// The mark is part of the caller's transaction, and of nobody else's.
pub async fn a_rolled_back_effect_frees_its_text_key(harness: &dyn Harness) {
    let log = log(harness).await;
    for commit in [false, true] {
        let mut writer = log.begin().await;
        assert!(writer.first_time_by_key("c", "T-1:A-1").await.expect("inbox"), "it is free");
        assert!(
            !writer.first_time_by_key("c", "T-1:A-1").await.expect("inbox"),
            "not twice in one transaction"
        );
        if commit { writer.commit().await.expect("commit") } else { writer.rollback().await }
    }
    let mut racers = JoinSet::new();
    for _ in 0..8 {
        let log = Arc::clone(&log);
        racers.spawn(async move {
            let mut writer = log.begin().await;
            let first = writer.first_time_by_key("c", "T-2:A-1").await.expect("inbox");
            writer.commit().await.expect("commit");
            usize::from(first)
        });
    }
    assert_eq!(racers.join_all().await.into_iter().sum::<usize>(), 1, "one of eight racers");
}
