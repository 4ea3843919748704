//! Endpoints that fail for some, and relays that see only some of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::Retry;
use postrider::store::State;
use postrider::testing::{Outbox, until_quiet};
use postrider_http::Http;
use postrider_testkit::until;

use crate::manner::*;
use crate::support::Endpoint;

/// Every other request fails, whatever it is: nothing is lost, and the order is kept.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_fails_every_other_request_gets_everything() {
    let name = "alternates";
    let outbox = Outbox::new();
    let count = AtomicUsize::new(0);
    let endpoint = Manner::is(move |_| {
        Some(if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) { "503 Busy" } else { "200 OK" })
    })
    .endpoint()
    .await;
    let mut events = Vec::new();
    for version in 1..=10 {
        for key in ["a", "b", "c"] {
            events.push(record(&outbox, key, version).await);
        }
    }
    let sink = sink(&endpoint, Http::builder());
    let relay =
        relay_with(&outbox, name, sink, |s| s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(30)))
            .await;
    until_quiet(&relay, name).await.expect("quiet");
    assert_done(&relay, name, &events).await;
    relay.stop().await.expect("stopped");
}

/// Half of the keys fail for good: they die by their policy as long as there is traffic of the others.
#[tokio::test(flavor = "multi_thread")]
async fn half_of_the_keys_may_fail_for_good() {
    let name = "half";
    let outbox = Outbox::new();
    let is_bad = |key: &str| key.len() == 1;
    let endpoint =
        Manner::is(move |key| Some(if is_bad(key) { "403 No" } else { "200 OK" })).endpoint().await;
    let sink = sink(&endpoint, Http::builder());
    let relay =
        relay_with(&outbox, name, sink, |s| s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(3)))
            .await;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for key in 0..10 {
        bad.push(record(&outbox, &key.to_string(), 1).await);
        good.push(record(&outbox, &format!("good-{key}"), 1).await);
    }
    let end = Instant::now() + PATIENCE;
    let mut version = 1;
    loop {
        assert!(Instant::now() < end, "they die");
        version += 1;
        let next = record(&outbox, "good-0", version).await;
        relay.delivered(name, next, PATIENCE).await.expect("the good keys go on");
        let mut dead = 0;
        for event in &bad {
            let found = state(&relay, name, *event).await;
            dead += usize::from(found.state == State::Dead && found.attempts == 3);
        }
        if dead == bad.len() {
            break;
        }
    }
    assert_done(&relay, name, &good).await;
    relay.stop().await.expect("stopped");
}

/// Two lanes of one relay share what they know; two relays don't, and neither kills anything without a contrast of its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_lanes_share_a_contrast() {
    let name = "two-lanes";
    let outbox = Outbox::new();
    let endpoint = Manner::is(|key| Some(if key == "bad" { "500 Oops" } else { "200 OK" })).endpoint().await;
    let start = async |endpoint: &Endpoint| {
        let sink = sink(endpoint, Http::builder());
        relay_with(&outbox, name, sink, |s| {
            s.lanes(2).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(2))
        })
        .await
    };
    let relay = start(&endpoint).await;
    let bad = record(&outbox, "bad", 1).await;
    until("it is away", async || is_away(name)).await;
    let mut good = Vec::new();
    for key in 0..8 {
        good.push(record(&outbox, &key.to_string(), 1).await);
    }
    until("it dies by its policy", async || state(&relay, name, bad).await.state == State::Dead).await;
    until_quiet(&relay, name).await.expect("quiet");
    assert_done(&relay, name, &good).await;
    assert!(!is_away(name));
    relay.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_sees_only_failures_kills_nothing_beside_one_that_sees_successes() {
    let name = "two-relays";
    let outbox = Outbox::new();
    let (broken, fine) =
        (Manner::is(|_| Some("502 Behind")).endpoint().await, Manner::is(ok).endpoint().await);
    let start = async |endpoint: &Endpoint| {
        let sink = sink(endpoint, Http::builder());
        relay_with(&outbox, name, sink, |s| {
            s.lanes(2).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))
        })
        .await
    };
    let (one, two) = (start(&broken).await, start(&fine).await);
    let mut events = Vec::new();
    let mut version = 0;
    until("both have a lane", async || {
        version += 1;
        for key in 0..4 {
            events.push(record(&outbox, &key.to_string(), version).await);
        }
        broken.requests().len() > 5 && fine.requests().len() > 5
    })
    .await;
    for event in &events {
        let found = state(&one, name, *event).await;
        assert!(found.state != State::Dead && found.attempts <= 1, "{found:?}");
    }
    // The next holder has a way there, and delivers what was left.
    one.stop().await.expect("stopped");
    until_quiet(&two, name).await.expect("quiet");
    assert_done(&two, name, &events).await;
    two.stop().await.expect("stopped");
}
