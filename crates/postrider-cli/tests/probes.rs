//! A probe to a destination, and the question whether a relay is ready: what is asked of them past the log.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use postrider_testkit::address::nobody;
use serde_json::Value;
use support::log::said;
use support::{Fixture, Folder, RelayProcess, until_true};
use xtask::kafka::{Broker, Options};

/// An endpoint that answers every request with this status; what it was sent.
fn endpoint(status: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (requests, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let (mut request, mut part) = (String::new(), [0; 4096]);
            // The head says how long the body is.
            while let Ok(read) = stream.read(&mut part) {
                request.push_str(&String::from_utf8_lossy(&part[..read]));
                let length = request
                    .to_lowercase()
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.split("\r\n").next()?.trim().parse::<usize>().ok());
                let body = request.split_once("\r\n\r\n").map(|(_, body)| body.len());
                if read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
                    break;
                }
            }
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = requests.send(request);
        }
    });
    (address, heard)
}

/// Runs a command with these settings, and no database at all.
fn run(settings: &str, arguments: &[&str]) -> support::log::Said {
    let folder = Folder::new();
    let file = folder.file("p.toml", settings);
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).arg("--config").arg(file).env_clear();
    said(&command.output().expect("it runs"))
}

fn hook(address: SocketAddr) -> String {
    format!(
        "[[subscription]]\nname = \"s\"\nsink = \"hook\"\nstreams = [\"*\", \"orders\"]\n\
         [sink.hook]\ntype = \"http\"\nurl = \"http://{address}/planted-path\"\ntoken = \"planted-token\"\n"
    )
}

/// No database is named: nothing in the log is touched.
#[test]
fn a_probe_arrives_marked_as_one_and_needs_no_log() {
    let (address, heard) = endpoint("204 No Content");
    let probed = run(&hook(address), &["sinks", "test", "hook"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    assert!(probed.err.contains("sink hook accepted the probe"), "{}", probed.err);
    let request = heard.recv_timeout(postrider_testkit::PATIENCE).expect("a request");
    for part in [
        "ce-type: PostriderProbe",
        "ce-postriderprobe: true",
        "\"probe\": true",
        "authorization: Bearer planted-token",
    ] {
        assert!(request.to_lowercase().contains(&part.to_lowercase()), "{part}: {request}");
    }
    assert!(!probed.err.contains("planted"), "{}", probed.err);
    let answer = run(&hook(address), &["sinks", "test", "hook", "--json", "--type", "OrderPaid"]).json();
    assert_eq!(
        (&answer["taken"], &answer["stream"], &answer["event_type"]),
        (&true.into(), &"orders".into(), &"OrderPaid".into())
    );

    let out = "[sink.out]\ntype = \"stdout\"\n";
    let probed = run(out, &["sinks", "test", "out"]);
    let event: Value = serde_json::from_str(&probed.out).expect("one JSON object on standard output");
    assert_eq!(
        (&event["type"], &event["postriderprobe"]),
        (&"PostriderProbe".into(), &"true".into()),
        "{event}"
    );
}

#[test]
fn a_probe_that_is_not_taken_ends_with_1_and_the_reason() {
    let (refusing, _heard) = endpoint("422 Unprocessable Content");
    for (address, reason) in [(refusing, "422"), (nobody(), "connection refused")] {
        let sentence = run(&hook(address), &["sinks", "test", "hook"]).sentence(1);
        assert!(
            sentence.contains("sink hook did not accept the probe (stream orders): ")
                && sentence.contains(reason),
            "{sentence}"
        );
        assert!(!sentence.contains("planted"), "{sentence}");
        let answer = run(&hook(address), &["sinks", "test", "hook", "--json"]);
        let (code, answer) = (answer.code, serde_json::from_str::<Value>(&answer.out).expect("JSON"));
        assert_eq!((code, &answer["taken"]), (Some(1), &false.into()));
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(reason)), "{answer}");
    }
    let sentence = run(&hook(refusing), &["sinks", "test", "hoook"]).sentence(2);
    assert!(sentence.contains("there is no [sink.hoook]; did you mean \"hook\"?"), "{sentence}");
}

#[test]
fn a_probe_to_kafka_says_that_its_topic_is_missing() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 1).expect("a topic");
    let settings = format!("[sink.kafka]\ntype = \"kafka\"\nbrokers = \"{}\"\n", broker.bootstrap());
    let probed = run(&settings, &["sinks", "test", "kafka", "--stream", "orders"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    let sentence = run(&settings, &["sinks", "test", "kafka", "--stream", "payments"]).sentence(1);
    assert!(sentence.contains("(stream payments)") && sentence.contains("topic"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_is_0_while_the_relay_is_ready_and_1_otherwise() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let mut relay_process = fixture.relay("one");
    until_true("it is ready", || {
        relay_process.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    })
    .await;
    let address = relay_process.address().expect("an address");
    let port = address.rsplit_once(':').expect("a port").1.to_owned();
    let health = |listen: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("health").args(more).env_clear().env("POSTRIDER_HTTP_LISTEN", listen);
        said(&command.output().expect("it runs"))
    };
    assert_eq!(health(&address, &[]).good(), format!("ready: the relay at {address}\n"));
    // As in a container, where it listens for others as well.
    assert_eq!(health(&format!("0.0.0.0:{port}"), &["--json"]).json()["ready"], true);
    relay_process.signal("TERM");
    assert_eq!(relay_process.ended(), Some(0));
    let sentence = health(&address, &[]).sentence(1);
    assert!(
        sentence.contains(&format!("the relay at {address} is not ready: connection refused")),
        "{sentence}"
    );
    let answer = health(&address, &["--json"]);
    assert_eq!(answer.code, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&answer.out).expect("JSON")["ready"], false);

    // It waits for a database that is away, and is not ready.
    let settings = "[http]\nlisten = \"127.0.0.1:0\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let url = format!("postgres://nobody@{}/shop", nobody());
    let waiting = RelayProcess::with(fixture.folder.path(), &url, "waiting", settings);
    until_true("it answers", || waiting.get("/healthz").is_some()).await;
    let address = waiting.address().expect("an address");
    let sentence = health(&address, &[]).sentence(1);
    assert!(sentence.contains("is not ready: starting: the database has not answered yet"), "{sentence}");
    assert!(health("off", &[]).sentence(2).contains("http.listen is \"off\""));
    assert!(health("127.0.0.1:0", &[]).sentence(2).contains("set a fixed port"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_does_not_take_another_process_for_its_relay() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let relay = fixture.relay("one");
    until_true("it is ready", || {
        relay.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    })
    .await;
    let own = relay.address().expect("an address");
    let settings = std::fs::read_to_string(fixture.folder.path().join("one.toml")).expect("its settings");
    let health = |settings: &str, more: &[&str]| {
        let file = fixture.folder.file("asked.toml", settings);
        let mut command = support::postrider(&fixture.url, &["health"]);
        said(&command.args(more).arg("--config").arg(file).output().expect("it runs"))
    };
    let listens = |settings: &str, address: &str| settings.replace("127.0.0.1:0", address);
    assert_eq!(health(&listens(&settings, &own), &[]).good(), format!("ready: the relay at {own}\n"));

    // Something that answers everything with 200.
    let (stranger, _heard) = endpoint("200 OK");
    let sentence = health(&listens(&settings, &stranger.to_string()), &[]).sentence(1);
    assert!(sentence.contains("the server at this address is not a Postrider relay"), "{sentence}");
    assert_eq!(health(&settings, &["--json", "--address", &stranger.to_string()]).code, Some(1));

    // A relay, but another one.
    let other = settings.replace("name = \"out\"", "name = \"other\"");
    let sentence = health(&listens(&other, &own), &[]).sentence(1);
    assert!(sentence.contains("the relay at this address does not match these settings"), "{sentence}");
    // Who names the address means that relay.
    assert_eq!(health(&other, &["--address", &own]).good(), format!("ready: the relay at {own}\n"));

    // In a container the address is in the environment, and the health check is given no file: there is nothing to compare.
    let mut command = support::postrider(&fixture.url, &["health"]);
    let output = command.env("POSTRIDER_HTTP_LISTEN", &own).output().expect("it runs");
    assert_eq!(said(&output).good(), format!("ready: the relay at {own}\n"));

    // Where nobody set the port, whoever has it, the sentence says how to find the relay that went elsewhere.
    let unset = other.replace("[http]\nlisten = \"127.0.0.1:0\"\n", "");
    let sentence = health(&unset, &[]).sentence(1);
    assert!(sentence.contains("127.0.0.1:7678") && sentence.contains("--address"), "{sentence}");
}
