//! What `read` promises to a reader of a quiet log.

use postrider_core::{ErrorKind, NewEvent, OffsetDateTime, Start, Subscription};

use crate::harness::Harness;
use crate::relay::{LONG, claim, commit_one, drain, drain_lane, event, ids, log, read, settle, subscribe};

async fn commit(log: &dyn crate::harness::TestLog, stream: &str, event_type: &str) -> postrider_core::Uuid {
    let mut writer = log.begin().await;
    let event = NewEvent::of(stream, event_type, "A", "1", &1).expect("JSON");
    let id = writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    id
}

/// The limit counts rows scanned, so that a subscription that wants little still moves on.
pub async fn a_narrow_filter_still_advances(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").types(["Rare"])).await.expect("subscribe");
    for _ in 0..95 {
        commit(&*log, "x", "Common").await;
    }
    let rare = commit(&*log, "x", "Rare").await;
    let mut lease = claim(&*store, "s").await;
    let mut reads = 0;
    let found = loop {
        let batch = read(&*store, &lease, 10).await;
        assert!(!batch.is_idle() && batch.scanned <= 10, "after {reads} reads of {} rows", batch.scanned);
        settle(&*store, &mut lease, &batch).await;
        reads += 1;
        if let Some(read) = batch.events.first() {
            break read.event.event_id;
        }
    };
    assert_eq!((found, reads), (rare, 10));
    assert!(read(&*store, &lease, 10).await.is_idle());
}

/// E1: streams and types, by name or pattern, case and all.
pub async fn a_filter_wants_streams_and_types(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    let subscription = Subscription::new("s").streams(["trade.*", "50%"]).types(["Order*", "a_b"]);
    store.subscribe(&subscription).await.expect("subscribe");
    let mut wanted = Vec::new();
    for stream in ["trade.command", "trade", "Trade.command", "50%", "500", "other"] {
        for event_type in ["OrderPlaced", "orderPlaced", "Order", "a_b", "aXb"] {
            let id = commit(&*log, stream, event_type).await;
            if ["trade.command", "50%"].contains(&stream)
                && ["OrderPlaced", "Order", "a_b"].contains(&event_type)
            {
                wanted.push(id);
            }
        }
    }
    assert_eq!(ids(&drain(&*store, "s").await), wanted);
}

/// A new subscription gets what is in the log.
pub async fn a_subscription_starts_at_the_beginning(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    let before = commit_one(&*log, "a").await;
    subscribe(&*store, "s").await;
    let after = commit_one(&*log, "a").await;
    assert_eq!(ids(&drain(&*store, "s").await), [before, after]);
}

/// A new subscription gets what is committed from now on, and keeps its place when asked for again.
pub async fn a_subscription_starts_now(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    commit_one(&*log, "a").await;
    let subscription = Subscription::new("s").start(Start::Now);
    store.subscribe(&subscription).await.expect("subscribe");
    let after = commit_one(&*log, "a").await;
    store.subscribe(&subscription).await.expect("subscribe again");
    assert_eq!(ids(&drain(&*store, "s").await), [after]);
}

/// A new subscription gets what was recorded at a time or later.
pub async fn a_subscription_starts_at_a_time(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    let recorded = async |aggregate| {
        commit_one(&*log, aggregate).await;
        subscribe(&*store, "probe").await;
        drain(&*store, "probe").await.remove(0)
    };
    recorded("a").await;
    let second = recorded("b").await;
    let third = recorded("c").await;
    let subscription = Subscription::new("s").start(Start::At(second.recorded_at));
    store.subscribe(&subscription).await.expect("subscribe");
    let got = ids(&drain(&*store, "s").await);
    assert!(
        got.ends_with(&[second.event_id, third.event_id]) || got == [second.event_id, third.event_id],
        "{got:?}"
    );
    assert_eq!(got.len(), 2);
    let future = OffsetDateTime::now_utc() + LONG;
    store.subscribe(&Subscription::new("later").start(Start::At(future))).await.expect("subscribe");
    commit_one(&*log, "d").await;
    assert!(drain(&*store, "later").await.is_empty(), "recorded before its time");
}

/// An idle read moves nothing: polling costs the database nothing.
pub async fn an_idle_read_changes_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    commit_one(&*log, "a").await;
    let mut lease = claim(&*store, "s").await;
    drain_lane(&*store, &mut lease, 10).await;
    for _ in 0..20 {
        let batch = read(&*store, &lease, 10).await;
        assert_eq!((batch.next, batch.scanned), (lease.position.clone(), 0));
    }
}

/// Batch n+1 can be read while batch n is being delivered.
pub async fn reading_ahead_follows_the_position(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut committed = Vec::new();
    for _ in 0..25 {
        committed.push(commit_one(&*log, "a").await);
    }
    let mut lease = claim(&*store, "s").await;
    let first = read(&*store, &lease, 10).await;
    let second = store.read(&lease, &first.next, 10).await.expect("read ahead");
    let third = store.read(&lease, &second.next, 10).await.expect("read further ahead");
    let mut got = Vec::new();
    for batch in [first, second, third] {
        settle(&*store, &mut lease, &batch).await;
        got.extend(batch.events.iter().map(|read| read.event.event_id));
    }
    assert_eq!(got, committed);
}

/// A savepoint that is rolled back inside a committed transaction takes its events along.
pub async fn a_savepoint_rolled_back_leaves_nothing(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut writer = log.begin().await;
    let first = writer.record(&event("a", 1)).await.expect("record");
    writer.savepoint().await;
    writer.record(&event("a", 2)).await.expect("record");
    writer.rollback_to_savepoint().await;
    let third = writer.record(&event("a", 3)).await.expect("record");
    writer.commit().await.expect("commit");
    assert_eq!(ids(&drain(&*store, "s").await), [first, third]);
}

/// Who asks for a subscription that does not exist is told so.
pub async fn an_unknown_subscription_is_named(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    let error = store.claim("nobody", "relay", LONG).await.expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("\"nobody\""), "{error}");
    assert!(store.subscribe(&Subscription::new("s").lanes(0)).await.is_err());
    assert_eq!(store.relane("nobody", 2).await.expect_err("there is none").kind(), ErrorKind::NotFound);
}
