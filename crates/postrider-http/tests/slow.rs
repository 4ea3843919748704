//! A request that takes long delays its key alone.

mod support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postrider::store::{OutboxSource, State, StateQuery};
use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, Relay, Retry, Uuid};
use postrider_http::Http;
use postrider_testkit::until_true;
use support::{Endpoint, Request};

async fn record(outbox: &Outbox, order: &str, version: i64) -> Uuid {
    let event = NewEvent::of("orders", "OrderPaid", "Order", order, &version).expect("an event");
    outbox.record_alone(&event).await.expect("recorded")
}

fn arrived(request: &Request) -> (String, i64) {
    let version = String::from_utf8_lossy(&request.body).parse().expect("a version");
    (request.header("ce-subject").to_owned(), version)
}

/// As it was found: A hangs, and B, another key, was recorded 0.7 s later and arrived after 19 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_hangs_delays_its_key_alone() {
    let outbox = Outbox::new();
    let endpoint =
        Endpoint::start(|request| (request.header("ce-subject") != "a").then(|| "200 OK".to_owned())).await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = Relay::new(&outbox)
        .shutdown_grace(Duration::from_millis(10))
        .subscribe("hook", |s| s.sink(sink).timeout(Duration::from_secs(60)))
        .start()
        .await
        .expect("started");
    record(&outbox, "a", 1).await;
    until_true("a hangs", || endpoint.requests().iter().any(|request| arrived(request).0 == "a")).await;
    for version in 1..=20 {
        let began = Instant::now();
        record(&outbox, "a", 1 + version).await;
        record(&outbox, "b", version).await;
        until_true("b arrives", || {
            endpoint.requests().iter().any(|each| arrived(each) == ("b".into(), version))
        })
        .await;
        assert!(began.elapsed() < Duration::from_secs(5), "b{version} took {:?}", began.elapsed());
    }
    let of_a = endpoint.requests().iter().filter(|request| arrived(request).0 == "a").count();
    assert_eq!(of_a, 1, "its key waits");
    relay.stop().await.expect("stopped");
}

/// Over all batches: what hangs takes its place, and no more than that many are ever asked at once.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_requests_than_allowed_are_under_way_over_all_batches() {
    let outbox = Outbox::new();
    for key in 0..40 {
        record(&outbox, &format!("k{key}"), 1).await;
    }
    let endpoint = Endpoint::start_slow(Duration::from_millis(150), |_| Some("200 OK".to_owned())).await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("hook", |s| s.sink(sink).concurrency(4).batch(5).patience(Duration::from_millis(20)))
        .start()
        .await
        .expect("started");
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    assert_eq!(endpoint.most(), 4);
    let keys: HashSet<_> = endpoint.requests().iter().map(arrived).collect();
    assert_eq!((keys.len(), endpoint.requests().len()), (40, 40), "each once");
}

/// a1 b1 c1 a2 … arrives in just that order; a failing event holds only its key.
#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_in_one_lane_is_the_whole_order() {
    let outbox = Outbox::new();
    let mut wanted = Vec::new();
    for version in 1..=5 {
        for key in ["a", "b", "c"] {
            record(&outbox, key, version).await;
            if key != "b" || version < 2 {
                wanted.push((key.to_owned(), version));
            }
        }
    }
    let failed = Arc::new(Mutex::new(false));
    let once = Arc::clone(&failed);
    let endpoint = Endpoint::start(move |request| {
        let fails = arrived(request) == ("b".to_owned(), 2)
            && !std::mem::replace(&mut *once.lock().expect("a flag"), true);
        Some(if fails { "500 Oops" } else { "200 OK" }.to_owned())
    })
    .await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("hook", |s| {
            s.sink(sink).concurrency(1).batch(7).retry(Retry::fixed(Duration::from_millis(300)))
        })
        .start()
        .await
        .expect("started");
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let all: Vec<(String, i64)> = endpoint.requests().iter().map(arrived).collect();
    let others: Vec<_> = all.iter().filter(|(key, version)| key != "b" || *version < 2).cloned().collect();
    assert_eq!(others, wanted);
    let of_b: Vec<i64> = all.iter().filter(|(key, _)| key == "b").map(|(_, version)| *version).collect();
    assert_eq!(of_b, [1, 2, 2, 3, 4, 5]);
}

/// The only key that is asked for has no answer, so that its endpoint seems to be away. A new key shows that it is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_tried_soon_although_the_endpoint_seems_to_be_away() {
    let outbox = Outbox::new();
    let endpoint =
        Endpoint::start(|request| (request.header("ce-subject") != "a").then(|| "200 OK".to_owned())).await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = Relay::new(&outbox)
        .shutdown_grace(Duration::from_millis(10))
        .subscribe("hook", |s| {
            s.sink(sink)
                .timeout(Duration::from_millis(500))
                .longest_pause(Duration::from_secs(3600))
                .retry(Retry::fixed(Duration::from_millis(10)).max_attempts(2))
        })
        .start()
        .await
        .expect("started");
    let fails = record(&outbox, "a", 1).await;
    // Five tries, with pauses that double each time: the next one would be in eight seconds.
    until_true("a is tried again and again", || endpoint.requests().len() >= 5).await;
    let began = Instant::now();
    record(&outbox, "b", 1).await;
    until_true("b arrives", || endpoint.requests().iter().any(|each| arrived(each).0 == "b")).await;
    assert!(began.elapsed() < Duration::from_secs(4), "b took {:?}", began.elapsed());
    until_quiet(&relay, "hook").await.expect("quiet");
    let query = StateQuery { event_id: Some(fails), ..StateQuery::default() };
    let dead = relay.store().states(&query).await.expect("states").pop().expect("a state");
    assert_eq!((dead.state, dead.attempts), (State::Dead, 2), "now it is its own: {dead:?}");
    relay.stop().await.expect("stopped");
}
