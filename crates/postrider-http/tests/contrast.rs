//! Whose trouble a failure is: an endpoint that fails everything is away and costs nothing; one that fails a single key says
//! something about that key.

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postrider::store::{EventState, Source, State, StateQuery};
use postrider::testing::{Outbox, until_quiet};
use postrider::{NewEvent, Order, Relay, Retry, Running, Subscriber, Uuid};
use postrider_http::{Blame, Format, Http, HttpBuilder};
use postrider_testkit::until;
use support::{Endpoint, Request};

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
/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

static METRICS: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().expect("the only recorder"));

/// An endpoint that answers as it is told at the moment: by the key of a request.
#[derive(Clone)]
struct Manner(Arc<Mutex<Answer>>);

type Answer = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Manner {
    fn is(answer: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static) -> Self {
        let manner = Self(Arc::new(Mutex::new(Arc::new(|_| None))));
        manner.becomes(answer);
        manner
    }

    fn becomes(&self, answer: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(move |key| answer(key).map(ToOwned::to_owned));
    }

    async fn endpoint(&self) -> Endpoint {
        self.slow_endpoint(Duration::ZERO).await
    }

    /// One that takes its time.
    async fn slow_endpoint(&self, pause: Duration) -> Endpoint {
        let manner = self.clone();
        Endpoint::start_slow(pause, move |request: &Request| {
            let answer = Arc::clone(&manner.0.lock().unwrap_or_else(PoisonError::into_inner));
            answer(request.header("ce-subject"))
        })
        .await
    }
}

fn ok(_: &str) -> Option<&'static str> {
    Some("200 OK")
}

async fn record(outbox: &Outbox, order: &str, version: i64) -> Uuid {
    let event = NewEvent::of("orders", "OrderPaid", "Order", order, &version).expect("an event");
    outbox.record_alone(&event).await.expect("recorded")
}

/// A relay under which any attempt that is charged is the last.
async fn relay(outbox: &Outbox, name: &str, sink: Http) -> Running {
    relay_with(outbox, name, sink, |s| s.retry(Retry::fixed(Duration::from_millis(5)).max_attempts(1))).await
}

async fn relay_with(
    outbox: &Outbox,
    name: &str,
    sink: Http,
    more: impl FnOnce(Subscriber<Outbox>) -> Subscriber<Outbox>,
) -> Running {
    LazyLock::force(&METRICS);
    let usual = |s: Subscriber<Outbox>| {
        more(s.sink(sink).longest_pause(Duration::from_millis(40)).timeout(Duration::from_millis(300)))
    };
    Relay::new(outbox).subscribe(name, usual).start().await.expect("started")
}

fn sink(endpoint: &Endpoint, builder: HttpBuilder) -> Http {
    builder.build(&endpoint.url()).expect("a sink")
}

async fn state(relay: &Running, name: &str, event_id: Uuid) -> EventState {
    let query =
        StateQuery { subscription: Some(name.to_owned()), event_id: Some(event_id), ..StateQuery::default() };
    relay.store().states(&query).await.expect("states").pop().expect("a state")
}

/// Whether the breaker of a subscription is open.
fn is_away(name: &str) -> bool {
    METRICS.render().contains(&format!("postrider_breaker_open{{subscription=\"{name}\"}} 1"))
}

/// Nothing of these is charged, dead or done.
async fn assert_untouched(relay: &Running, name: &str, events: &[Uuid]) {
    for event in events {
        let waits = state(relay, name, *event).await;
        assert!(!matches!(waits.state, State::Dead | State::Done), "{name}: {waits:?}");
        // The try that is under way shows, and is not charged.
        let under_way = u32::from(waits.state == State::Processing && waits.attempts > 0);
        assert_eq!((waits.attempts - under_way, waits.error_code), (0, None), "{name}");
    }
}

async fn assert_done(relay: &Running, name: &str, events: &[Uuid]) {
    for event in events {
        let done = state(relay, name, *event).await;
        assert_eq!(done.state, State::Done, "{name}: {done:?}");
    }
}

fn keys_of(requests: &[Request]) -> HashSet<&str> {
    requests.iter().map(|request| request.header("ce-subject")).collect()
}

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
    // The heir has a way there, and delivers what was left.
    one.stop().await.expect("stopped");
    until_quiet(&two, name).await.expect("quiet");
    assert_done(&two, name, &events).await;
    two.stop().await.expect("stopped");
}

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

/// Which status is which is a setting: one that is the event's own in any case needs no contrast.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_can_be_made_a_rejection_or_the_endpoints_trouble() {
    let name = "settings";
    let outbox = Outbox::new();
    let bad = record(&outbox, "bad", 1).await;
    let endpoint = Manner::is(|_| Some("422 No")).endpoint().await;
    let sink = sink(&endpoint, Http::builder().status(422, Blame::Reject));
    let relay = relay_with(&outbox, name, sink, |s| s.order(Order::Strict)).await;
    until_quiet(&relay, name).await.expect("quiet");
    assert_eq!(state(&relay, name, bad).await.state, State::Dead);
    relay.stop().await.expect("stopped");
    let error = Http::builder().status(204, Blame::Event).build("http://host/").err().expect("refused");
    assert!(error.to_string().contains("between 300 and 599"), "{error}");
}
