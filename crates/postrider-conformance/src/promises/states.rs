//! What people are shown.

use std::time::Duration;

use postrider_core::{
    Batch, DeliveryChange, DeliveryFailure, ErrorKind, EventState, Figures, Lease, LeaseStatus, ManualClock,
    NewEvent, OnDead, Order, ResolveDead, Settlement, Start, State, StateQuery, Store, Subscription, Uuid,
};

use crate::harness::{Harness, TestLog};
use crate::relay::{LONG, claim, commit_one, drain, log, log_with_clock, read, subscribe};

/// E2, E3, U7: every event's state per subscription, with its details, also for what is done.
pub async fn every_state_is_shown_with_its_details(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    subscribe(&*store, "s").await;
    let mut events = Vec::new();
    for aggregate in ["done", "retrying", "waiting", "dead"] {
        events.push(commit_one(&*log, aggregate).await);
    }
    let now = Subscription::new("from now on").start(Start::Now);
    store.subscribe(&now).await.expect("subscribe");
    store.subscribe(&Subscription::new("narrow").types(["Nothing"])).await.expect("subscribe");
    let all = states(&*store, of_s()).await;
    assert_eq!(all.iter().map(|state| state.event_id).collect::<Vec<_>>(), events);
    assert!(
        all.iter()
            .all(|state| state.state == State::Pending && state.attempts == 0 && state.lease_owner.is_none())
    );

    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    assert_eq!(store.extend(&mut lease, LONG, Some(&batch.next)).await.expect("extend"), LeaseStatus::Held);
    let all = states(&*store, of_s()).await;
    assert!(
        all.iter().all(|state| state.state == State::Processing),
        "read by a holder, not settled: {all:?}"
    );
    assert!(
        all.iter()
            .all(|state| state.lease_owner.as_deref() == Some("relay")
                && state.lease_until == Some(lease.until))
    );

    settle_as_they_are_called(&*store, &mut lease, &batch).await;
    let all = states(&*store, of_s()).await;
    assert_details_as_they_are_called(&all);
    let later = commit_one(&*log, "later").await;
    assert_states_are_found(&*store, &events, &all, later).await;
}

async fn states(store: &dyn Store, query: StateQuery) -> Vec<EventState> {
    store.states(&query).await.expect("states")
}

fn of_s() -> StateQuery {
    StateQuery { subscription: Some("s".into()), ..StateQuery::default() }
}

/// Settles four events: done, to be tried again, waiting and dead.
async fn settle_as_they_are_called(store: &dyn Store, lease: &mut Lease, batch: &Batch) {
    let id = |n: usize| &batch.events[n].event;
    let failure = DeliveryFailure::new("refused", "the destination said no");
    let mut settlement = Settlement::of(batch);
    settlement.deliveries.push(DeliveryChange::retrying(
        id(1),
        1,
        Duration::from_secs(3600),
        failure.clone(),
    ));
    settlement.deliveries.push(DeliveryChange::waiting(id(2)));
    settlement.deliveries.push(DeliveryChange::dead(id(3), 1, failure));
    store.settle(lease, &settlement).await.expect("settle");
}

fn assert_details_as_they_are_called(all: &[EventState]) {
    let shown: Vec<_> = all.iter().map(|state| (state.state, state.attempts)).collect();
    assert_eq!(shown, [(State::Done, 1), (State::Retrying, 1), (State::Retrying, 0), (State::Dead, 1)]);
    assert!(all[0].delivered_at.is_some() && all[0].last_attempt_at == all[0].delivered_at);
    assert_eq!(all[0].delivered_by.as_deref(), Some("relay"));
    assert!(all[1].next_retry_at > all[1].last_attempt_at && all[1].delivered_at.is_none());
    assert_eq!(all[1].error_code.as_deref(), Some("refused"));
    assert_eq!(all[3].error_message.as_deref(), Some("the destination said no"));
    assert!(all[2].error_code.is_none() && all[2].next_retry_at.is_none());
}

/// By event, by state and page by page: these four, and one that came later.
async fn assert_states_are_found(store: &dyn Store, events: &[Uuid], all: &[EventState], later: Uuid) {
    let one = states(store, StateQuery { event_id: Some(later), ..StateQuery::default() }).await;
    let named: Vec<_> = one.iter().map(|state| (state.subscription.as_str(), state.state)).collect();
    assert_eq!(
        named,
        [("from now on", State::Pending), ("s", State::Pending)],
        "one row a subscription that wants it"
    );
    let first = states(store, StateQuery { event_id: Some(events[0]), ..StateQuery::default() }).await;
    assert_eq!(first.len(), 1, "not from now on");
    let dead = states(store, StateQuery { state: Some(State::Dead), ..StateQuery::default() }).await;
    assert_eq!((dead.len(), dead[0].event_id), (1, events[3]));
    let page = states(store, StateQuery { after: all[1].id, limit: 2, ..of_s() }).await;
    assert_eq!(page.iter().map(|state| state.event_id).collect::<Vec<_>>(), events[2..4]);
}

/// The figures of one stream; one that is left out has nothing.
async fn figures(store: &dyn Store, subscription: &str, stream: &str) -> Figures {
    let mut all = store.figures(subscription).await.expect("figures");
    assert!(all.iter().all(|figures| figures.subscription == subscription));
    all.retain(|figures| figures.stream == stream);
    assert!(all.len() <= 1, "{stream} twice: {all:?}");
    all.pop().unwrap_or_default()
}

/// Pending, processing, retrying, dead and attempts, in that order.
fn counts(figures: &Figures) -> [u64; 5] {
    [figures.pending, figures.processing, figures.retrying, figures.dead, figures.attempts]
}

/// Whoever asks while a subscription is being made is told that there is none, or all that waits for it; never that nothing does.
pub async fn a_subscription_that_is_being_made_is_unknown_or_counted_whole(harness: &dyn Harness) {
    let log = log(harness).await;
    let store = log.store();
    for aggregate in ["a", "b", "c"] {
        commit_one(&*log, aggregate).await;
    }
    for round in 0..40 {
        let name = format!("s{round}");
        let asking = async {
            loop {
                match store.figures(&name).await {
                    Ok(figures) => break figures.iter().map(Figures::undelivered).sum::<u64>(),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                }
                tokio::task::yield_now().await;
            }
        };
        let making = async {
            // Each round a little later, so that it comes between two of their statements in some.
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            store.subscribe(&Subscription::new(&name)).await.expect("subscribe");
        };
        let (counted, ()) = tokio::join!(asking, making);
        assert_eq!(counted, 3, "round {round}");
    }
}

/// How many events of each stream are where, and how old the oldest is that is not delivered.
pub async fn figures_count_what_is_where(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    let error = store.figures("nobody").await.expect_err("there is no such subscription");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("there is no subscription \"nobody\""), "{error}");

    let wanted = Subscription::new("s").lanes(3).types(["OrderChanged", "Billed"]);
    store.subscribe(&wanted).await.expect("subscribe");
    assert_eq!(counts(&figures(&*store, "s", "orders").await), [0; 5]);
    for aggregate in ["a", "b", "c", "d"] {
        commit_one(&*log, aggregate).await;
    }
    record_bills_and_noise(&*log).await;
    store.subscribe(&Subscription::new("from now on").start(Start::Now)).await.expect("subscribe");
    clock.advance(Duration::from_secs(1000));
    let orders = figures(&*store, "s", "orders").await;
    assert_eq!((counts(&orders), orders.undelivered()), ([4, 0, 0, 0, 0], 4));
    assert!((900.0..=1001.0).contains(&orders.oldest_seconds), "{} s", orders.oldest_seconds);
    assert_eq!(orders.oldest_pending_seconds, orders.oldest_seconds, "nothing is read");
    assert_eq!(counts(&figures(&*store, "s", "billing").await), [1, 0, 0, 0, 0]);
    assert_eq!(store.figures("s").await.expect("figures").len(), 2, "and nothing of what is not wanted");
    assert_eq!(counts(&figures(&*store, "from now on", "orders").await), [0; 5]);

    let mut leases = Vec::new();
    for _ in 0..3 {
        let mut lease = claim(&*store, "s").await;
        let batch = read(&*store, &lease, 100).await;
        store.extend(&mut lease, LONG, Some(&batch.next)).await.expect("extend");
        leases.push((lease, batch));
    }
    assert_eq!(counts(&figures(&*store, "s", "orders").await), [0, 4, 0, 0, 0], "read, and not settled");
    assert_eq!(counts(&figures(&*store, "s", "billing").await), [0, 1, 0, 0, 0]);
    clock.advance(LONG);
    assert_eq!(counts(&figures(&*store, "s", "orders").await), [4, 0, 0, 0, 0], "the leases have run out");

    for (mut lease, batch) in leases {
        settle_with_failures(&*store, &mut lease, &batch).await;
    }
    assert_what_failed_is_counted(&*store, &clock).await;
    assert_what_comes_later_is_counted(&*log, &*store, &clock).await;
}

/// A bill, which is wanted, and what nobody wants: in the stream of the bill, and in one of its own.
async fn record_bills_and_noise(log: &dyn TestLog) {
    let mut writer = log.begin().await;
    for (stream, event_type) in [("billing", "Billed"), ("billing", "Noise"), ("noise", "Noise")] {
        let event = NewEvent::of(stream, event_type, "Bill", "1", &1).expect("JSON");
        writer.record(&event).await.expect("record");
    }
    writer.commit().await.expect("commit");
}

/// Settles a batch: a is to be tried again, b waits, c is dead, and the others are delivered.
async fn settle_with_failures(store: &dyn Store, lease: &mut Lease, batch: &Batch) {
    let failure = DeliveryFailure::new("refused", "the destination said no");
    let mut settlement = Settlement::of(batch);
    for read in &batch.events {
        let change = match read.event.aggregate_id.as_str() {
            "a" => DeliveryChange::retrying(&read.event, 3, LONG, failure.clone()),
            "b" => DeliveryChange::waiting(&read.event),
            "c" => DeliveryChange::dead(&read.event, 5, failure.clone()),
            _ => continue,
        };
        settlement.deliveries.push(change);
    }
    assert_eq!(store.settle(lease, &settlement).await.expect("settle"), LeaseStatus::Held);
}

async fn assert_what_failed_is_counted(store: &dyn Store, clock: &ManualClock) {
    let orders = figures(store, "s", "orders").await;
    assert_eq!(counts(&orders), [0, 0, 2, 1, 3], "of the dead, the attempts don't count");
    assert!(orders.oldest_seconds >= 1200.0, "{} s", orders.oldest_seconds);
    assert_eq!(orders.oldest_pending_seconds, 0.0, "all is read; what is to be tried again is not pending");
    assert_eq!((orders.waiting, orders.due), (1, 1), "one has failed itself, the other waits for nothing");
    assert_eq!(orders.retry_in, Some(LONG.as_secs_f64()), "by the store's clock");
    clock.advance(LONG * 2);
    let orders = figures(store, "s", "orders").await;
    assert_eq!(orders.retry_in, Some(-LONG.as_secs_f64()), "it is overdue");
    let billing = figures(store, "s", "billing").await;
    assert_eq!((counts(&billing), billing.oldest_seconds), ([0; 5], 0.0), "all is delivered");
}

async fn assert_what_comes_later_is_counted(log: &dyn TestLog, store: &dyn Store, clock: &ManualClock) {
    for aggregate in ["d", "e"] {
        commit_one(log, aggregate).await;
    }
    clock.advance(Duration::from_secs(1));
    let orders = figures(store, "s", "orders").await;
    assert_eq!(counts(&orders), [2, 0, 2, 1, 3]);
    let pending = orders.oldest_pending_seconds;
    assert!(pending > 0.0 && orders.oldest_seconds >= pending, "a retry is older: {orders:?}");
    let all = store.figures_up_to("s", 1000).await.expect("figures");
    assert_eq!(all.iter().map(counts).collect::<Vec<_>>(), [[2, 0, 2, 1, 3]]);
    let hurried = &store.figures_up_to("s", 1).await.expect("figures")[0];
    assert_eq!(hurried.pending, 1, "the first one only: {hurried:?}");
    assert_eq!((hurried.retrying, hurried.dead), (2, 1), "what failed is counted whole");
    assert_eq!(counts(&figures(store, "from now on", "orders").await), [2, 0, 0, 0, 0]);
    assert_eq!(drain(store, "s").await.len(), 2);
    let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![] };
    assert_eq!(store.resolve_dead(&discard).await.expect("resolve"), 1);
    assert_eq!(counts(&figures(store, "s", "orders").await), [0, 0, 2, 0, 3]);
}

/// What waits behind a dead event is told from what waits for nothing but its turn.
pub async fn what_waits_behind_a_dead_event_is_told_from_what_is_due(harness: &dyn Harness) {
    // Of the three that wait, so many are due while there is a dead one, and afterwards.
    for (order, due_before, due_after) in [(Order::Key, 1, 2), (Order::Strict, 0, 1), (Order::None, 3, 3)] {
        let log = log(harness).await;
        let store = log.store();
        let wanted = Subscription::new("s").order(order).on_dead(OnDead::Hold);
        store.subscribe(&wanted).await.expect("subscribe");
        for aggregate in ["a", "a", "b", "b"] {
            commit_one(&*log, aggregate).await;
        }
        let mut lease = claim(&*store, "s").await;
        let batch = read(&*store, &lease, 10).await;
        let mut settlement = Settlement::of(&batch);
        for (place, read) in batch.events.iter().enumerate() {
            settlement.deliveries.push(match place {
                0 => DeliveryChange::dead(&read.event, 1, DeliveryFailure::new("refused", "it said no")),
                _ => DeliveryChange::waiting(&read.event),
            });
        }
        assert_eq!(store.settle(&mut lease, &settlement).await.expect("settle"), LeaseStatus::Held);
        let orders = figures(&*store, "s", "orders").await;
        assert_eq!((orders.waiting, orders.due, orders.dead), (3, due_before, 1), "{order}");
        let discard = ResolveDead::Discard { subscription: "s".into(), events: vec![] };
        assert_eq!(store.resolve_dead(&discard).await.expect("resolve"), 1);
        let orders = figures(&*store, "s", "orders").await;
        assert_eq!((orders.waiting, orders.due, orders.dead), (3, due_after, 0), "{order}");
    }
}

/// L9: how many events were recorded longer ago than that and are not delivered: not read, read, and to be tried again.
pub async fn those_undelivered_for_long_are_counted(harness: &dyn Harness) {
    let (log, clock) = log_with_clock(harness).await;
    let store = log.store();
    let error =
        store.undelivered_over("nobody", Duration::ZERO).await.expect_err("there is no such subscription");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    store.subscribe(&Subscription::new("s").types(["OrderChanged"])).await.expect("subscribe");
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let over = async |age: u64| store.undelivered_over("s", minutes(age)).await.expect("counted");
    for aggregate in ["a", "b", "c", "d", "e"] {
        commit_one(&*log, aggregate).await;
    }
    let mut writer = log.begin().await;
    writer.record(&NewEvent::of("noise", "Noise", "Noise", "1", &1).expect("JSON")).await.expect("record");
    writer.commit().await.expect("commit");
    // Events have the time of the database: a clock that is turned back makes the same ones young again.
    let now = clock.now();
    assert_eq!(over(5).await, 0);
    clock.set(now + minutes(6));
    assert_eq!((over(5).await, over(7).await), (5, 0), "recorded six minutes ago");
    assert_eq!(store.undelivered_over("s", Duration::MAX).await.expect("counted"), 0);

    let mut lease = claim(&*store, "s").await;
    let batch = read(&*store, &lease, 10).await;
    store.extend(&mut lease, LONG, Some(&batch.next)).await.expect("extend");
    assert_eq!(over(5).await, 5, "what is being handled is not delivered yet");
    settle_with_failures(&*store, &mut lease, &batch).await;
    assert_eq!((over(5).await, over(7).await), (2, 0), "neither the dead nor what is delivered");
}
