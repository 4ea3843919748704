//! The relay as a program, when its endpoint is up and answers everything with a failure.

mod support;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use postrider_testkit::http::{self, Request};
use serde_json::Value;
use support::{Fixture, RelayProcess, until_true};

/// An endpoint that answers with the status that it is told.
#[derive(Clone, Default)]
struct Endpoint(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answer: &'static str,
    /// What it answers to a single event, by its body.
    to_one: Option<(&'static str, &'static str)>,
    failed: usize,
    /// The events that it took, by their bodies.
    took: Vec<String>,
}

impl Endpoint {
    fn start(answer: &'static str) -> (Self, SocketAddr) {
        let endpoint = Self::default();
        endpoint.with(|state| state.answer = answer);
        let serving = endpoint.clone();
        let address = http::listen(move |stream| serving.serve(stream));
        (endpoint, address)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes one request; nothing when the connection is over.
    fn serve(&self, mut stream: &TcpStream) -> Option<()> {
        let body = String::from_utf8_lossy(&Request::read(stream)?.body).into_owned();
        let answer = self.with(|state| {
            let to_one = state.to_one.filter(|(one, _)| *one == body).map(|(_, answer)| answer);
            let answer = to_one.unwrap_or(state.answer);
            if answer.starts_with('2') {
                state.took.push(body);
            } else {
                state.failed += 1;
            }
            answer
        });
        write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").ok()
    }
}

/// What `postrider status` says of the subscription.
fn whole_status(fixture: &Fixture) -> Value {
    let (code, text) = fixture.run(&["status", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let mut status: Value = serde_json::from_str(&text).expect("JSON");
    status["subscriptions"][0].take()
}

/// What the doctor finds of this: the verdict, and the sentence.
fn finding(fixture: &Fixture, about: &str) -> (String, String) {
    let (_, text) = fixture.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["about"] == about);
    let found = found.unwrap_or_else(|| panic!("nothing about {about}: {text}"));
    let text = |key: &str| found[key].as_str().expect("a text").to_owned();
    (text("verdict"), text("what"))
}

/// What `postrider status` says of the subscription: its state, and why its destination is away.
fn status(fixture: &Fixture) -> (String, Value) {
    let mut hook = whole_status(fixture);
    (hook["state"].as_str().expect("a state").to_owned(), hook["away"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_answers_with_a_failure_for_a_while_kills_nothing() {
    for answer in ["503 Busy", "429 Many", "401 Who", "404 Where", "400 Bad"] {
        let fixture = Fixture::new().await;
        fixture.run(&["migrate"]);
        let (endpoint, address) = Endpoint::start(answer);
        let settings = format!(
            "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [[subscription]]\nname = \"hook\"\nsink = \"hook\"\nretry = {{ every = \"50ms\", max_attempts = 1 }}\n\
             [sink.hook]\ntype = \"http\"\nurl = \"http://{address}/\"\nlongest_retry_after = \"5s\"\n\
             statuses = {{ 404 = \"event\" }}\n"
        );
        let mut relay_process = RelayProcess::with(fixture.folder.path(), &fixture.url, "hook", &settings);
        fixture.record(0, 6).await;
        until_true("it is asked again and again", || endpoint.with(|state| state.failed) >= 6).await;
        let breaker = |open: u8| format!("postrider_breaker_open{{subscription=\"hook\"}} {open}");
        until_true("the breaker is open", || {
            relay_process.get("/metrics").is_some_and(|text| text.contains(&breaker(1)))
        })
        .await;
        let said = relay_process.log();
        let reason = format!("the endpoint answered {}, and nothing else has succeeded since", &answer[..3]);
        assert!(said.contains("the destination is unavailable") && said.contains(&reason), "{said}");
        let (state, away) = status(&fixture);
        let why = away["reason"].as_str().expect("a reason");
        assert!(state == "away" && why.contains(&reason) && away["since"].is_string(), "{state}: {away}");
        until_true("the next probe shows", || status(&fixture).1["next_probe"].is_string()).await;
        let (_, text) = fixture.run(&["status"]);
        let line = "hook: its destination has been unavailable since 2";
        assert!(text.contains(" away ") && text.contains(line) && text.contains(&reason), "{text}");
        let (_, list) = fixture.run(&["subscriptions", "list"]);
        assert!(list.contains(" away "), "{list}");
        let (code, dead) = fixture.run(&["dead", "list", "--json"]);
        assert!(code == Some(0) && !dead.contains("http_"), "{answer}: {dead}");
        endpoint.with(|state| state.answer = "204 No Content");
        until_true("all are delivered", || endpoint.with(|state| state.took.len()) >= 6).await;
        until_true("the breaker is closed", || {
            relay_process.get("/metrics").is_some_and(|text| text.contains(&breaker(0)))
        })
        .await;
        assert!(
            relay_process.log().contains("the destination is available again"),
            "{}",
            relay_process.log()
        );
        until_true("status says that it is back", || status(&fixture) == ("idle".into(), Value::Null)).await;
        let (_, text) = fixture.run(&["status"]);
        assert!(!text.contains("away") && !text.contains("unavailable"), "{text}");
        relay_process.signal("TERM");
        assert_eq!(relay_process.ended(), Some(0), "{}", relay_process.log());
        let mut took = endpoint.with(|state| state.took.clone());
        took.sort();
        assert_eq!(
            took,
            (0..6).map(|number| format!("{{\"number\": {number}}}")).collect::<Vec<_>>(),
            "{answer}"
        );
        let (_, dead) = fixture.run(&["dead", "list", "--json"]);
        assert!(!dead.contains("http_"), "{answer}: {dead}");
    }
}

/// One event fails, then dies and holds its key, and then the whole endpoint is away: each has a state of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_a_dead_event_and_an_outage_are_told_apart() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let (endpoint, address) = Endpoint::start("204 No Content");
    endpoint.with(|state| state.to_one = Some(("{\"number\": 1}", "500 Oops")));
    let settings = format!(
        "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [[subscription]]\nname = \"hook\"\nsink = \"hook\"\non_dead = \"hold\"\n\
         retry = {{ every = \"2s\", max_attempts = 1000 }}\n\
         [sink.hook]\ntype = \"http\"\nurl = \"http://{address}/\"\n"
    );
    // The ninth has the key of the second.
    fixture.record(0, 9).await;
    let _relay_process = RelayProcess::with(fixture.folder.path(), &fixture.url, "hook", &settings);

    until_true("one has failed", || endpoint.with(|state| state.failed) > 0).await;
    until_true("it waits for a retry", || status(&fixture).0 == "waiting_for_retry").await;
    let waits = whole_status(&fixture);
    assert_eq!((&waits["retrying"], &waits["waiting"], &waits["dead"]), (&2.into(), &1.into(), &0.into()));
    assert_eq!(finding(&fixture, "dead events"), ("ok".into(), "none".into()));
    let (_, text) = fixture.run(&["status"]);
    assert!(!text.contains("dead event"), "{text}");

    endpoint.with(|state| state.to_one = Some(("{\"number\": 1}", "422 No")));
    until_true("it is held", || status(&fixture).0 == "held").await;
    let behind = "hook: 1 event waits behind 1 dead event";
    let (_, text) = fixture.run(&["status"]);
    assert!(
        text.contains(" held ") && text.contains(&format!("{behind}; see `postrider dead list")),
        "{text}"
    );
    assert_eq!(finding(&fixture, "dead events"), ("warn".into(), behind.into()));

    endpoint.with(|state| state.answer = "503 Busy");
    fixture.record(9, 10).await;
    until_true("its destination is away", || status(&fixture).0 == "away").await;
    let (verdict, what) = finding(&fixture, "destinations");
    assert!(verdict == "bad" && what.contains("the destination of hook has been unavailable for "), "{what}");
    assert!(what.contains("the endpoint answered 503"), "{what}");
    let holds = "hook: 1 dead event holds its key";
    assert_eq!(finding(&fixture, "dead events"), ("warn".into(), holds.into()));
    let (_, text) = fixture.run(&["status"]);
    assert!(text.contains(holds) && !text.contains("behind"), "{text}");

    endpoint.with(|state| state.answer = "204 No Content");
    until_true("it is held again", || status(&fixture).0 == "held").await;
    assert_eq!(endpoint.with(|state| state.took.len()), 8, "all but the dead one and the one behind it");
}
