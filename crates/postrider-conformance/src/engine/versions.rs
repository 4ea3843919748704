//! Old and new versions of a payload. L6.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::store::{Clock, State};
use postrider::testing::until_quiet;
use postrider::{Event, Headers, NewerVersion, Order, Received, Retry, Upcasters};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Fixture, PATIENCE, record_plain, relay, state, until};

/// The newest version of an order's payment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Paid {
    cents: i64,
    currency: String,
}

impl Event for Paid {
    const NAME: &'static str = "Paid";
    const VERSION: u32 = 3;
    const AGGREGATE: &'static str = "Order";

    fn aggregate_id(&self) -> String {
        String::new()
    }
}

/// The same, of a type that takes no field that it does not know.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Strict {
    cents: i64,
    currency: String,
}

impl Event for Strict {
    const NAME: &'static str = "Strict";
    const VERSION: u32 = 3;
    const AGGREGATE: &'static str = "Order";

    fn aggregate_id(&self) -> String {
        String::new()
    }
}

fn version(version: u32) -> Headers {
    let mut headers = Headers::new();
    headers.set_schema_version(version);
    headers
}

fn steps() -> Upcasters {
    Upcasters::new()
        .of::<Paid>(1, |value| json!({"cents": value["euros"].as_i64().unwrap_or(0) * 100}))
        .of::<Paid>(2, |mut value| {
            value["currency"] = json!("EUR");
            value
        })
}

/// Through all the steps, before a handler sees it.
pub async fn an_old_version_is_brought_up_to_date(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    record_plain(&outbox, "Paid", r#"{"euros": 7}"#, version(1)).await;
    record_plain(&outbox, "Paid", r#"{"cents": 800}"#, version(2)).await;
    record_plain(&outbox, "Paid", r#"{"cents": 900, "currency": "USD"}"#, version(3)).await;
    let seen: Arc<Mutex<Vec<Paid>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let handler = move |event: Received<Paid>| {
        notes.lock().expect("notes").push((*event).clone());
        async {}
    };
    let running =
        relay(&outbox).upcasters(steps()).subscribe("s", |s| s.on(handler)).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    running.stop().await.expect("stopped");
    let paid = |cents, currency: &str| Paid { cents, currency: currency.to_owned() };
    assert_eq!(*seen.lock().expect("notes"), [paid(700, "EUR"), paid(800, "EUR"), paid(900, "USD")]);
}

/// With a reason that names the step.
pub async fn a_missing_step_is_rejected(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let old = record_plain(&outbox, "Paid", r#"{"euros": 7}"#, version(1)).await;
    let only_last = Upcasters::new().of::<Paid>(2, |value| value);
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(|_: Received<Paid>| async {}).upcasters(only_last))
        .start()
        .await
        .expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    let dead = state(&*store, "s", old).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("upcaster_missing")));
    assert!(dead.error_message.is_some_and(|message| message.contains("Paid from version 1 to 2")));
}

/// A newer program will come.
pub async fn a_version_from_the_future_waits(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let new = record_plain(&outbox, "Paid", r#"{"cents": 1, "currency": "EUR"}"#, version(4)).await;
    let retry = Retry::fixed(Duration::from_secs(3600));
    let running = relay(&outbox)
        .subscribe("s", |s| s.on(|_: Received<Paid>| async {}).retry(retry))
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    until("it waits", async || state(&*store, "s", new).await.state == State::Retrying).await;
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", new).await.error_code.as_deref(), Some("version_from_the_future"));
}

/// `NewerVersion::Try`: what can be read is handled, and what can't waits without its payload being told.
pub async fn a_newer_version_is_tried_where_that_is_set(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let more = r#"{"cents": 1, "currency": "EUR", "colour": "red"}"#;
    let wider = record_plain(&outbox, "Paid", more, version(4)).await;
    let other =
        record_plain(&outbox, "Paid", r#"{"amount": "hunter2", "currency": "EUR"}"#, version(5)).await;
    let strict = record_plain(&outbox, "Strict", more, version(4)).await;
    let seen: Arc<Mutex<Vec<Paid>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let handler = move |event: Received<Paid>| {
        notes.lock().expect("notes").push((*event).clone());
        async {}
    };
    let running = relay(&outbox)
        .subscribe("s", |s| {
            s.on(handler)
                .on(|_: Received<Strict>| async {})
                .order(Order::None)
                .retry(Retry::fixed(Duration::from_secs(3600)).max_attempts(1))
                .newer_version(NewerVersion::Try)
        })
        .start()
        .await
        .expect("started");
    let store = Arc::clone(running.store());
    running.delivered("s", wider, PATIENCE).await.expect("delivered");
    for (event, reason) in [(other, "missing field `cents`"), (strict, "unknown field `colour`")] {
        until("it waits", async || state(&*store, "s", event).await.state == State::Retrying).await;
        let waits = state(&*store, "s", event).await;
        assert_eq!((waits.attempts, waits.error_code.as_deref()), (0, Some("version_from_the_future")));
        let message = waits.error_message.unwrap_or_default();
        assert!(message.contains(reason) && message.contains("versions up to 3"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    running.stop().await.expect("stopped");
    assert_eq!(*seen.lock().expect("notes"), [Paid { cents: 1, currency: "EUR".to_owned() }]);
}

/// Additive changes need no new version.
pub async fn an_unknown_field_is_ignored(fixture: &impl Fixture) {
    let outbox = fixture.outbox(Clock::Database).await;
    let extra = r#"{"cents": 1, "currency": "EUR", "colour": "red"}"#;
    let event = record_plain(&outbox, "Paid", extra, version(3)).await;
    let running =
        relay(&outbox).subscribe("s", |s| s.on(|_: Received<Paid>| async {})).start().await.expect("started");
    until_quiet(&running, "s").await.expect("quiet");
    let store = Arc::clone(running.store());
    running.stop().await.expect("stopped");
    assert_eq!(state(&*store, "s", event).await.state, State::Done);
}
