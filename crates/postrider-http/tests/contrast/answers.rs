//! What single answers mean: to several events at once, with a pause, with a status of one's own.

use std::time::Duration;

use postrider::store::State;
use postrider::testing::{Outbox, until_quiet};
use postrider::{Order, Retry};
use postrider_http::{Format, Http, StatusRule};
use postrider_testkit::until;

use crate::manner::*;
use crate::support::{Endpoint, Request};

/// What an answer stands for shows when each is sent alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_batched_request_that_fails_blames_only_the_event_that_fails_alone() {
    for (name, answer, attempts) in [
        ("batched-oops", Some("500 Oops"), 2),
        ("batched-no", Some("422 No"), 1),
        ("batched-hangs", None, 2),
        ("batched-busy", Some("503 Busy\r\nretry-after: 0"), 2),
        ("batched-large", Some("413 Large\r\nretry-after: 0"), 1),
    ] {
        let outbox = Outbox::new();
        let mut events = Vec::new();
        for version in 1..=12 {
            events.push(record(&outbox, &version.to_string(), version).await);
        }
        let endpoint = Endpoint::start(move |request| {
            let bad = request.json().as_array().is_some_and(|all| all.iter().any(|event| event["data"] == 3));
            if bad { answer.map(ToOwned::to_owned) } else { Some("200 OK".to_owned()) }
        })
        .await;
        let sink = sink(&endpoint, Http::builder().format(Format::Batched(5)));
        let relay = relay_with(&outbox, name, sink, |s| {
            s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(2))
        })
        .await;
        until_quiet(&relay, name).await.expect("quiet");
        let dead = state(&relay, name, events.remove(2)).await;
        assert_eq!((dead.state, dead.attempts), (State::Dead, attempts), "{name}: {dead:?}");
        assert_done(&relay, name, &events).await;
        let several = |request: &&Request| {
            let events = request.json();
            let events = events.as_array().expect("a batch");
            events.len() > 1 && events.iter().any(|event| event["data"] == 3)
        };
        assert_eq!(endpoint.requests().iter().filter(several).count(), 1, "{name}: from then on alone");
        assert!(!is_away(name));
        relay.stop().await.expect("stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batched_requests_to_an_endpoint_that_is_down_cost_nothing() {
    for (name, answer) in [
        ("batched-503", Some("503 Busy")),
        ("batched-429", Some("429 Many\r\nretry-after: 0")),
        ("batched-400", Some("400 Bad")),
        ("batched-none", None),
    ] {
        let outbox = Outbox::new();
        let manner = Manner::is(move |_| answer);
        let endpoint = manner.endpoint().await;
        let mut events = Vec::new();
        for version in 1..=12 {
            events.push(record(&outbox, &(version % 5).to_string(), version).await);
        }
        let sink = sink(&endpoint, Http::builder().format(Format::Batched(5)));
        let relay = relay(&outbox, name, sink).await;
        until("it is asked again and again", async || endpoint.requests().len() >= 8).await;
        assert!(is_away(name), "{name}");
        assert_untouched(&relay, name, &events).await;
        manner.becomes(ok);
        until_quiet(&relay, name).await.expect("quiet");
        assert_done(&relay, name, &events).await;
        relay.stop().await.expect("stopped");
    }
}

/// A pause that is asked for is kept to while an endpoint is away, up to a limit; also where the answer comes later than a batch
/// waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_the_pause_up_to_its_limit() {
    let late = Duration::from_millis(120);
    for (name, keys, late) in
        [("retry-after", &["a", "b"][..], Duration::ZERO), ("retry-after-late", &["a"], late)]
    {
        let outbox = Outbox::new();
        let manner = Manner::is(|_| Some("503 Busy\r\nretry-after: 3600"));
        let endpoint = manner.slow_endpoint(late).await;
        let mut events = Vec::new();
        for key in keys {
            events.push(record(&outbox, key, 1).await);
        }
        let sink = sink(&endpoint, Http::builder().longest_retry_after(Duration::from_millis(900)));
        let relay = relay_with(&outbox, name, sink, |s| s.patience(Duration::from_millis(10))).await;
        until("it is asked again", async || endpoint.requests().len() >= 4).await;
        let requests = endpoint.requests();
        manner.becomes(ok);
        until_quiet(&relay, name).await.expect("quiet");
        assert_done(&relay, name, &events).await;
        relay.stop().await.expect("stopped");
        // At first all of them are asked with at once.
        let alone = &requests[keys.len() - 1..];
        let pauses: Vec<Duration> = alone.windows(2).map(|two| two[1].at - two[0].at).collect();
        assert!(pauses.len() >= 2, "{name}: {pauses:?}");
        assert!(
            pauses.iter().all(|pause| pause.as_millis() >= 900 && pause.as_secs() < 10),
            "{name}: {pauses:?}"
        );
    }
}

/// Which status is which is a setting: one that is the event's own in any case needs no contrast.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_can_be_made_a_rejection_or_the_endpoints_trouble() {
    let name = "settings";
    let outbox = Outbox::new();
    let bad = record(&outbox, "bad", 1).await;
    let endpoint = Manner::is(|_| Some("422 No")).endpoint().await;
    let sink = sink(&endpoint, Http::builder().status(422, StatusRule::Reject));
    let relay = relay_with(&outbox, name, sink, |s| s.order(Order::Strict)).await;
    until_quiet(&relay, name).await.expect("quiet");
    assert_eq!(state(&relay, name, bad).await.state, State::Dead);
    relay.stop().await.expect("stopped");
    let error = Http::builder().status(204, StatusRule::Event).build("http://host/").err().expect("refused");
    assert!(error.to_string().contains("between 300 and 599"), "{error}");
}
