//! Handlers: who is called with what.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, OutboxSource, State};
use postrider::testing::until_quiet;
use postrider::{
    Context, ErrorKind, Failure, Handle, Headers, NewEvent, Order, Raw, Received, Relay, Retry, Subscriber,
    Unknown, Upcasters,
};

use crate::silent::Silent;

use super::{Fixture, InvoiceSent, OrderChanged, Seen, record, record_plain, relay, state, until};

async fn ignore(_: Received<OrderChanged>) {}

/// U4, U6.
pub async fn every_event_reaches_its_handler_once_and_in_order(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let seen = Seen::default();
    let notes = seen.clone();
    for version in 1..=20 {
        for order in ["a", "b", "c"] {
            record(&outbox, order, version).await;
        }
    }
    let handler = move |event: Received<OrderChanged>| {
        let notes = notes.clone();
        async move { notes.note(&event) }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler).batch(7)).start().await.expect("started");
    for version in 21..=25 {
        record(&outbox, "a", version).await;
    }
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), (1..=25).collect::<Vec<_>>());
    assert_eq!(seen.versions("b"), (1..=20).collect::<Vec<_>>());
    assert_eq!(seen.versions("c"), (1..=20).collect::<Vec<_>>());
}

struct Counter(Arc<AtomicUsize>);

impl Handle<OrderChanged> for Counter {
    async fn handle(&self, event: Received<OrderChanged>, context: Context) -> Result<(), Failure> {
        assert_eq!(event.event().event_id, context.event().event_id);
        assert_eq!((context.subscription(), context.attempt()), ("struct", 1));
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// All that `on` takes.
pub async fn functions_closures_and_structs_all_handle(fixture: &impl Fixture) {
    async fn function(
        event: Received<OrderChanged>,
        context: Context,
    ) -> Result<(), std::num::ParseIntError> {
        assert_eq!((event.attempt(), context.attempt()), (1, 1));
        "1".parse::<i32>()?;
        Ok(())
    }
    let outbox = fixture.outbox(Clock::Database).await;
    record(&outbox, "a", 1).await;
    let (counted, captured) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&captured);
    let closure = move |event: Received<OrderChanged>| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(event.version as usize, Ordering::SeqCst);
        }
    };
    let running = relay(&outbox)
        .subscribe("function", |s| s.on(function))
        .subscribe("closure", |s| s.on(closure))
        .subscribe("struct", |s| s.on(Counter(Arc::clone(&counted))))
        .start()
        .await
        .expect("started");
    for subscription in ["function", "closure", "struct"] {
        until_quiet(&running, subscription).await.expect("quiet");
    }
    running.stop().await.expect("stopped");
    assert_eq!((counted.load(Ordering::SeqCst), captured.load(Ordering::SeqCst)), (1, 1));
}

/// The relay lives on.
pub async fn a_panic_is_a_failure_of_that_event(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let panics = record(&outbox, "a", 1).await;
    let fine = record(&outbox, "b", 2).await;
    let handler = |event: Received<OrderChanged>| async move {
        assert!(event.version != 1, "one is too much");
    };
    let once = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    let running =
        relay(&outbox).subscribe("s", |s| s.on(handler).retry(once)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", panics).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("panic")));
    assert!(dead.error_message.is_some_and(|message| message.contains("one is too much")));
    assert_eq!(state(&*store, "s", fine).await.state, State::Done);
}

/// An upcaster is the application's code, too.
pub async fn a_panic_in_an_upcaster_is_a_failure_of_that_event(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let mut old = Headers::new();
    old.set_schema_version(0);
    let panics = record_plain(&outbox, "OrderChanged", "\"secret\"", old).await;
    let fine = record(&outbox, "b", 2).await;
    let steps = Upcasters::new().of::<OrderChanged>(0, |value| panic!("{value}"));
    let once = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(ignore).upcasters(steps).retry(once))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", panics).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("panic")));
    assert!(!dead.error_message.unwrap_or_default().contains("secret"));
    assert_eq!(state(&*store, "s", fine).await.state, State::Done);
}

/// The lease is extended while it runs, and nobody else gets the lane.
pub async fn a_handler_may_take_longer_than_the_lease(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    record(&outbox, "a", 1).await;
    record(&outbox, "a", 2).await;
    let seen = Seen::default();
    let start = async |name: &str| {
        let notes = seen.clone();
        let handler = move |event: Received<OrderChanged>| {
            let notes = notes.clone();
            async move {
                notes.note(&event);
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
        };
        let relay = Relay::new(&outbox).owner(name).lease(Duration::from_millis(300));
        relay.subscribe("s", |s| s.on(handler)).start().await.expect("started")
    };
    let (one, two) = (start("one").await, start("two").await);
    until_quiet(&one, "s").await.expect("quiet");
    one.stop().await.expect("stopped");
    two.stop().await.expect("stopped");
    assert_eq!(seen.versions("a"), [1, 2], "each once");
}

/// A database can't count for ever, and the lane goes on.
pub async fn a_pause_without_end_stops_nobody(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let never = record(&outbox, "a", 1).await;
    let handler = |event: Received<OrderChanged>| async move {
        if event.version == 1 { Err(Failure::retry_after(Duration::MAX, "never again")) } else { Ok(()) }
    };
    let running = relay(&outbox).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    let fine = record(&outbox, "b", 2).await;
    running.delivered("s", fine, super::PATIENCE).await.expect("delivered");
    let store = Arc::clone(running.store());
    until("it waits", async || state(&*store, "s", never).await.state == State::Retrying).await;
    running.stop().await.expect("stopped");
}

/// Its time is a setting.
pub async fn a_handler_that_takes_too_long_fails(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let slow = record(&outbox, "a", 1).await;
    let handler = |_: Received<OrderChanged>| std::future::pending::<()>();
    let once = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    // The handler's own, where that is not the subscription's.
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).retry(once).timeout_of("OrderChanged", Duration::from_millis(50)))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", slow).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("timeout")));
}

/// Bounded, and never two of a key.
pub async fn keys_run_at_once_and_a_key_one_at_a_time(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    for version in 1..=5 {
        for order in 0..8 {
            record(&outbox, &format!("o{order}"), version).await;
        }
    }
    let running_now: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running_now), Arc::clone(&most));
    let handler = move |event: Received<OrderChanged>| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            {
                let mut now = now.lock().expect("now");
                *now.entry(event.order.clone()).or_default() += 1;
                assert_eq!(now[&event.order], 1, "two of a key at once");
                peak.fetch_max(now.values().sum(), Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            *now.lock().expect("now").entry(event.order.clone()).or_default() -= 1;
        }
    };
    let once = Retry::fixed(Duration::from_millis(1)).max_attempts(1);
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(handler).concurrency(4).retry(once))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead: u64 = store.figures("s").await.expect("figures").iter().map(|each| each.dead).sum();
    assert_eq!(dead, 0, "no two of a key ran at once");
    assert_eq!(most.load(Ordering::SeqCst), 4, "as many keys at once as are allowed");
}

/// A setting.
pub async fn an_unknown_type_is_skipped_or_rejected(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let event = record_plain(&outbox, "Unheard", "1", Headers::new()).await;
    let running = relay(&outbox)
        .subscribe("skips", |s| s.on(ignore))
        .subscribe("rejects", |s| s.on(ignore).unknown(Unknown::Reject))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "skips").await.expect("quiet");
    until_quiet(&running, "rejects").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "skips", event).await.state, State::Done);
    let dead = state(&*store, "rejects", event).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("unknown_type")));
    assert!(dead.error_message.is_some_and(|message| message.contains("Unheard")));
}

/// The field that failed, not what it says.
pub async fn what_cannot_be_decoded_is_rejected_without_its_payload(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let wrong = record_plain(
        &outbox,
        "OrderChanged",
        r#"{"order": "top secret", "version": "hush"}"#,
        Headers::new(),
    )
    .await;
    let missing = record_plain(&outbox, "OrderChanged", r#"{"version": 77}"#, Headers::new()).await;
    let mut bytes = NewEvent::of("orders", "OrderChanged", "Order", "b", &1).expect("an event");
    bytes.payload = postrider::Payload::Bytes { content_type: "avro/binary".into(), bytes: b"hush".to_vec() };
    let bytes = outbox.record_alone(&bytes).await.expect("recorded");
    let running = relay(&outbox).subscribe("s", |s| s.on(ignore)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    for (event, words) in
        [(wrong, "field version: expected i64"), (missing, "missing field `order`"), (bytes, "Raw")]
    {
        let dead = state(&*store, "s", event).await;
        assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("undecodable")));
        let message = dead.error_message.expect("a reason");
        assert!(message.contains(words) && message.contains("OrderChanged"), "{message}");
        assert!(
            !message.contains("hush") && !message.contains("secret") && !message.contains("77"),
            "{message}"
        );
    }
}

/// At build time where it can be.
pub async fn what_is_wrong_is_said_before_anything_starts<G: Fixture>(fixture: &G) {
    type Build<S> = fn(Subscriber<S>) -> Subscriber<S>;
    let outbox = fixture.outbox(Clock::Database).await;
    let cases: [(Build<G::Outbox>, &str); 10] = [
        (|s| s.on(ignore).on(ignore), "there are two handlers for OrderChanged"),
        (|s| s, "neither a handler nor a sink"),
        (|s| s.on(ignore).lanes(0), "lanes must be between 1 and 256, not 0"),
        (|s| s.on(ignore).retry(Retry::schedule([])), "schedule must have at least one pause"),
        (|s| s.on(ignore).concurrency(0), "concurrency must be at least 1"),
        (|s| s.on(ignore).batch(0), "batch must be at least 1"),
        (|s| s.on(ignore).max_tx_batch(0), "max_tx_batch must be at least 1"),
        (|s| s.on(ignore).timeout(Duration::ZERO), "timeout must be greater than 0"),
        (|s| s.on(ignore).longest_pause(Duration::ZERO), "longest_pause must be greater than 0"),
        (
            |s| s.on(ignore).upcasters(Upcasters::new().of::<OrderChanged>(1, |value| value)),
            "the handler takes version 1",
        ),
    ];
    for (build, words) in cases {
        let error = Relay::new(&outbox).subscribe("s", build).start().await.expect_err(words);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().starts_with("subscribe: subscription \"s\": "), "it says where: {error}");
    }
    let twice = Relay::new(&outbox).subscribe("s", |s| s.on(ignore)).subscribe("s", |s| s.on(ignore));
    let error = twice.start().await.expect_err("a name used twice");
    assert!(error.to_string().contains("two subscriptions are named \"s\""), "{error}");
    let error = Relay::new(&outbox).start().await.expect_err("nothing to do");
    assert!(error.to_string().contains("no subscription"), "{error}");
}

/// The bell, not the poll: that is a minute here.
pub async fn a_relay_that_sleeps_is_woken(fixture: &impl Fixture) {
    let outbox = Silent::new(fixture.outbox(Clock::Database).await);
    let seen = Seen::default();
    let notes = seen.clone();
    let handler = move |event: Received<OrderChanged>| {
        notes.note(&event);
        async {}
    };
    let running = Relay::new(&outbox)
        .poll_interval(Duration::from_secs(60))
        .lease(Duration::from_secs(2))
        .subscribe("s", |s| s.on(handler).order(Order::Key))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    let is_given_back = async || {
        let known = store.subscriptions().await.expect("subscriptions");
        known.iter().flat_map(|info| &info.lanes).all(|lane| lane.owner.is_none())
    };
    for version in 1..=3 {
        until("it sleeps", async || outbox.asleep() > 0).await;
        if version == 3 {
            until("it sleeps without its lane", async || is_given_back().await && outbox.asleep() > 0).await;
        }
        record(&outbox, "a", version).await;
        until("the event was handled", async || seen.versions("a").len() as i64 == version).await;
    }
    running.stop().await.expect("stopped");
}

/// Bytes with their content type, and JSON as it is.
pub async fn raw_payloads_are_handed_on(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    record_plain(&outbox, "Anything", r#"{"a": 1}"#, Headers::new()).await;
    record(&outbox, "a", 1).await;
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&names);
    let handler = move |event: Received<Raw>| {
        notes.lock().expect("notes").push(format!(
            "{} {}",
            event.event().event_type,
            event.0.as_json().unwrap_or("")
        ));
        async {}
    };
    let running = relay(&outbox)
        .subscribe("s", |s| s.on_other(handler).on_type("InvoiceSent", |_: Received<InvoiceSent>| async {}))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let mut names = names.lock().expect("notes").clone();
    names.sort();
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("Anything {\"a\""), "{names:?}");
    assert!(names[1].starts_with("OrderChanged {"), "{names:?}");
}
