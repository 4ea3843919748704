//! A replica that is promoted, and a database that is set back, at the same address: what a relay remembers of a history that the
//! server does not have moves no lane and is written to no event.

mod support;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use postrider_conformance::TestLog;
use postrider_core::{
    Batch, Clock, DeliveryChange, DeliveryFailure, ErrorKind, EventLog, Inspect, Lease, LeaseStatus,
    NewEvent, OffsetDateTime, Operate, Result, Settlement, Severity, Subscription, Uuid,
};
use postrider_mysql::{MySqlStore, Outbox};
use support::copied::Copied;
use support::switch::Pair;
use support::{My, MyLog, until_within};

const LEASE: Duration = Duration::from_secs(300);

async fn record(log: &MyLog, event_type: &str, key: &str) -> Uuid {
    let event = NewEvent::of("orders", event_type, "Order", key, &1).expect("JSON");
    let mut writer = log.begin().await;
    writer.record(&event).await.expect("record");
    writer.commit().await.expect("commit");
    event.event_id
}

async fn record_some(log: &MyLog, event_type: &str, many: usize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for n in 0..many {
        ids.push(record(log, event_type, &format!("K{}", n % 4)).await);
    }
    ids
}

/// Asks again while connections that the failover cut are found out.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match ask().await {
            Err(error) if error.kind() == ErrorKind::Unreachable && Instant::now() < end => {}
            answer => return answer,
        }
    }
}

async fn settle(store: &MySqlStore, lease: &mut Lease, settlement: &Settlement) -> LeaseStatus {
    again(async || store.settle(lease, settlement).await).await.expect("settle")
}

async fn claim(store: &MySqlStore) -> Lease {
    store.claim("s", "relay", LEASE).await.expect("claim").expect("a lane")
}

async fn claim_all(store: &MySqlStore, lanes: u32) -> Vec<Lease> {
    let mut leases = Vec::new();
    for _ in 0..lanes {
        leases.push(claim(store).await);
    }
    leases
}

/// Reads all that is left of a lane, and settles it.
async fn drain(store: &MySqlStore, lease: &mut Lease) -> Vec<(Uuid, String)> {
    let mut events = Vec::new();
    loop {
        let batch = store.read(lease, &lease.position, 3).await.expect("read");
        if batch.is_idle() {
            return events;
        }
        let status = settle(store, lease, &Settlement::of(&batch)).await;
        assert_ne!(
            status,
            LeaseStatus::Lost,
            "nobody else has the lane, and the log is the one that was read"
        );
        events.extend(batch.events.iter().map(|read| (read.event.event_id, read.event.key().into_owned())));
    }
}

/// All events came, each once, and those of a key in the order in which they were recorded.
fn assert_all_in_order(came: &[(Uuid, String)], recorded: &[Uuid]) {
    let place: HashMap<Uuid, usize> = recorded.iter().enumerate().map(|(place, id)| (*id, place)).collect();
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (event, key) in came {
        let place = *place.get(event).expect("an event that was recorded here");
        assert!(last.insert(key, place).is_none_or(|before| before < place), "order of {key}: {came:?}");
    }
    assert_eq!(came.len(), recorded.len(), "of {recorded:?} came {came:?}");
}

/// The batch in hand covers what the promoted replica never had: none of what is recorded there is passed over.
async fn a_batch_of_the_old_primary(subscription: Subscription) {
    let lanes = subscription.lanes;
    let mut pair = Pair::start().await;
    let log = My::default().log_on(pair.options(), Clock::Database).await;
    let store = log.patched();
    store.subscribe(&subscription).await.expect("subscribe");
    record_some(&log, "Wanted", 8).await;
    let mut leases = claim_all(&store, lanes).await;
    for lease in &mut leases {
        drain(&store, lease).await;
    }
    let mut shared = record_some(&log, "Wanted", 4).await;
    pair.cut().await;
    record_some(&log, "Vanished", 5).await;
    let mut batches: Vec<Batch> = Vec::new();
    for lease in &leases {
        batches.push(store.read(lease, &lease.position, 100).await.expect("read"));
    }
    pair.promote().await;
    shared.extend(record_some(&log, "Wanted", 10).await);
    for (lease, batch) in leases.iter_mut().zip(&batches) {
        let status = settle(&store, lease, &Settlement::of(batch)).await;
        assert_eq!(status, LeaseStatus::Lost, "it covers what this server never had");
    }
    let mut came = Vec::new();
    for lease in leases {
        store.release(lease).await.expect("release");
    }
    for mut lease in claim_all(&store, lanes).await {
        came.extend(drain(&store, &mut lease).await);
    }
    assert_all_in_order(&came, &shared);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_a_promoted_replica_never_had_moves_no_lane() {
    a_batch_of_the_old_primary(Subscription::new("s")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filtered_batch_that_a_promoted_replica_never_had_moves_no_lane() {
    a_batch_of_the_old_primary(Subscription::new("s").types(["Wanted"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_laned_batch_that_a_promoted_replica_never_had_moves_no_lane() {
    a_batch_of_the_old_primary(Subscription::new("s").lanes(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_had_everything_takes_over_without_a_repetition() {
    let mut pair = Pair::start().await;
    let log = My::default().log_on(pair.options(), Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s").types(["Wanted"])).await.expect("subscribe");
    record_some(&log, "Wanted", 4).await;
    record_some(&log, "Other", 2).await;
    let mut lease = claim(&store).await;
    let batch = store.read(&lease, &lease.position, 100).await.expect("read");
    pair.cut().await;
    pair.promote().await;
    let new = record_some(&log, "Wanted", 3).await;
    let status = settle(&store, &mut lease, &Settlement::of(&batch)).await;
    assert_eq!(status, LeaseStatus::Held, "all of it is here");
    assert_all_in_order(&drain(&store, &mut lease).await, &new);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_ahead_of_a_promotion_is_not_settled_after_it() {
    let mut pair = Pair::start().await;
    let log = My::default().log_on(pair.options(), Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    record_some(&log, "Wanted", 2).await;
    let mut lease = claim(&store).await;
    let first = store.read(&lease, &lease.position, 2).await.expect("read");
    pair.cut().await;
    record_some(&log, "Vanished", 5).await;
    let ahead = store.read(&lease, &first.next, 5).await.expect("read ahead");
    assert_eq!(ahead.events.len(), 5);
    pair.promote().await;
    let new = record_some(&log, "Wanted", 9).await;
    let status = settle(&store, &mut lease, &Settlement::of(&first)).await;
    assert_eq!(status, LeaseStatus::Held, "the first batch is of both servers");
    assert_eq!(lease.position, ahead.from, "so the engine would go on with what it read ahead");
    let status = settle(&store, &mut lease, &Settlement::of(&ahead)).await;
    assert_eq!(status, LeaseStatus::Lost, "what was read ahead is not");
    store.release(lease).await.expect("release");
    assert_all_in_order(&drain(&store, &mut claim(&store).await).await, &new);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_of_a_vanished_event_is_written_to_nobody() {
    let mut pair = Pair::start().await;
    let log = My::default().log_on(pair.options(), Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    record_some(&log, "Wanted", 2).await;
    let mut lease = claim(&store).await;
    drain(&store, &mut lease).await;
    pair.cut().await;
    let vanished = record(&log, "Vanished", "K").await;
    let batch = store.read(&lease, &lease.position, 5).await.expect("read");
    let mut settlement = Settlement::of(&batch);
    let failure = DeliveryFailure::new("down", "not now");
    let event = &batch.events[0].event;
    settlement.deliveries.push(DeliveryChange::retrying(event, 1, Duration::ZERO, failure.clone()));
    settle(&store, &mut lease, &settlement).await;
    let due = store.due(&lease, 10).await.expect("due");
    assert_eq!(due.deliveries.iter().map(|due| due.event.event_id).collect::<Vec<_>>(), [vanished]);
    pair.promote().await;
    let stranger = record(&log, "Wanted", "K").await;

    let error = again(async || store.due(&lease, 10).await).await.expect_err("the lane stands elsewhere");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let error = again(async || store.read(&lease, &lease.position, 10).await)
        .await
        .expect_err("the lane stands elsewhere");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let mut dead = Settlement::at(lease.position.clone());
    dead.deliveries.push(DeliveryChange::dead(event, 2, failure.clone()));
    assert_eq!(settle(&store, &mut lease, &dead).await, LeaseStatus::Lost);

    // Also where the lane happens to stand where it stood: the stranger has the number of the one that vanished.
    store.release(lease).await.expect("release");
    let mut lease = claim(&store).await;
    assert_eq!(drain(&store, &mut lease).await, [(stranger, "Order:K".to_owned())]);
    let mut dead = Settlement::at(lease.position.clone());
    dead.deliveries.push(DeliveryChange::dead(event, 2, failure));
    assert_eq!(settle(&store, &mut lease, &dead).await, LeaseStatus::Lost);
    assert_eq!(log.count("postrider_delivery").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_a_database_that_was_set_back_moves_no_lane() {
    for subscription in
        [Subscription::new("s"), Subscription::new("s").types(["Wanted"]), Subscription::new("s").lanes(2)]
    {
        let lanes = subscription.lanes;
        let copied = Copied::start().await;
        let log = &copied.log;
        let store = log.patched();
        store.subscribe(&subscription).await.expect("subscribe");
        record_some(log, "Wanted", 4).await;
        let mut leases = claim_all(&store, lanes).await;
        for lease in &mut leases {
            drain(&store, lease).await;
        }
        let mut kept = record_some(log, "Wanted", 2).await;
        let dump = copied.dump(&["--routines"]);
        record_some(log, "Vanished", 5).await;
        let mut batches = Vec::new();
        for lease in &leases {
            batches.push(store.read(lease, &lease.position, 100).await.expect("read"));
        }
        copied.restore(log.database(), &dump);
        kept.extend(record_some(log, "Wanted", 10).await);
        for (lease, batch) in leases.iter_mut().zip(&batches) {
            let status = settle(&store, lease, &Settlement::of(batch)).await;
            assert_eq!(status, LeaseStatus::Lost, "it covers what was never here");
        }
        let mut came = Vec::new();
        for lease in leases {
            store.release(lease).await.expect("release");
        }
        for mut lease in claim_all(&store, lanes).await {
            came.extend(drain(&store, &mut lease).await);
        }
        assert_all_in_order(&came, &kept);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_that_was_set_back_with_its_database_is_lost_before_anything_is_delivered() {
    let copied = Copied::start().await;
    let log = &copied.log;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    record_some(log, "Wanted", 4).await;
    let mut lease = claim(&store).await;
    drain(&store, &mut lease).await;
    let dump = copied.dump(&["--routines"]);
    record_some(log, "Vanished", 3).await;
    drain(&store, &mut lease).await;
    let ahead = record(log, "Vanished", "K").await;
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    assert_eq!(batch.events[0].event.event_id, ahead);
    copied.restore(log.database(), &dump);
    let new = record_some(log, "Wanted", 9).await;

    let error = again(async || store.read(&lease, &lease.position, 10).await)
        .await
        .expect_err("the lane stands elsewhere");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let error = store.read(&lease, &batch.next, 10).await.expect_err("the lane stands elsewhere");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let error = again(async || store.due(&lease, 10).await).await.expect_err("the lane stands elsewhere");
    assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
    let extended = store.extend(&mut lease, LEASE, None).await.expect("extend");
    assert_eq!(extended, LeaseStatus::Lost);
    assert_eq!(settle(&store, &mut lease, &Settlement::of(&batch)).await, LeaseStatus::Lost);
    store.release(lease).await.expect("release");
    assert_all_in_order(&drain(&store, &mut claim(&store).await).await, &new);
}

/// As after a restore of some of the tables: what is recorded from now on has its place behind what was read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_ahead_of_the_log_passes_over_nothing_and_keeps_the_order() {
    let log = My::default().my_log(Clock::Database).await;
    let store = log.patched();
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    store.subscribe(&Subscription::new("other").lanes(2)).await.expect("subscribe");
    record_some(&log, "Wanted", 3).await;
    let mut lease = claim(&store).await;
    drain(&store, &mut lease).await;
    store.release(lease).await.expect("release");
    log.run("update postrider_lane set position = 100 where subscription = 's'").await;

    let checks = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
    let check = checks.iter().find(|check| check.name == "positions").expect("a check of positions");
    assert!(check.severity == Severity::Warn && check.what.contains("100"), "{check:?}");
    Outbox::connect(&log.pool).await.expect("it takes events, and loses none");

    let new = record_some(&log, "Wanted", 8).await;
    let mut lease = claim(&store).await;
    assert_all_in_order(&drain(&store, &mut lease).await, &new);
    until_within("no lane is ahead any more", Duration::from_secs(10), async || {
        let checks = store.checks(OffsetDateTime::now_utc()).await.expect("checks");
        checks.iter().any(|check| check.name == "positions" && check.severity == Severity::Good)
    })
    .await;
    // Those that were behind get everything, and lanes can be changed across the gap.
    store.relane("other", 1).await.expect("relane");
    let mut came = Vec::new();
    for _ in 0..2 {
        if let Some(mut lease) = store.claim("other", "relay", LEASE).await.expect("claim") {
            came.extend(drain(&store, &mut lease).await);
            store.release(lease).await.expect("release");
        }
    }
    store.relane("other", 1).await.expect("relane");
    assert_eq!(came.len(), 11, "{came:?}");
}
