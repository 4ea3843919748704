//! How many requests are under way, in what order, and what becomes of those that fail for a while.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::store::{OutboxSource, State, StateQuery};
use postrider::testing::{Outbox, until_quiet};
use postrider::{Headers, NewEvent, Order, Relay, Retry, Running, Uuid};
use postrider_core::Limits;
use postrider_http::{Format, Http};
use support::{Endpoint, Request};

async fn record(outbox: &Outbox, order: &str, version: i64) -> Uuid {
    let event = NewEvent::of("orders", "OrderPaid", "Order", order, &version).expect("an event");
    outbox.record_alone(&event).await.expect("recorded")
}

async fn relay(outbox: &Outbox, sink: Http, order: Order, concurrency: usize) -> Running {
    Relay::new(outbox)
        .subscribe("hook", |s| {
            s.sink(sink)
                .order(order)
                .concurrency(concurrency)
                .retry(Retry::fixed(Duration::from_millis(10)).max_attempts(20))
                .longest_pause(Duration::from_millis(50))
        })
        .start()
        .await
        .expect("started")
}

/// The versions of each key, as they came.
fn by_key(events: impl IntoIterator<Item = (String, i64)>) -> HashMap<String, Vec<i64>> {
    let mut keys: HashMap<String, Vec<i64>> = HashMap::new();
    for (key, version) in events {
        keys.entry(key).or_default().push(version);
    }
    keys
}

fn single(request: &Request) -> (String, i64) {
    let version = String::from_utf8_lossy(&request.body).parse().expect("a version");
    (request.header("ce-subject").to_owned(), version)
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_requests_as_allowed_are_under_way_and_no_more_and_a_key_in_order() {
    for limit in [1, 5] {
        let outbox = Outbox::new();
        for version in 1..=8 {
            for key in 0..20 {
                record(&outbox, &key.to_string(), version).await;
            }
        }
        let endpoint = Endpoint::start_slow(Duration::from_millis(5), |_| Some("200 OK".to_owned())).await;
        let sink = Http::builder().build(&endpoint.url()).expect("a sink");
        let relay = relay(&outbox, sink, Order::Key, limit).await;
        until_quiet(&relay, "hook").await.expect("quiet");
        relay.stop().await.expect("stopped");
        assert_eq!(endpoint.most(), limit, "never above the limit, and it is reached");
        let keys = by_key(endpoint.requests().iter().map(single));
        assert_eq!(keys.len(), 20);
        for (key, versions) in keys {
            assert_eq!(versions, (1..=8).collect::<Vec<i64>>(), "{key}");
        }
    }
}

/// The events in a batch.
fn several(request: &Request) -> Vec<(String, i64)> {
    let batch = request.json();
    let events = batch.as_array().expect("a list").iter();
    let pair = |event: &serde_json::Value| {
        (event["subject"].as_str().expect("a key").to_owned(), event["data"].as_i64().expect("a version"))
    };
    events.map(pair).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_for_a_while_comes_again_whole_and_in_order() {
    for order in [Order::Key, Order::Strict] {
        let outbox = Outbox::new();
        let mut wanted = Vec::new();
        for version in 1..=15_i64 {
            for key in ["a", "b"] {
                record(&outbox, key, version).await;
                wanted.push((key.to_owned(), version));
            }
        }
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        // Every other request fails, in another way each time, or is not answered at all.
        let endpoint = Endpoint::start(move |_| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let failures = ["503 Busy", "408 Slow", "425 Early", "429 Many", "500 Oops", "504 Gone"];
            let failure = failures[number / 2 % failures.len()];
            Some(if number.is_multiple_of(2) { failure } else { "200 OK" }.to_owned())
        })
        .await;
        let sink = Http::builder().format(Format::Batched(4)).build(&endpoint.url()).expect("a sink");
        let relay = relay(&outbox, sink, order, 16).await;
        until_quiet(&relay, "hook").await.expect("quiet");
        let figures = relay.store().figures("hook").await.expect("figures");
        assert_eq!(figures.iter().map(|each| each.dead).sum::<u64>(), 0, "{order}");
        relay.stop().await.expect("stopped");
        // What was answered with 200 is what arrived.
        let requests = endpoint.requests();
        let arrived: Vec<(String, i64)> = requests.iter().skip(1).step_by(2).flat_map(several).collect();
        assert!(requests.len() > 8, "{order}: {} requests", requests.len());
        let keys = by_key(arrived.clone());
        for key in ["a", "b"] {
            assert_eq!(keys[key], (1..=15).collect::<Vec<i64>>(), "{order}: each once, in order");
        }
        if order == Order::Strict {
            assert_eq!(arrived, wanted, "strict: nothing overtakes anything");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_again_before_the_time_it_asked_for() {
    let outbox = Outbox::new();
    record(&outbox, "a", 1).await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let endpoint = Endpoint::start(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Some(if first { "429 Slow Down\r\nretry-after: 2" } else { "200 OK" }.to_owned())
    })
    .await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = relay(&outbox, sink, Order::Key, 16).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let [first, second] = endpoint.requests().try_into().expect("two requests");
    let pause = second.at - first.at;
    assert!(pause >= Duration::from_secs(2) && pause < Duration::from_secs(10), "{pause:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let elsewhere = Endpoint::start(|_| Some("200 OK".to_owned())).await;
    for status in ["301 Moved", "302 EventPage", "303 See Other", "307 Temporary", "308 Permanent"] {
        let answer = format!("{status}\r\nlocation: {}", elsewhere.url());
        let endpoint = Endpoint::start(move |_| Some(answer.clone())).await;
        let outbox = Outbox::new();
        let event = record(&outbox, "a", 1).await;
        let sink = Http::builder().bearer("let-me-in").build(&endpoint.url()).expect("a sink");
        let relay = relay(&outbox, sink, Order::Key, 16).await;
        let end = Instant::now() + Duration::from_secs(30);
        while endpoint.requests().len() < 3 {
            assert!(Instant::now() < end, "{status}: it is asked again");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let query = StateQuery { event_id: Some(event), ..StateQuery::default() };
        let waits = relay.store().states(&query).await.expect("states").pop().expect("a state");
        assert_eq!((waits.state, waits.attempts), (State::Processing, 0), "{status}");
        relay.stop().await.expect("stopped");
    }
    assert_eq!(elsewhere.requests().len(), 0, "neither the event nor the token went there");
}

/// An event with more headers than a request can have is dead by itself; it neither stops its lane nor counts as an outage.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_more_headers_than_a_request_can_have_is_dead_and_the_others_go_on() {
    let limits = Limits { headers: 64 << 20, ..Limits::default() };
    let outbox = Outbox::builder().limits(limits).build();
    let mut many = NewEvent::of("orders", "OrderPaid", "Order", "many", &1).expect("an event");
    let headers: Vec<String> = (0..33_000).map(|number| format!("\"h{number}\":\"x\"")).collect();
    many.headers = Headers::from_json(format!("{{{}}}", headers.join(",")));
    let before = record(&outbox, "a", 1).await;
    let many = outbox.record_alone(&many).await.expect("recorded");
    let after = record(&outbox, "a", 2).await;
    let endpoint = Endpoint::start(|_| Some("200 OK".to_owned())).await;
    let sink = Http::builder().build(&endpoint.url()).expect("a sink");
    let relay = relay(&outbox, sink, Order::Key, 4).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    let store = Arc::clone(relay.store());
    relay.stop().await.expect("stopped");
    let state = async |event_id: Uuid| {
        let query = StateQuery { event_id: Some(event_id), ..StateQuery::default() };
        store.states(&query).await.expect("states").pop().expect("a state")
    };
    let dead = state(many).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("header")), "{dead:?}");
    assert!(dead.error_message.expect("a reason").contains("too many for a request"));
    assert_eq!((state(before).await.state, state(after).await.state), (State::Done, State::Done));
}

/// A request is built in memory: how large it gets does not depend on how many events may be in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_several_events_is_bounded_by_bytes() {
    let outbox = Outbox::new();
    let sizes = [400_000, 400_000, 400_000, 1_000_000, 1, 1, 400_000];
    for size in sizes {
        let event = NewEvent::of("orders", "OrderPaid", "Order", "a", &"x".repeat(size)).expect("an event");
        outbox.record_alone(&event).await.expect("recorded");
    }
    let endpoint = Endpoint::start(|_| Some("200 OK".to_owned())).await;
    let sink = Http::builder().format(Format::Batched(100)).build(&endpoint.url()).expect("a sink");
    let relay = relay(&outbox, sink, Order::Key, 16).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let length = |event: &serde_json::Value| event["data"].as_str().expect("a text").len();
    let requests: Vec<Vec<usize>> = endpoint
        .requests()
        .iter()
        .map(|request| request.json().as_array().expect("a list").iter().map(length).collect())
        .collect();
    assert_eq!(requests.concat(), sizes, "all of them, in order");
    assert!(requests.iter().all(|request| request.iter().sum::<usize>() < 1 << 20), "{requests:?}");
    assert_eq!(requests.len(), 4, "{requests:?}");
}
