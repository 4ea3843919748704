//! Events over HTTP, to a real server on loopback.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postrider::store::{EventState, OptionalAttribute, OutboxSource, State, StateQuery};
use postrider::testing::{Outbox, until_quiet};
use postrider::{Envelope, NewEvent, Relay, Retry, Running, Uuid};
use postrider_http::{Format, Http, HttpBuilder, Secret};
use support::{Endpoint, Request};

async fn record(outbox: &Outbox, order: &str, version: i64) -> Uuid {
    let mut event = NewEvent::of("orders", "OrderPaid", "Order", order, &version).expect("an event");
    event.headers.set_tenant("Zürich");
    event.headers.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    outbox.record_alone(&event).await.expect("recorded")
}

async fn relay(outbox: &Outbox, sink: Http, retry: Retry) -> Running {
    Relay::new(outbox)
        .subscribe("hook", |s| {
            s.sink(sink)
                .retry(retry)
                .longest_pause(Duration::from_millis(50))
                .timeout(Duration::from_millis(500))
        })
        .start()
        .await
        .expect("started")
}

async fn state(relay: &Running, event_id: Uuid) -> EventState {
    let query = StateQuery { event_id: Some(event_id), ..StateQuery::default() };
    relay.store().states(&query).await.expect("states").pop().expect("a state")
}

fn sink(endpoint: &Endpoint, builder: HttpBuilder) -> Http {
    builder.build(&endpoint.url()).expect("a sink")
}

fn ok(_: &Request) -> Option<String> {
    Some("200 OK".to_owned())
}

#[tokio::test]
async fn a_request_of_an_envelope_has_the_fields_of_the_user_and_is_signed() {
    let endpoint = Endpoint::start(ok).await;
    let outbox = Outbox::new();
    let event = record(&outbox, "7", 1).await;
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let meta = Envelope::builder().field("tenant", "{header.tenant}").constant("version", &1);
    let envelope =
        Envelope::builder().field("eventId", "{id}").field("data", "{payload}").object("meta", meta);
    let envelope = envelope.build().expect("an envelope");
    let sink = sink(&endpoint, Http::builder().envelope(envelope).sign(secret));
    let relay = relay(&outbox, sink, Retry::default()).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let [request] = endpoint.requests().try_into().expect("one request");
    let body = format!(r#"{{"eventId":"{event}","data":1,"meta":{{"tenant":"Zürich","version":1}}}}"#);
    assert_eq!(String::from_utf8_lossy(&request.body), body);
    for (name, value) in [
        ("content-type", "application/json"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("webhook-id", event.to_string().as_str()),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert!(!request.header("webhook-signature").is_empty());
}

#[tokio::test]
async fn a_binary_request_has_the_payload_as_its_body_and_is_signed() {
    let endpoint = Endpoint::start(ok).await;
    let outbox = Outbox::builder().source("/shop").build();
    let event = record(&outbox, "7", 1).await;
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let sink = sink(&endpoint, Http::builder().sign(secret).bearer("let-me-in"));
    let relay = relay(&outbox, sink, Retry::default()).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let [request] = endpoint.requests().try_into().expect("one request");
    assert!(request.line.starts_with("POST /events?token=hush "));
    assert_eq!(request.body, b"1");
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", event.to_string().as_str()),
        ("ce-source", "/shop"),
        ("ce-type", "OrderPaid"),
        ("ce-subject", "7"),
        ("ce-tenant", "Z%C3%BCrich"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("authorization", "Bearer let-me-in"),
        ("webhook-id", event.to_string().as_str()),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    for absent in OptionalAttribute::ALL {
        assert_eq!(request.header(&format!("ce-{absent}")), "", "{absent} says nothing new");
    }
    assert!(request.header("webhook-signature").starts_with("v1,"));
    assert!(request.header("webhook-timestamp").parse::<i64>().is_ok_and(|time| time > 1_700_000_000));
}

#[tokio::test]
async fn attributes_that_were_asked_for_are_in_every_format() {
    let outbox = Outbox::new();
    record(&outbox, "7", 1).await;
    for format in [Format::Binary, Format::Structured, Format::Batched(2)] {
        let (endpoint, name) = (Endpoint::start(ok).await, format!("{format:?}"));
        let asked = [OptionalAttribute::Stream, OptionalAttribute::PartitionKey];
        let sink = sink(&endpoint, Http::builder().format(format).attributes(asked));
        let relay = Relay::new(&outbox).subscribe(&name, |s| s.sink(sink)).start().await.expect("started");
        until_quiet(&relay, &name).await.expect("quiet");
        relay.stop().await.expect("stopped");
        let [request] = endpoint.requests().try_into().expect("one request");
        let written = |attribute: &str| match format {
            Format::Binary => request.header(&format!("ce-{attribute}")).to_owned(),
            Format::Structured => request.json()[attribute].as_str().unwrap_or_default().to_owned(),
            Format::Batched(_) => request.json()[0][attribute].as_str().unwrap_or_default().to_owned(),
        };
        assert_eq!(
            (written("stream"), written("partitionkey")),
            ("orders".to_owned(), "7".to_owned()),
            "{name}"
        );
        assert_eq!(written("recordedtime"), "", "{name}: nobody asked for it");
    }
}

#[tokio::test]
async fn structured_and_batched_requests_are_json() {
    let outbox = Outbox::new();
    for version in 1..=5 {
        record(&outbox, &version.to_string(), version).await;
    }
    let structured = Endpoint::start(ok).await;
    let batched = Endpoint::start(ok).await;
    for (endpoint, format) in [(&structured, Format::Structured), (&batched, Format::Batched(2))] {
        let name = format!("{format:?}");
        let sink = sink(endpoint, Http::builder().format(format));
        let relay = Relay::new(&outbox).subscribe(&name, |s| s.sink(sink)).start().await.expect("started");
        until_quiet(&relay, &name).await.expect("quiet");
        relay.stop().await.expect("stopped");
    }
    assert_eq!(structured.requests().len(), 5);
    for request in structured.requests() {
        assert_eq!(request.header("content-type"), "application/cloudevents+json; charset=utf-8");
        assert_eq!(request.json()["subject"].as_str(), Some(request.json()["data"].to_string().as_str()));
    }
    let sizes: Vec<usize> =
        batched.requests().iter().map(|request| request.json().as_array().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(batched.requests()[2].json()[0]["data"], 5);
}

/// A receiver that drops what has an id that it knows must not drop other events: a batch that comes again with more in it is
/// another request.
#[tokio::test]
async fn the_id_of_a_request_follows_from_all_its_events() {
    let outbox = Outbox::new();
    let mut events = vec![record(&outbox, "1", 1).await, record(&outbox, "2", 2).await];
    let answers = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&answers);
    // The second request is the same as the first, the third has more: each is asked for a pause first.
    let endpoint = Endpoint::start(move |_| {
        let up = asked.load(Ordering::SeqCst) > 0;
        Some(if up { "200 OK" } else { "503 Busy\r\nretry-after: 0" }.to_owned())
    })
    .await;
    let secret = || Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let start = async || {
        let builder = Http::builder().format(Format::Batched(10)).sign(secret());
        relay(&outbox, sink(&endpoint, builder), Retry::fixed(Duration::from_millis(1))).await
    };
    let asked_with = async |events: usize, requests: usize| {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            assert!(Instant::now() < end, "it is asked with {events} events");
            let all = endpoint.requests();
            let of: Vec<String> = all
                .iter()
                .filter(|request| request.json().as_array().is_some_and(|all| all.len() == events))
                .map(|request| request.header("webhook-id").to_owned())
                .collect();
            if of.len() >= requests {
                return of;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let first = start().await;
    let two = asked_with(2, 1).await;
    let single = asked_with(1, 2).await;
    first.stop().await.expect("stopped");
    let second = start().await;
    assert_eq!(asked_with(2, 2).await, [two[0].clone(), two[0].clone()], "the same events, the same id");
    second.stop().await.expect("stopped");
    events.push(record(&outbox, "3", 3).await);
    let third = start().await;
    let three = asked_with(3, 1).await;
    assert_ne!(three[0], two[0], "more events, another id");
    for id in &single {
        assert!(events.iter().any(|event| event.to_string() == *id), "one event, its id: {id}");
    }
    assert!(events.iter().all(|event| event.to_string() != two[0] && event.to_string() != three[0]));
    answers.store(1, Ordering::SeqCst);
    until_quiet(&third, "hook").await.expect("quiet");
    third.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_batch_that_is_refused_is_sent_one_by_one() {
    let outbox = Outbox::new();
    let mut events = Vec::new();
    for version in 1..=4 {
        events.push(record(&outbox, &version.to_string(), version).await);
    }
    let endpoint = Endpoint::start(|request| {
        let bad =
            request.json().as_array().is_some_and(|events| events.iter().any(|event| event["data"] == 3));
        Some(if bad { "422 No" } else { "200 OK" }.to_owned())
    })
    .await;
    let sink = sink(&endpoint, Http::builder().format(Format::Batched(10)));
    let relay = relay(&outbox, sink, Retry::default()).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    for (index, event) in events.iter().enumerate() {
        let wanted = if index == 2 { State::Dead } else { State::Done };
        assert_eq!(state(&relay, *event).await.state, wanted, "{index}");
    }
    relay.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_status_decides_and_retry_after_is_kept() {
    let outbox = Outbox::new();
    let (slow, gone, moved, broken) = (
        record(&outbox, "slow", 1).await,
        record(&outbox, "gone", 1).await,
        record(&outbox, "moved", 1).await,
        record(&outbox, "broken", 1).await,
    );
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let endpoint = Endpoint::start(move |request| {
        Some(
            match request.header("ce-subject") {
                "slow" => "429 Slow Down\r\nretry-after: 3600",
                "gone" => "410 Gone",
                "moved" => "302 EventPage\r\nlocation: http://127.0.0.1:1/",
                _ if count.fetch_add(1, Ordering::SeqCst) < 2 => "503 Busy",
                _ => "204 No Content",
            }
            .to_owned(),
        )
    })
    .await;
    let sink = sink(&endpoint, Http::builder().longest_retry_after(Duration::from_millis(400)));
    let relay = relay(&outbox, sink, Retry::fixed(Duration::from_millis(10)).max_attempts(3)).await;
    relay.delivered("hook", broken, Duration::from_secs(10)).await.expect("delivered at last");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    let end = Instant::now() + Duration::from_secs(30);
    let waiting = loop {
        assert!(Instant::now() < end, "it is charged, now that another has succeeded");
        let waiting = state(&relay, slow).await;
        if waiting.attempts > 0 && waiting.state == State::Retrying {
            break waiting;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let pause = waiting.next_retry_at.expect("a time") - waiting.last_attempt_at.expect("a time");
    assert_eq!(pause, Duration::from_millis(400));
    until_quiet(&relay, "hook").await.expect("quiet");
    for (event, code) in [(gone, "http_410"), (moved, "http_302"), (slow, "http_429")] {
        let dead = state(&relay, event).await;
        assert_eq!((dead.state, dead.attempts), (State::Dead, 3));
        assert_eq!(dead.error_code.as_deref(), Some(code));
        let message = dead.error_message.unwrap_or_default();
        assert_eq!(message.contains("set the final URL"), event == moved, "{message}");
        assert!(!message.contains("hush"), "{message}");
    }
    relay.stop().await.expect("stopped");
}

#[tokio::test]
async fn an_endpoint_that_is_away_burns_no_attempts() {
    let outbox = Outbox::new();
    // Nobody's outgoing connection is given it, until the endpoint listens.
    let port = xtask::port::free().expect("a free port");
    let events =
        [record(&outbox, "a", 1).await, record(&outbox, "a", 2).await, record(&outbox, "b", 3).await];
    let sink = Http::builder().build(&format!("http://127.0.0.1:{port}/")).expect("a sink");
    let relay = relay(&outbox, sink, Retry::fixed(Duration::from_millis(1)).max_attempts(1)).await;
    // The lease is extended at each try that is refused.
    let (end, mut leases) = (Instant::now() + Duration::from_secs(30), HashSet::new());
    while leases.len() < 4 {
        assert!(Instant::now() < end, "it is tried again and again");
        leases.extend(state(&relay, events[0]).await.lease_until);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for event in events {
        let waiting = state(&relay, event).await;
        assert_eq!((waiting.state, waiting.attempts), (State::Processing, 0), "{waiting:?}");
    }
    let endpoint = Endpoint::start_on(port, ok).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let of_a: Vec<Vec<u8>> = endpoint
        .requests()
        .into_iter()
        .filter(|request| request.header("ce-subject") == "a")
        .map(|request| request.body)
        .collect();
    assert_eq!(of_a, [b"1", b"2"], "in order");
}

#[tokio::test]
async fn keys_go_at_once_and_a_key_in_order_until_one_fails() {
    let outbox = Outbox::new();
    for version in 1..=5 {
        for order in ["a", "b", "c"] {
            record(&outbox, order, version).await;
        }
    }
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    let endpoint = Endpoint::start(move |request| {
        let fails = request.header("ce-subject") == "b" && request.body == b"3";
        let fails = fails && count.fetch_add(1, Ordering::SeqCst) < 2;
        Some(if fails { "500 Oops" } else { "200 OK" }.to_owned())
    })
    .await;
    let sink = sink(&endpoint, Http::builder());
    let relay = relay(&outbox, sink, Retry::fixed(Duration::from_millis(5))).await;
    until_quiet(&relay, "hook").await.expect("quiet");
    relay.stop().await.expect("stopped");
    let of = |order: &str| -> Vec<String> {
        let of = endpoint.requests().into_iter().filter(|request| request.header("ce-subject") == order);
        of.map(|request| String::from_utf8(request.body).expect("text")).collect()
    };
    assert_eq!(of("a"), ["1", "2", "3", "4", "5"]);
    assert_eq!(of("b"), ["1", "2", "3", "3", "3", "4", "5"], "nothing after the third before it");
    assert_eq!(of("c"), ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn an_event_that_gets_no_answer_is_a_failure_without_the_address_in_it() {
    let outbox = Outbox::new();
    let (event, other) = (record(&outbox, "a", 1).await, record(&outbox, "b", 1).await);
    let endpoint = Endpoint::start(|request| match request.header("ce-subject") {
        "a" => None,
        _ => ok(request),
    })
    .await;
    let sink = sink(&endpoint, Http::builder());
    let relay = relay(&outbox, sink, Retry::fixed(Duration::from_millis(1)).max_attempts(1)).await;
    let began = Instant::now();
    until_quiet(&relay, "hook").await.expect("quiet");
    let dead = state(&relay, event).await;
    assert_eq!((dead.state, dead.error_code.as_deref()), (State::Dead, Some("timeout")));
    assert!(!dead.error_message.unwrap_or_default().contains("hush"));
    assert_eq!(state(&relay, other).await.state, State::Done);
    assert!(began.elapsed() < Duration::from_secs(10));
    relay.stop().await.expect("stopped");
}

#[test]
fn what_cannot_work_is_said_when_the_sink_is_made() {
    for url in ["", "hook.example", "ftp://host/", "http://"] {
        assert!(Http::builder().build(url).is_err(), "{url}");
    }
    assert!(Http::builder().format(Format::Batched(0)).build("http://host/").is_err());
    let error =
        Http::builder().bearer("line\nbreak").build("http://host/").err().expect("refused").to_string();
    assert!(!error.contains("break"), "{error}");
}
