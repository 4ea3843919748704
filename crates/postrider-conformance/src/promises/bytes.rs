//! What holds for wide events: a reader's memory is bounded by bytes, and nothing is lost or repeated for it.

use std::collections::HashSet;
use std::time::Duration;

use postrider_core::{
    ArchiveOptions, DeliveryChange, DeliveryFailure, EventRef, Lease, LeaseStatus, Mask, NewEvent, Order,
    Payload, Recorded, Relane, Settlement, Store, Subscription, Sweep, Uuid,
};

use crate::harness::{Harness, TestLog};
use crate::relay::{LONG, claim, commit_one, ids, log, log_with_clock, read, settle, subscribe};

/// A wide event, and what a reader takes at once: three of them.
const WIDE: usize = 10_000;
const BYTES: u64 = 35_000;

/// An event with so many bytes of payload.
fn wide(aggregate: &str, bytes: usize) -> NewEvent {
    NewEvent::of("orders", "OrderChanged", "Order", aggregate, &"x".repeat(bytes)).expect("text is JSON")
}

async fn commit(log: &dyn TestLog, events: &[NewEvent]) -> Vec<Uuid> {
    let mut writer = log.begin().await;
    let ids = writer.record_all(events).await.expect("record");
    writer.commit().await.expect("commit");
    ids
}

async fn claim_narrow(store: &dyn Store, subscription: &str) -> Lease {
    Lease { bytes: BYTES, ..claim(store, subscription).await }
}

fn bytes_of<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> u64 {
    events.into_iter().map(Recorded::size).sum()
}

/// Reads and settles until a lane is idle; each batch is within the bytes, and one that is cut says so.
async fn drain_by_bytes(store: &dyn Store, lease: &mut Lease, limit: u32) -> Vec<Vec<Recorded>> {
    let mut batches = Vec::new();
    loop {
        let batch = read(store, lease, limit).await;
        if batch.is_idle() {
            return batches;
        }
        let bytes = bytes_of(batch.events.iter().map(|read| &read.event));
        assert!(
            bytes <= lease.bytes || batch.events.len() == 1,
            "{} events have {bytes} bytes",
            batch.events.len()
        );
        let ids: Vec<i64> = batch.events.iter().map(|read| read.event.id).collect();
        assert!(ids.is_sorted(), "{ids:?}");
        assert_ne!(settle(store, lease, &batch).await, LeaseStatus::Lost, "nobody else holds the lane");
        let more = batch.more;
        batches.push(batch.events.into_iter().map(|read| read.event).collect());
        let next = store.read(lease, &lease.position, limit).await.expect("read");
        assert!(more || next.is_idle(), "there was more to read, and the batch did not say so");
    }
}

fn lengths(batches: &[Vec<Recorded>]) -> Vec<usize> {
    batches.iter().map(Vec::len).collect()
}

/// A read stops at its bytes as well as at its rows, counting headers and content; the next one goes on behind it.
pub async fn a_batch_is_cut_by_its_bytes_and_the_next_one_goes_on(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let events: Vec<NewEvent> = (0..10)
        .map(|n| match n % 3 {
            0 => wide("a", WIDE),
            1 => wide("a", 1).with_header("note", "x".repeat(WIDE)),
            _ => {
                let bytes = vec![7; WIDE];
                let payload = Payload::Bytes { content_type: "application/octet-stream".into(), bytes };
                NewEvent::new("orders", "OrderChanged", "Order", "a", payload)
            }
        })
        .collect();
    let committed = commit(&*log, &events).await;
    let mut lease = claim_narrow(&*store, "s").await;
    let first = read(&*store, &lease, 100).await;
    let ahead = store.read(&lease, &first.next, 100).await.expect("read ahead");
    assert_eq!((first.events.len(), ahead.events.len(), first.more, ahead.more), (3, 3, true, true));
    let batches = drain_by_bytes(&*store, &mut lease, 100).await;
    assert_eq!(lengths(&batches), [3, 3, 3, 1]);
    assert_eq!(ids(&batches.concat()), committed);
}

/// An event above the bytes is read alone: it stops no lane.
pub async fn an_event_above_the_bytes_comes_alone(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let sizes = [1, 50_000, 1, 1, 60_000, 70_000, 1];
    let committed = commit(&*log, &sizes.map(|bytes| wide("a", bytes))).await;
    let mut lease = claim_narrow(&*store, "s").await;
    let batches = drain_by_bytes(&*store, &mut lease, 100).await;
    assert_eq!(lengths(&batches), [1, 1, 2, 1, 1, 1]);
    assert_eq!(ids(&batches.concat()), committed);
}

/// Of several lanes, with a filter, each event once and in order, whatever the cuts; what is not wanted does not count.
pub async fn wide_events_respect_filters_and_lanes(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").types(["OrderChanged"]).lanes(3)).await.expect("subscribe");
    let mut wanted = Vec::new();
    for round in 0..8 {
        let unwanted = || NewEvent { event_type: "Other".into(), ..wide("a", 3 * WIDE) };
        let events: Vec<NewEvent> = (0..6).map(|n| wide(&format!("key {n}"), WIDE + round)).collect();
        commit(&*log, &[unwanted(), unwanted()]).await;
        wanted.extend(commit(&*log, &events).await);
    }
    let (mut got, mut leases) = (Vec::new(), Vec::new());
    while let Some(lease) = store.claim("s", "relay", LONG).await.expect("claim") {
        let mut lease = Lease { bytes: BYTES, ..lease };
        let events = drain_by_bytes(&*store, &mut lease, 40).await.concat();
        assert!(events.iter().all(|event| &*event.event_type == "OrderChanged"));
        got.extend(ids(&events));
        leases.push(lease);
    }
    assert_eq!(leases.len(), 3);
    got.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(got, wanted);
}

/// A change of lanes reads up to a common position: cut by bytes it loses and repeats nothing either.
pub async fn wide_events_survive_a_change_of_lanes(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    store.subscribe(&Subscription::new("s").lanes(2)).await.expect("subscribe");
    let mut committed = Vec::new();
    let mut got = Vec::new();
    for lanes in [3, 1, 2] {
        let events: Vec<NewEvent> = (0..12).map(|n| wide(&format!("key {n}"), WIDE)).collect();
        committed.extend(commit(&*log, &events).await);
        while store.relane("s", lanes).await.expect("relane") != Relane::Done {
            let mut leases = Vec::new();
            while let Some(lease) = store.claim("s", "relay", LONG).await.expect("claim") {
                let mut lease = Lease { bytes: BYTES, ..lease };
                loop {
                    let batch = read(&*store, &lease, 100).await;
                    if batch.is_idle() {
                        break;
                    }
                    assert!(batch.events.len() <= 3, "{} events", batch.events.len());
                    settle(&*store, &mut lease, &batch).await;
                    got.extend(batch.events.iter().map(|read| read.event.event_id));
                }
                leases.push(lease);
            }
            for lease in leases {
                store.release(lease).await.expect("release");
            }
        }
    }
    while let Some(lease) = store.claim("s", "relay", LONG).await.expect("claim") {
        let mut lease = Lease { bytes: BYTES, ..lease };
        got.extend(ids(&drain_by_bytes(&*store, &mut lease, 100).await.concat()));
    }
    let distinct: HashSet<Uuid> = got.iter().copied().collect();
    assert_eq!((got.len(), distinct.len()), (committed.len(), committed.len()));
}

/// What is due is taken by bytes as well: those of a key in their order, one that is above the bytes alone.
pub async fn what_is_due_is_cut_by_its_bytes_and_keys_keep_their_order(harness: &dyn Harness) {
    for order in [Order::Key, Order::Strict, Order::None] {
        let log = log(harness).await;
        let store = log.store();
        store.subscribe(&Subscription::new("s").order(order)).await.expect("subscribe");
        let sizes = [WIDE, WIDE, WIDE, WIDE, 5 * WIDE, WIDE, 1];
        let events: Vec<NewEvent> =
            sizes.iter().enumerate().map(|(n, bytes)| wide(["a", "b"][n % 2], *bytes)).collect();
        let committed = commit(&*log, &events).await;
        let mut lease = claim(&*store, "s").await;
        let batch = read(&*store, &lease, 100).await;
        let mut settlement = Settlement::of(&batch);
        for read in &batch.events {
            let event = EventRef::from(&read.event);
            let failure = DeliveryFailure::new("timeout", "the destination took too long");
            settlement.deliveries.push(DeliveryChange::retrying(event, 1, Duration::ZERO, failure));
        }
        store.settle(&mut lease, &settlement).await.expect("settle");
        lease.bytes = BYTES;
        let (mut got, mut looks) = (Vec::new(), Vec::new());
        loop {
            let due = store.due(&lease, 100).await.expect("due").deliveries;
            if due.is_empty() {
                break;
            }
            let bytes = bytes_of(due.iter().map(|due| &due.event));
            assert!(bytes <= BYTES || due.len() == 1, "{} due have {bytes} bytes", due.len());
            looks.push(due.len());
            got.extend(due.iter().map(|due| due.event.event_id));
            let mut settlement = Settlement::at(lease.position.clone());
            let delivered = due.iter().map(|due| DeliveryChange::delivered(&due.event, due.attempts + 1));
            settlement.deliveries.extend(delivered);
            store.settle(&mut lease, &settlement).await.expect("settle");
        }
        assert_eq!((looks, got), (vec![3, 1, 1, 2], committed), "{order:?}");
    }
}

/// Masked events go through the relay's memory: a round of the archive takes as many as fit, and says that there is more.
pub async fn masked_events_are_archived_by_their_bytes(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut committed = Vec::new();
    for _ in 0..6 {
        committed.extend(commit(&*log, &[wide("a", 1_000_000), wide("b", 1_000_000)]).await);
    }
    let mut lease = claim(&*store, "s").await;
    crate::relay::drain_lane(&*store, &mut lease, 100).await;
    clock.advance(Duration::from_secs(3600));
    let mask = Mask::new(["password"]).expect("a mask");
    let archiving = ArchiveOptions { mask, ..ArchiveOptions::default() };
    let sweep = Sweep::Archive { older_than: Duration::from_secs(60), limit: 100, archiving };
    let mut rounds = Vec::new();
    loop {
        let swept = store.sweep(&sweep).await.expect("sweep");
        rounds.push(swept.taken);
        if !swept.more {
            break;
        }
    }
    rounds.retain(|taken| *taken > 0);
    assert!(rounds.len() > 1 && rounds.iter().all(|taken| *taken <= 4), "{rounds:?}");
    let mut archived = log.archived_ids().await;
    archived.sort_unstable();
    committed.sort_unstable();
    assert_eq!(archived, committed);
    assert!(log.event_ids().await.is_empty());
}

/// One transaction of wide events that commits late is cut by bytes, keeps its place, and hides nothing; none comes twice.
pub async fn wide_late_events_are_cut_by_their_bytes_none_lost_or_twice(harness: &dyn Harness) {
    for filtered in [false, true] {
        let log = log(harness).await;
        let store = log.store();
        let subscription = Subscription::new("s");
        let subscription = if filtered { subscription.types(["Order*"]) } else { subscription };
        store.subscribe(&subscription).await.expect("subscribe");
        let mut lease = claim_narrow(&*store, "s").await;
        let (mut bulk, mut other) = (log.begin().await, log.begin().await);
        let mut late: HashSet<Uuid> = HashSet::new();
        let mut all: Vec<Uuid> = Vec::new();
        for n in 0..20 {
            all.push(bulk.record(&wide("bulk", WIDE + n)).await.expect("record"));
            if n % 5 == 0 {
                all.push(other.record(&wide("other", WIDE)).await.expect("record"));
            }
        }
        late.extend(&all);
        let prompt = commit(&*log, &[wide("prompt", WIDE), wide("prompt", WIDE)]).await;
        let before = drain_by_bytes(&*store, &mut lease, 8).await.concat();
        assert_eq!(ids(&before), prompt);
        bulk.commit().await.expect("commit");
        // Fresh ones behind the late ones, and more late ones while those are being read.
        all.extend(commit(&*log, &[wide("fresh", WIDE), wide("fresh", 4 * WIDE), wide("fresh", 1)]).await);
        let mut other = Some(other);
        let mut got = Vec::new();
        loop {
            let batch = read(&*store, &lease, 8).await;
            if batch.is_idle() {
                break;
            }
            let bytes = bytes_of(batch.events.iter().map(|read| &read.event));
            assert!(
                bytes <= BYTES || batch.events.len() == 1,
                "{} events, {bytes} bytes",
                batch.events.len()
            );
            for read in &batch.events {
                assert_eq!(read.late, late.contains(&read.event.event_id));
            }
            got.extend(batch.events.iter().map(|read| read.event.event_id));
            settle(&*store, &mut lease, &batch).await;
            if let Some(other) = other.take_if(|_| got.len() > 4) {
                other.commit().await.expect("commit");
                all.push(commit_one(&*log, "fresh").await);
            }
        }
        assert_eq!(got.len(), all.len(), "filtered: {filtered}");
        let order = |of: &[Uuid]| of.iter().copied().filter(|id| late.contains(id)).collect::<Vec<_>>();
        assert_eq!(order(&got).len(), late.len());
        got.sort_unstable();
        all.sort_unstable();
        assert_eq!(got, all);
    }
}

/// Headers are counted as payloads are: many large ones are no statement that is too large for the database.
pub async fn headers_count_when_many_events_are_recorded_at_once(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let note = "x".repeat(60_000);
    let events: Vec<NewEvent> = (0..400).map(|_| wide("a", 1).with_header("note", &note)).collect();
    let committed = commit(&*log, &events).await;
    let mut lease = claim(&*store, "s").await;
    let batches = drain_by_bytes(&*store, &mut lease, 1000).await;
    assert_eq!(ids(&batches.concat()), committed);
}
