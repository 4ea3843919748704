//! Whose trouble a failure is: an endpoint that fails everything is away and costs nothing; one that fails a single key says
//! something about that key.

mod answers;
mod manner;
mod mixed;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use manner::*;
use postrider::store::State;
use postrider::testing::{Outbox, until_quiet};
use postrider::{Order, Retry};
use postrider_http::{Format, Http};
use postrider_testkit::until;
use support::Endpoint;

/// Every status that is the endpoint's trouble for as long as nothing succeeds; a garbled answer; and none at all.
const DOWN: [Option<&str>; 17] = [
    Some("302 EventPage\r\nlocation: http://127.0.0.1:1/"),
    Some("401 Who"),
    Some("403 No"),
    Some("404 Where"),
    Some("405 How"),
    Some("408 Slow"),
    Some("410 Gone"),
    Some("418 Teapot"),
    Some("425 Early"),
    Some("429 Many\r\nretry-after: 0"),
    Some("500 Oops"),
    Some("502 Behind"),
    Some("503 Busy"),
    Some("504 Late"),
    Some("599 What"),
    Some("garbled"),
    None,
];
/// Those that are the event's own while others succeed.
const ABOUT_THE_EVENT: [&str; 5] = ["400 Bad", "409 Conflict", "413 Large", "415 Type", "422 No"];
/// Everything fails for a while in one way, in the middle of a life; and comes back.
async fn down_and_back(name: String, order: Order, answer: Option<&'static str>) {
    let outbox = Outbox::new();
    let manner = Manner::is(ok);
    let endpoint = manner.endpoint().await;
    let before = [record(&outbox, "a", 0).await, record(&outbox, "b", 0).await];
    let sink = sink(&endpoint, Http::builder());
    let relay = relay_with(&outbox, &name, sink, |s| {
        s.order(order).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))
    })
    .await;
    until_quiet(&relay, &name).await.expect("quiet");
    manner.becomes(move |_| answer);
    let mut events = Vec::new();
    for version in 1..=3 {
        for key in ["a", "b", "c"] {
            events.push(record(&outbox, key, version).await);
        }
    }
    until("it is asked again and again", async || endpoint.requests().len() >= 2 + 8).await;
    until("it is away", async || is_away(&name)).await;
    assert_untouched(&relay, &name, &events).await;
    let requests = endpoint.requests();
    let asked = keys_of(&requests[2..]).len();
    assert_eq!(
        asked,
        if order == Order::Strict { 1 } else { 3 },
        "{name}: probes rotate where the order permits"
    );
    manner.becomes(ok);
    until_quiet(&relay, &name).await.expect("quiet");
    assert_done(&relay, &name, &before).await;
    assert_done(&relay, &name, &events).await;
    assert!(!is_away(&name), "{name}");
    relay.stop().await.expect("stopped");
    for key in ["a", "b", "c"] {
        let mut versions: Vec<String> = endpoint
            .requests()
            .iter()
            .filter(|request| request.header("ce-subject") == key)
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect();
        assert!(order == Order::None || versions.is_sorted(), "{name}: {key} in order: {versions:?}");
        versions.sort();
        versions.dedup();
        assert_eq!(versions.len(), if key == "c" { 3 } else { 4 }, "{name}: {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_fails_everything_for_a_while_costs_no_event_an_attempt() {
    for order in [Order::Key, Order::Strict, Order::None] {
        let each = DOWN.into_iter().chain(ABOUT_THE_EVENT.map(Some)).enumerate();
        let each =
            each.map(|(number, answer)| down_and_back(format!("down-{number}-{order}"), order, answer));
        futures_util::future::join_all(each).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_event_that_fails_alone_is_never_charged() {
    for (name, order) in [("alone", Order::Key), ("alone-strict", Order::Strict), ("alone-none", Order::None)]
    {
        let outbox = Outbox::new();
        let manner = Manner::is(|_| Some("404 Where"));
        let endpoint = manner.endpoint().await;
        let event = record(&outbox, "a", 1).await;
        let sink = sink(&endpoint, Http::builder());
        let relay = relay_with(&outbox, name, sink, |s| {
            s.order(order).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))
        })
        .await;
        until("it is asked for long", async || endpoint.requests().len() >= 30).await;
        assert!(is_away(name), "{name}");
        assert_untouched(&relay, name, &[event]).await;
        manner.becomes(ok);
        until_quiet(&relay, name).await.expect("quiet");
        assert_done(&relay, name, &[event]).await;
        relay.stop().await.expect("stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_alone_stays_away_and_keeps_its_order() {
    let name = "one-key";
    let outbox = Outbox::new();
    let manner = Manner::is(|_| Some("422 No"));
    let endpoint = manner.endpoint().await;
    let mut events = Vec::new();
    for version in 1..=20 {
        events.push(record(&outbox, "a", version).await);
    }
    let sink = sink(&endpoint, Http::builder());
    let relay = relay_with(&outbox, name, sink, |s| {
        s.batch(4).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))
    })
    .await;
    until("it is asked for long", async || endpoint.requests().len() >= 10).await;
    assert!(is_away(name));
    assert_untouched(&relay, name, &events).await;
    manner.becomes(ok);
    until_quiet(&relay, name).await.expect("quiet");
    assert_done(&relay, name, &events).await;
    relay.stop().await.expect("stopped");
    let came: Vec<String> = endpoint
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    let (first, rest) = came.split_at(came.iter().position(|version| version != "1").expect("the second"));
    assert!(first.iter().all(|version| version == "1"));
    assert_eq!(rest, (2..=20).map(|version| version.to_string()).collect::<Vec<_>>());
}

/// While others succeed a status that is about the event is the end of it, and nobody waits for anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_about_the_event_is_the_end_of_it_while_others_succeed() {
    for (number, answer) in ABOUT_THE_EVENT.into_iter().enumerate() {
        let name = format!("about-{number}");
        let outbox = Outbox::new();
        let mut events = Vec::new();
        for key in ["a", "bad", "b", "c"] {
            events.push(record(&outbox, key, 1).await);
        }
        let endpoint =
            Manner::is(move |key| Some(if key == "bad" { answer } else { "200 OK" })).endpoint().await;
        let sink = sink(&endpoint, Http::builder());
        let relay = relay_with(&outbox, &name, sink, |s| s).await;
        until_quiet(&relay, &name).await.expect("quiet");
        let dead = state(&relay, &name, events.remove(1)).await;
        let code = format!("http_{}", &answer[..3]);
        assert_eq!((dead.state, dead.attempts), (State::Dead, 1), "{dead:?}");
        assert_eq!(dead.error_code, Some(code));
        assert_done(&relay, &name, &events).await;
        assert!(!is_away(&name));
        relay.stop().await.expect("stopped");
        assert_eq!(endpoint.requests().len(), 4, "each once");
    }
}

/// One key of a hundred fails, in each way: it is charged by its policy, the others don't notice.
#[tokio::test(flavor = "multi_thread")]
async fn one_failing_key_of_a_hundred_dies_by_its_policy_and_nobody_is_away() {
    for (name, answer) in [("hangs", None), ("missing", Some("404 Where")), ("oops", Some("500 Oops"))] {
        let outbox = Outbox::new();
        let mut events = Vec::new();
        for key in 0..100 {
            events.push(record(&outbox, &key.to_string(), 1).await);
        }
        let endpoint =
            Manner::is(move |key| if key == "37" { answer } else { Some("200 OK") }).endpoint().await;
        let sink = sink(&endpoint, Http::builder());
        let relay = relay_with(&outbox, name, sink, |s| {
            s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(3))
        })
        .await;
        until("it is dead", async || {
            assert!(!is_away(name));
            state(&relay, name, events[37]).await.state == State::Dead
        })
        .await;
        let dead = state(&relay, name, events.remove(37)).await;
        assert_eq!(dead.attempts, 3);
        assert_done(&relay, name, &events).await;
        relay.stop().await.expect("stopped");
        assert_eq!(endpoint.requests().len(), 99 + 3);
    }
}

/// It goes away in the middle of a batch: what was under way then, while others were still answered, is not charged.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_goes_away_in_the_middle_of_a_batch_costs_nothing() {
    for round in 0..5 {
        let name = format!("middle-{round}");
        let outbox = Outbox::new();
        let mut events = Vec::new();
        for key in 0..300 {
            events.push(record(&outbox, &key.to_string(), 1).await);
        }
        let (count, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(60 + 7 * round)));
        let limit = Arc::clone(&most);
        let endpoint = Manner::is(move |_| {
            let up = count.fetch_add(1, Ordering::SeqCst) < limit.load(Ordering::SeqCst);
            Some(if up { "200 OK" } else { "503 Busy" })
        })
        .endpoint()
        .await;
        let sink = sink(&endpoint, Http::builder());
        let relay = relay(&outbox, &name, sink).await;
        until("it is away", async || is_away(&name)).await;
        assert!(endpoint.requests().len() < 60 + 7 * round + 150, "it is not asked with all of them");
        most.store(usize::MAX, Ordering::SeqCst);
        until_quiet(&relay, &name).await.expect("quiet");
        assert_done(&relay, &name, &events).await;
        relay.stop().await.expect("stopped");
    }
}

/// Each request that hangs takes its time: an endpoint that hangs is found out by a few, not by a batch of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_is_found_out_by_a_few_requests() {
    for (name, format) in [("hangs-single", Format::Binary), ("hangs-batched", Format::Batched(20))] {
        let outbox = Outbox::new();
        for key in 0..200 {
            record(&outbox, &key.to_string(), 1).await;
        }
        let endpoint = Endpoint::start(|_| None).await;
        let sink = sink(&endpoint, Http::builder().format(format));
        let relay = relay_with(&outbox, name, sink, |s| s.concurrency(4)).await;
        until("it is away", async || is_away(name)).await;
        assert!(endpoint.requests().len() <= 20, "{}", endpoint.requests().len());
        relay.stop().await.expect("stopped");
    }
}

/// The failing event has the lane to itself, has a row from an earlier life, or many behind it: others are found all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_event_keeps_no_other_key_from_being_tried() {
    let name = "finds-others";
    let outbox = Outbox::new();
    let endpoint = Manner::is(|key| Some(if key == "bad" { "500 Oops" } else { "200 OK" })).endpoint().await;
    let start = async || {
        let sink = sink(&endpoint, Http::builder());
        relay_with(&outbox, name, sink, |s| {
            s.batch(10).retry(Retry::fixed(Duration::from_millis(5)).max_attempts(3))
        })
        .await
    };
    let bad = record(&outbox, "bad", 1).await;
    let relay = start().await;
    until("it is away", async || is_away(name)).await;
    // Behind it are more of its key than a batch has.
    let mut behind = Vec::new();
    for version in 2..=15 {
        behind.push(record(&outbox, "bad", version).await);
    }
    let good = record(&outbox, "good", 1).await;
    relay.delivered(name, good, PATIENCE).await.expect("the good one comes through");
    until("it dies by its policy", async || state(&relay, name, bad).await.state == State::Dead).await;
    relay.stop().await.expect("stopped");
    // A new relay knows nothing: what has attempts on record already is not charged before there is a contrast.
    let relay = start().await;
    let more = record(&outbox, "more", 1).await;
    relay.delivered(name, more, PATIENCE).await.expect("comes through as well");
    relay.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_relay_charges_nothing_before_it_has_seen_a_success() {
    let name = "new-relay";
    let outbox = Outbox::new();
    let endpoint = Manner::is(|key| Some(if key == "bad" { "500 Oops" } else { "200 OK" })).endpoint().await;
    let start = async || {
        let sink = sink(&endpoint, Http::builder());
        relay_with(&outbox, name, sink, |s| {
            s.retry(Retry::fixed(Duration::from_millis(200)).max_attempts(50))
        })
        .await
    };
    let bad = record(&outbox, "bad", 1).await;
    record(&outbox, "good", 1).await;
    let relay = start().await;
    until("it is charged", async || state(&relay, name, bad).await.attempts > 0).await;
    relay.stop().await.expect("stopped");
    let relay = start().await;
    let (charged, tried) = (state(&relay, name, bad).await.attempts, endpoint.requests().len());
    until("it is tried again and again", async || endpoint.requests().len() >= tried + 10).await;
    assert!(is_away(name));
    assert_eq!(state(&relay, name, bad).await.attempts, charged);
    let good = record(&outbox, "good", 2).await;
    relay.delivered(name, good, PATIENCE).await.expect("delivered");
    until("it is charged", async || state(&relay, name, bad).await.attempts > charged).await;
    assert!(!is_away(name));
    relay.stop().await.expect("stopped");
}

/// After the pause that a failing key was given, another key that was recorded meanwhile is tried, not the same once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_not_tried_comes_first_after_a_pause() {
    let name = "others-first";
    let outbox = Outbox::new();
    let endpoint =
        Manner::is(|key| Some(if key == "bad" { "503 Busy\r\nretry-after: 3600" } else { "200 OK" }))
            .endpoint()
            .await;
    let sink = sink(&endpoint, Http::builder().longest_retry_after(Duration::from_millis(900)));
    let relay = relay(&outbox, name, sink).await;
    record(&outbox, "bad", 1).await;
    until("it is asked", async || !endpoint.requests().is_empty()).await;
    let good = record(&outbox, "good", 1).await;
    relay.delivered(name, good, PATIENCE).await.expect("delivered");
    relay.stop().await.expect("stopped");
    let keys: Vec<String> =
        endpoint.requests().iter().take(2).map(|request| request.header("ce-subject").to_owned()).collect();
    assert_eq!(keys, ["bad", "good"]);
}
