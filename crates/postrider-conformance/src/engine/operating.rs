//! A running relay, and an operator beside it. Called by the stores' own tests: the engine does not know operators.

use std::sync::Arc;
use std::time::Duration;

use postrider::store::{
    DeliveryChange, DeliveryFailure, EventRef, EventState, Excerpt, ManualClock, OutboxSource, Outcome,
    PastAttempt, Replay, ReplayFrom, ResolveDead, Settlement, State, Store, Subscription,
};
use postrider::testing::Destination;
use postrider::{Failure, Received, Relay, Retry, Running};
use tokio::sync::Semaphore;

use super::{OrderChanged, Seen, record, relay, until};

async fn is_held(operator: &dyn Store) -> bool {
    let all = operator.subscriptions().await.expect("subscriptions");
    all.iter().flat_map(|info| &info.lanes).any(|lane| lane.owner.is_some())
}

/// A destination that is away shows with why and since when, and no longer once it is back.
pub async fn a_destination_that_is_away_shows<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>) {
    let away = async || {
        let info = operator.subscriptions().await.expect("subscriptions").remove(0);
        info.away().map(|(reason, since)| (reason.to_owned(), since))
    };
    let shop = Destination::new();
    shop.unavailable(Some("connection refused"));
    let sink = shop.clone();
    let pause = Duration::from_millis(100);
    // A lease that is long: what shows was not said by chance when it had to be extended.
    let relay = relay(outbox).lease(Duration::from_secs(120));
    let relay = relay.subscribe("s", |s| s.sink(sink).lanes(2).longest_pause(pause));
    let running = relay.start().await.expect("started");
    for version in 0..8 {
        record(outbox, &format!("o{version}"), version).await;
    }
    until("it shows", async || away().await.is_some_and(|(reason, _)| reason == "connection refused")).await;
    let since = away().await.expect("it is away").1;
    shop.unavailable(Some("no route to host"));
    until("another reason shows", async || {
        away().await.is_some_and(|(reason, now)| reason == "no route to host" && now == since)
    })
    .await;
    shop.unavailable(None);
    until("it is back", async || away().await.is_none()).await;
    assert!(is_held(&*operator).await, "who said so says that it is back");
    until("all are delivered", async || shop.delivered().len() == 8).await;
    assert_eq!(away().await, None);
    running.stop().await.expect("stopped");
}

/// The last ten tries of a delivery that failed are on record: when, by which relay, how long each took, and what was said to it. They
/// stay when it is requeued, and nothing is on record of what simply succeeds.
pub async fn the_last_tries_show<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>, clock: ManualClock) {
    let began = clock.now();
    let shop = Destination::new();
    shop.decide(|attempt| match attempt.event.aggregate_id.as_str() {
        "fine" => Outcome::Delivered,
        _ => {
            let failure = DeliveryFailure::new("http_500", format!("try {} was refused", attempt.attempt));
            Outcome::retry(failure.answer(Excerpt::new(b"{ \"error\":\n \"Gr\xc3\xb6\xc3\x9fe\" }")))
        }
    });
    shop.slow(Duration::from_millis(20));
    let sink = shop.clone();
    let retry = Retry::fixed(Duration::from_secs(60)).jitter(0.0).max_attempts(12);
    let relay = relay(outbox).owner("relay-7").subscribe("s", |s| s.sink(sink).retry(retry));
    let running = relay.start().await.expect("started");
    let (bad, fine) = (record(outbox, "bad", 1).await, record(outbox, "fine", 1).await);
    running.delivered("s", fine, super::PATIENCE).await.expect("delivered");
    let store = Arc::clone(running.store());
    for attempt in 1..=12 {
        until("it was tried", async || super::state(&*store, "s", bad).await.attempts == attempt).await;
        clock.advance(Duration::from_secs(60));
    }
    let state = super::state(&*store, "s", bad).await;
    assert_eq!(state.state, State::Dead);
    let number = |state: &EventState| EventRef { id: state.id, event_id: state.event_id };
    let fine = super::state(&*store, "s", fine).await;
    assert_eq!(operator.attempts(number(&fine)).await.expect("attempts"), []);
    let shown = async || operator.attempts(number(&state)).await.expect("attempts").remove(0);
    let tries = shown().await;
    assert_eq!((tries.subscription.as_str(), tries.attempts.len()), ("s", 10));
    for (place, tried) in tries.attempts.iter().enumerate() {
        let after = tried.at - began;
        // By the store's clock, which stood still while it was tried.
        let minutes = (after + Duration::from_secs(30)).whole_minutes();
        assert_eq!(minutes, place as i64 + 2, "{after}");
        assert_eq!((tried.relay.as_str(), tried.code.as_str()), ("relay-7", "http_500"));
        assert_eq!(tried.message, format!("try {} was refused", place + 3));
        assert_eq!(tried.answer.as_ref().map(Excerpt::as_str), Some("{ \"error\": \"Größe\" }"));
        let took = tried.took.expect("it ended");
        assert!((15..5000).contains(&took.as_millis()), "{took:?}");
    }
    shop.take_all();
    let requeue = ResolveDead::Requeue { subscription: "s".into(), events: vec![bad] };
    assert_eq!(store.resolve_dead(&requeue).await.expect("requeued"), 1);
    running.delivered("s", bad, super::PATIENCE).await.expect("delivered in the end");
    assert_eq!(shown().await, tries, "a success is no failure, and what failed stays on record");
    running.stop().await.expect("stopped");
}

/// An event that is tried alone, because a process died while it was handled, is on record as having killed this one, too, while it is
/// tried. When the process lives, what became of the try takes the place of that.
pub async fn a_try_under_suspicion_is_on_record<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>) {
    let store = outbox.open().await.expect("a store");
    store.subscribe(&Subscription::new("s")).await.expect("subscribe");
    for order in ["fine", "bad"] {
        record(outbox, order, 1).await;
    }
    let mut lease = store.claim("s", "gone", super::LEASE).await.expect("claim").expect("a lane");
    let batch = store.read(&lease, &lease.position, 10).await.expect("read");
    let refs: Vec<EventRef> = batch.events.iter().map(|read| (&read.event).into()).collect();
    let death = DeliveryFailure::new("crashed", "the process died once while it handled this event");
    let before = vec![PastAttempt::new(batch.events[0].event.recorded_at, "gone", None, &death)];
    let mut settlement = Settlement::of(&batch);
    settlement.deliveries.extend(refs.iter().map(|event| {
        let marked = DeliveryFailure::new("#crashed:1@another-process", death.message.clone());
        DeliveryChange::retrying(*event, 1, Duration::ZERO, marked).past(before.clone())
    }));
    store.settle(&mut lease, &settlement).await.expect("settle");
    store.release(lease).await.expect("release");

    let (began, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let (begins, hold) = (began.clone(), Arc::clone(&gate));
    let handler = move |event: Received<OrderChanged>| {
        let hold = Arc::clone(&hold);
        begins.note(&event);
        async move {
            hold.acquire().await.expect("open").forget();
            if event.order == "bad" { Err(Failure::reject("it is bad")) } else { Ok(()) }
        }
    };
    let relay = relay(outbox).owner("relay-7").subscribe("s", |s| s.on(handler));
    let running = relay.start().await.expect("started");
    let past = async |event: EventRef| -> Vec<(String, String, bool)> {
        let found = operator.attempts(event).await.expect("attempts").remove(0).attempts;
        found.into_iter().map(|each| (each.relay, each.code, each.took.is_some())).collect()
    };
    let entry = |relay: &str, code: &str, ended| (relay.to_owned(), code.to_owned(), ended);
    for (place, event) in refs.iter().enumerate() {
        until("it is tried", async || began.count() > place).await;
        let tried = past(*event).await;
        assert_eq!(tried, [entry("gone", "crashed", false), entry("relay-7", "crashed", false)]);
        gate.add_permits(1);
    }
    let state = async |event: EventRef| super::state(&*store, "s", event.event_id).await.state;
    until("one is delivered", async || state(refs[0]).await == State::Done).await;
    until("one is dead", async || state(refs[1]).await == State::Dead).await;
    running.stop().await.expect("stopped");
    assert_eq!(past(refs[0]).await, [entry("gone", "crashed", false)]);
    assert_eq!(past(refs[1]).await, [entry("gone", "crashed", false), entry("relay-7", "rejected", true)]);
}

/// A pause, and whatever is done during one, waits for what is running: the lane is held and extended until it has ended.
pub async fn a_pause_waits_for_what_runs<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>) {
    let (began, done) = (Seen::default(), Seen::default());
    let gate = Arc::new(Semaphore::new(0));
    let (begins, ends, hold) = (began.clone(), done.clone(), Arc::clone(&gate));
    let handler = move |event: Received<OrderChanged>| {
        let (ends, hold) = (ends.clone(), Arc::clone(&hold));
        begins.note(&event);
        async move {
            if event.order == "slow" {
                hold.acquire().await.expect("open").forget();
            }
            ends.note(&event);
        }
    };
    let relay = relay(outbox).subscribe("s", |s| s.on(handler).patience(Duration::from_millis(20)));
    let running = relay.start().await.expect("started");
    record(outbox, "slow", 1).await;
    until("it runs", async || began.count() == 1).await;
    record(outbox, "b", 1).await;
    until("the lane goes on without it", async || done.count() == 1).await;
    operator.pause("s", Some(&postrider::store::Pause::by("ada"))).await.expect("pause");
    let lease = async || {
        let info = operator.subscriptions().await.expect("subscriptions").remove(0);
        info.lanes.into_iter().next().and_then(|lane| lane.owner.and(lane.lease_until))
    };
    let before = lease().await.expect("it is held");
    until("it is extended", async || lease().await.expect("it is held while one runs") > before).await;
    record(outbox, "slow", 2).await;
    gate.add_permits(2);
    until("it is given back", async || !is_held(&*operator).await).await;
    assert_eq!((done.versions("slow"), began.count()), (vec![1], 2), "nothing was cut off or begun");
    operator.pause("s", None).await.expect("resume");
    until("the rest comes", async || done.count() == 3).await;
    running.stop().await.expect("stopped");
    assert_eq!(began.versions("slow"), [1, 2], "each once");
}

/// A relay whose lanes are idle and given back, and that sleeps, notices a replay, a pause and a resume; not by its poll.
pub async fn a_sleeping_relay_notices_its_operator<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>) {
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let relay = relay(outbox).poll_interval(Duration::from_secs(120));
    let running = relay.subscribe("s", |s| s.on(handler)).start().await.expect("started");
    let mut events = Vec::new();
    for version in 1..=3 {
        events.push(record(outbox, "a", version).await);
    }
    until("all three", async || seen.count() == 3).await;
    until("an idle lane is given back", async || !is_held(&*operator).await).await;
    let replay = Replay {
        subscription: "s".into(),
        from: ReplayFrom::Event(events[1]),
        effects_may_repeat: false,
        dry_run: false,
    };
    assert_eq!(operator.replay(&replay).await.expect("replay").events, 2);
    until("two of them again", async || seen.count() == 5).await;
    assert_eq!(seen.versions("a"), [1, 2, 3, 2, 3]);

    let count = Replay { dry_run: true, ..replay.clone() };
    until("they are settled", async || operator.replay(&count).await.expect("count").events == 2).await;
    assert!(is_held(&*operator).await, "it is held now");
    assert_eq!(operator.replay(&replay).await.expect("replay").events, 2);
    until("two of them again, under the holder's hands", async || seen.count() == 7).await;

    operator.pause("s", Some(&postrider::store::Pause::by("ada"))).await.expect("pause");
    until("a paused subscription's lanes are given back", async || !is_held(&*operator).await).await;
    record(outbox, "a", 4).await;
    operator.pause("s", None).await.expect("resume");
    until("it goes on", async || seen.count() == 8).await;
    assert_eq!(seen.versions("a"), [1, 2, 3, 2, 3, 2, 3, 4]);
    running.stop().await.expect("stopped");
}

/// A relay is known while it runs; what it has is not removed but by force, which it then says; made again, it goes on. A subscription
/// that is new to a log with history is in the audit with how much it will be sent.
pub async fn a_relay_is_known_and_says_when_its_subscription_is_removed<S: OutboxSource>(
    outbox: &S,
    operator: Arc<dyn Store>,
) {
    for version in 1..=3 {
        record(outbox, "a", version).await;
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let relay = relay(outbox).owner("night-1").subscribe("s", |s| s.on(handler).shown("sink", "the shop"));
    let running = relay.start().await.expect("started");
    let audits = operator.audits(0).await.expect("audits");
    let entry = &audits.first().expect("the new subscription is in the audit").entry;
    assert_eq!((entry.who.as_str(), entry.what.as_str()), ("night-1", "subscribe"));
    assert_eq!(entry.subscription.as_deref(), Some("s"));
    assert!(
        entry.why.as_deref().is_some_and(|why| why.ends_with("; 3 events in the log will be delivered")),
        "{entry:?}"
    );
    until("all three", async || seen.count() == 3).await;
    let known = async || operator.relays().await.expect("relays");
    until("it is known with its lane", async || {
        let known = known().await;
        known.len() == 1 && known[0].attends("s") && known[0].report.runs[0].lanes == [0]
    })
    .await;
    let report = known().await.remove(0).report;
    assert_eq!((report.name.as_str(), report.process), ("night-1", std::process::id()));
    let settings = &report.runs[0].settings;
    let setting = |name: &str| settings.get(name).map(String::as_str);
    assert_eq!(
        (setting("sink"), setting("order"), setting("lanes")),
        (Some("the shop"), Some("key"), Some("1"))
    );
    until("an idle lane is given back", async || !is_held(&*operator).await).await;
    let error = operator.remove("s", false).await.expect_err("an idle relay is somebody");
    assert!(error.message().contains("night-1"), "{error}");

    assert_eq!(running.health().problems(), Vec::<String>::new());
    operator.remove("s", true).await.expect("forced");
    until("the relay says so", async || running.health().problems().len() == 1).await;
    let problem = running.health().problems().remove(0);
    assert!(problem.contains("\"s\" was removed"), "{problem}");
    running.store().subscribe(&Subscription::new("s")).await.expect("made again");
    until("it goes on", async || running.health().problems().is_empty()).await;
    until("it begins anew", async || seen.count() == 6).await;
    running.stop().await.expect("stopped");
    assert_eq!(known().await, [], "who ends says so");
}

/// A relay that starts is known before it counts what a new subscription will be sent, which may take long: nobody removes the subscription
/// meanwhile but by force. `counts` says whether it is about to write down what it counted, and `end` lets it.
pub async fn a_relay_that_still_counts_is_known<S: OutboxSource>(
    outbox: &S,
    operator: Arc<dyn Store>,
    counts: impl AsyncFnMut() -> bool,
    end: impl Future<Output = ()>,
) {
    for version in 1..=3 {
        record(outbox, "a", version).await;
    }
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let relay = relay(outbox).lease(Duration::from_secs(120)).owner("night-1");
    let starting = tokio::spawn(relay.subscribe("s", |s| s.on(handler)).start());
    until("it counts", counts).await;
    let error = operator.remove("s", false).await.expect_err("a relay is about to run it");
    assert!(error.message().contains("night-1"), "{error}");
    assert_eq!(seen.count(), 0, "it has not begun to deliver");
    end.await;
    let running = starting.await.expect("it starts").expect("started");
    until("all three", async || seen.count() == 3).await;
    running.stop().await.expect("stopped");
}

/// A relay with the default settings that has delivered an event, has given its lane back, and has nothing to do.
pub async fn idle<S: OutboxSource>(outbox: &S, operator: Arc<dyn Store>) -> Running {
    let relay = Relay::new(outbox).subscribe("s", |s| s.on(|_: Received<OrderChanged>| async {}));
    let running = relay.start().await.expect("started");
    let event = record(outbox, "a", 1).await;
    running.delivered("s", event, super::PATIENCE).await.expect("delivered");
    until("its lane is given back", async || !is_held(&*operator).await).await;
    running
}
