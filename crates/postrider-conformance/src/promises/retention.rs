//! What retention promises: it takes only what nobody needs any more.

use std::time::Duration;

use postrider_core::{
    ArchiveOptions, ArchiveTable, DeliveryChange, DeliveryFailure, EventQuery, Field, LoggedEvent, Mask,
    NewEvent, Payload, ResolveDead, Settlement, Store, Subscription, Sweep, Sweepable, Swept, Uuid,
};

use crate::harness::Harness;
use crate::relay::{
    change_lanes, claim, commit_one, drain, drain_lane, log_with_clock, read, settle, subscribe,
};

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
    let id = |n: usize| &batch.events[n].event;
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
        .resolve_dead(&ResolveDead::Discard { subscription: "s".into(), events: vec![events[0]] })
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
    let archive = Sweep::Archive { older_than: DAY * 30, limit: 10, archiving: ArchiveOptions::default() };
    assert_eq!(store.sweep(&archive).await.expect("archive"), Swept { taken: 1, more: false });
    assert_eq!((log.archived_ids().await, log.event_ids().await), (vec![event], vec![]));
    subscribe(&*store, "new").await;
    assert!(drain(&*store, "new").await.is_empty());
}

/// What retention waits for is known: the first event that a lane has not passed, also one that its subscription does not want.
pub async fn what_a_lane_has_not_passed_is_known_also_if_nobody_wants_it(harness: &dyn Harness) {
    let (log, _) = log_with_clock(harness).await;
    let store = log.store();
    let few = Subscription::new("few").types(["Never"]).lanes(2);
    store.subscribe(&few).await.expect("subscribe");
    let unread = async |name: &str| store.unread_since(name).await.expect("unread_since");
    assert_eq!(unread("few").await, None, "the log is empty");
    let event_id = Some(commit_one(&*log, "a").await);
    commit_one(&*log, "b").await;
    let first = store.events(&EventQuery { event_id, ..EventQuery::default() }).await.expect("events");
    let first = first.events[0].event.recorded_at;
    assert_eq!(unread("few").await, Some(first));
    assert_eq!(store.figures("few").await.expect("figures"), [], "it wants none of them");
    for expected in [Some(first), None] {
        let mut lease = claim(&*store, "few").await;
        drain_lane(&*store, &mut lease, 10).await;
        assert_eq!(unread("few").await, expected, "the lane that is furthest behind counts");
    }
    commit_one(&*log, "c").await;
    assert!(unread("few").await.is_some_and(|at| at >= first));
    assert_eq!(unread("nobody").await, None);
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

/// A sweep to its end, and what each of its rounds took.
async fn rounds(store: &dyn Store, sweep: &Sweep) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        let swept = store.sweep(sweep).await.expect("sweep");
        taken.push(swept.taken);
        if !swept.more {
            return taken;
        }
        assert!(taken.len() < 1000, "it does not end");
    }
}

/// What was passed over in one sweep because it was open is found by the next one.
pub async fn what_one_sweep_passed_over_the_next_one_takes(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let dead = commit_one(&*log, "dead").await;
    for _ in 0..25 {
        commit_one(&*log, "a").await;
    }
    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 100).await;
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.push(DeliveryChange::dead(
        &batch.events[0].event,
        1,
        DeliveryFailure::new("x", "y"),
    ));
    store.settle(&mut lease, &settlement).await.expect("settle");
    clock.advance(DAY);
    let prune = Sweep::Prune { older_than: DAY, limit: 10 };
    assert_eq!(store.sweep(&prune).await.expect("prune"), Swept { taken: 10, more: true });
    store
        .resolve_dead(&ResolveDead::Discard { subscription: "s".into(), events: vec![dead] })
        .await
        .expect("discard");
    let first: u64 = rounds(&*store, &prune).await.iter().sum();
    let second: u64 = rounds(&*store, &prune).await.iter().sum();
    assert_eq!(
        (first + second, first >= 15),
        (16, true),
        "a sweep that is past it leaves it to the next one"
    );
    assert!(log.event_ids().await.is_empty());
}

/// L13, L14: the archive is kept and dropped by months: one goes when everything in it is old enough.
pub async fn the_archive_loses_whole_months_only(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    let now = clock.now();
    for _ in 0..25 {
        commit_one(&*log, "a").await;
    }
    drain(&*store, "s").await;
    clock.advance(DAY);
    let archive = Sweep::Archive { older_than: DAY, limit: 10, archiving: ArchiveOptions::default() };
    assert_eq!(rounds(&*store, &archive).await, [10, 10, 5]);
    let years = DAY * 365 * 5;
    let old = Sweep::Archived { older_than: years, limit: 10 };
    // They are five years old, and so is their month, but others of that month may be younger.
    clock.set(now + years);
    assert_eq!(operator.sweepable(&old).await.expect("count"), Sweepable { rows: 0, counted: true });
    assert_eq!(store.sweep(&old).await.expect("sweep"), Swept::default());
    assert_eq!(log.archived_ids().await.len(), 25);
    clock.advance(DAY * 32);
    assert_eq!(operator.sweepable(&old).await.expect("count"), Sweepable { rows: 25, counted: true });
    assert_eq!(rounds(&*store, &old).await.iter().sum::<u64>(), 25);
    assert!(log.archived_ids().await.is_empty());
    assert_eq!(store.sweep(&old).await.expect("sweep"), Swept::default());
    let event = commit_one(&*log, "a").await;
    drain(&*store, "s").await;
    clock.advance(DAY);
    assert_eq!(rounds(&*store, &archive).await, [1], "a month that was dropped is made again");
    assert_eq!(log.archived_ids().await, [event]);
}

async fn archived(operator: &dyn Store, event_id: Uuid) -> LoggedEvent {
    let query = EventQuery { event_id: Some(event_id), ..EventQuery::default() };
    let found = operator.events(&query).await.expect("events").events.pop().expect("it is there");
    assert!(found.archived);
    found
}

/// U17: what is masked does not get into the archive, and nothing else of an event changes.
pub async fn what_is_masked_stays_out_of_the_archive(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    // Large and hard to compress, so that databases keep it beside the row.
    let noise: String = (0..2000).map(|_| Uuid::new_v4().simple().to_string()).collect();
    let text = format!(
        "{{ \"email\":\"ada@example.org\",  \"sum\": 1.50, \"noise\":\"{noise}\", \"card\":{{\"number\":4111,\"name\":\"Ada\"}}}}"
    );
    let masked = text.replace("\"ada@example.org\"", "\"***\"").replace(":4111,", ":\"***\",");
    let mut json =
        NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("JSON").ordered_by("account-7");
    json.payload = Payload::json_text(text).expect("JSON");
    json.headers.set("source", "shop");
    let mut bytes = NewEvent::of("orders", "OrderPaid", "Order", "8", &1).expect("JSON");
    bytes.payload = Payload::bytes("application/avro", b"ada@example.org".to_vec()).expect("bytes");
    let mut writer = log.begin().await;
    let (json, bytes) =
        (writer.record(&json).await.expect("record"), writer.record(&bytes).await.expect("record"));
    writer.commit().await.expect("commit");
    let recorded = drain(&*store, "s").await;
    clock.advance(DAY);
    let mask = Mask::new(["email", "card.number"]).expect("a mask");
    let archive = Sweep::Archive {
        older_than: DAY,
        limit: 1,
        archiving: ArchiveOptions { mask, ..ArchiveOptions::default() },
    };
    assert_eq!(rounds(&*store, &archive).await.iter().sum::<u64>(), 2);
    assert!(log.event_ids().await.is_empty());
    let mut kept = archived(&*operator, json).await.event;
    assert!(kept.payload.as_json() == Some(&masked), "masked as asked, and nothing else");
    kept.payload = recorded[0].payload.clone();
    assert_eq!(kept, recorded[0], "everything but the payload is as it was");
    let kept = archived(&*operator, bytes).await.event;
    assert_eq!((kept.payload.as_bytes(), kept.payload.content_type()), (&b""[..], "application/avro"));
    assert_eq!(
        kept.headers.get(Mask::HEADER),
        Some("payload"),
        "what can't be looked into is not kept in the clear"
    );
}

/// A dry run says what a sweep takes, and takes nothing.
pub async fn a_count_says_what_a_sweep_would_take(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    let prune = Sweep::Prune { older_than: DAY, limit: 2 };
    let none = Sweepable { rows: 0, counted: true };
    assert_eq!(operator.sweepable(&prune).await.expect("count"), none, "there is no subscription");
    subscribe(&*store, "s").await;
    for _ in 0..5 {
        commit_one(&*log, "a").await;
    }
    drain(&*store, "s").await;
    commit_one(&*log, "unread").await;
    assert_eq!(operator.sweepable(&prune).await.expect("count"), none, "they are too young");
    clock.advance(DAY);
    assert_eq!(operator.sweepable(&prune).await.expect("count"), Sweepable { rows: 5, counted: true });
    let inbox = Sweep::Inbox { older_than: DAY, limit: 2 };
    assert_eq!(operator.sweepable(&inbox).await.expect("count"), none);
    assert_eq!(log.event_ids().await.len(), 6, "counting takes nothing");
    assert_eq!(rounds(&*store, &prune).await, [2, 2, 1]);
}

/// A table that is not there is found out before anything is moved into it.
pub async fn a_target_that_is_not_there_is_refused(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let (store, operator) = (log.store(), log.store());
    subscribe(&*store, "s").await;
    commit_one(&*log, "a").await;
    drain(&*store, "s").await;
    clock.advance(DAY);
    let target = ArchiveTable::new("no_such_table", [("id".to_owned(), Field::EventId)]).expect("a target");
    let archiving = ArchiveOptions { target: Some(target), ..ArchiveOptions::default() };
    let error = operator.check_archive(&archiving).await.expect_err("it is not there");
    assert!(error.message().contains("no_such_table"), "{error}");
    store
        .sweep(&Sweep::Archive { older_than: DAY, limit: 10, archiving })
        .await
        .expect_err("it is not there");
    assert_eq!(log.event_ids().await.len(), 1, "nothing is taken that can't be put anywhere");
    operator.check_archive(&ArchiveOptions::default()).await.expect("the archive is there");
}
