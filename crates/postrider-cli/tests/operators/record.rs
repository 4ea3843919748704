//! `record` takes events from the shell.

use std::io::Write;
use std::process::Stdio;

use crate::support::log::{Log, said};
use crate::support::postrider;

crate::on_both!(
    an_event_is_recorded_from_an_argument_a_file_or_a_pipe,
    what_cannot_be_recorded_is_said_in_a_sentence,
    an_id_that_is_taken_is_left_at_that_once,
);

const EVENT: [&str; 8] = ["record", "--stream", "orders", "--type", "OrderPaid", "--aggregate", "Order", "7"];

fn with<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&EVENT[..], rest].concat()
}

fn piped(log: &Log, bytes: &[u8]) -> crate::support::log::Said {
    let mut child = postrider(&log.url, &with(&["-"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // One that ends before it has read everything has said why.
    let _ = child.stdin.take().expect("its input").write_all(bytes);
    said(&child.wait_with_output().expect("it ends"))
}

async fn an_event_is_recorded_from_an_argument_a_file_or_a_pipe(log: Log) {
    let flags = [
        "{\"number\": 1}",
        "--header",
        "tenant=acme",
        "--key",
        "account-1",
        "--sequenced",
        "--max-attempts",
        "4",
    ];
    let id = log.run(&with(&flags)).good();
    let page = log.run(&["events", "show", id.trim(), "--payload", "--json"]).json();
    assert_eq!(
        (&page["payload"]["number"], &page["event"]["headers"]["tenant"]),
        (&1.into(), &"acme".into())
    );
    assert_eq!((&page["event"]["key"], &page["event"]["sequence"]), (&"account-1".into(), &1.into()));
    assert_eq!(page["event"]["max_attempts"], 4);
    let file = format!("@{}", log.folder.file("event.json", "{\"number\": 2}\n").display());
    let occurred = ["--occurred-at", "2026-01-31T08:00:00Z", "--json"];
    let answer = log.run(&with(&[&[file.as_str()], &occurred[..]].concat())).json();
    assert_eq!(answer["recorded"], true);
    let id = answer["event_id"].as_str().expect("an id").to_owned();
    let page = log.run(&["events", "show", &id, "--payload", "--json"]).json();
    assert_eq!(
        (&page["payload"]["number"], &page["event"]["occurred_at"]),
        (&2.into(), &"2026-01-31T08:00:00Z".into())
    );
    let id = piped(&log, b"{\"number\": 3}").good();
    let page = log.run(&["events", "show", id.trim(), "--payload", "--json"]).json();
    assert_eq!(page["payload"]["number"], 3);
    let bytes = format!("@{}", log.folder.file("event.avro", "\u{1}\u{2}").display());
    let id = log.run(&with(&[&bytes, "--content-type", "application/avro"])).good();
    let page = log.run(&["events", "show", id.trim(), "--payload"]).good();
    assert!(page.contains("application/avro, 2 bytes") && page.contains("0102"), "{page}");
}

async fn what_cannot_be_recorded_is_said_in_a_sentence(log: Log) {
    let large = format!("\"{}\"", "x".repeat(2 << 20));
    for (bytes, words) in [
        (&b"{\"card\": planted}"[..], "the payload is not JSON (line 1"),
        (b"{\"a\": \"\\u0000\"}", "NUL character"),
        (b"\"\xff\"", "must be UTF-8; the byte at offset 1 is invalid"),
        (b"", "the payload is not JSON"),
        (large.as_bytes(), "more than the limit of 1048576"),
    ] {
        let sentence = piped(&log, bytes).sentence(2);
        assert!(sentence.contains(words) && !sentence.contains("planted"), "{sentence}");
    }
    let long = "x".repeat(201);
    for (arguments, words) in [
        (with(&["@/nowhere/at/all"]), "can't read the file /nowhere/at/all: it does not exist"),
        (with(&["{}", "--key", ""]), "the ordering key must not be empty"),
        (
            vec!["record", "--stream", &long, "--type", "T", "--aggregate", "A", "1", "{}"],
            "the stream has 201 bytes",
        ),
        (with(&["{}", "--max-attempts", "0"]), "at least 1"),
    ] {
        let sentence = log.run(&arguments).sentence(2);
        assert!(sentence.contains(words), "{sentence}");
    }
    for arguments in [
        vec!["record", "--stream", "s", "--type", "T", "{}"],
        with(&["{}", "--id", "7"]),
        with(&["{}", "--header", "tenant"]),
        with(&["{}", "--once"]),
        with(&[]),
    ] {
        assert_eq!(log.run(&arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(log.run(&["events", "--json"]).json()["events"].as_array().map(Vec::len), Some(0));
}

async fn an_id_that_is_taken_is_left_at_that_once(log: Log) {
    let id = postrider::Uuid::new_v4().to_string();
    assert_eq!(log.run(&with(&["1", "--id", &id])).good().trim(), id);
    let sentence = log.run(&with(&["2", "--id", &id])).sentence(1);
    assert!(sentence.contains("already exists; pass --once to skip an event that exists"), "{sentence}");
    assert!(log.run(&with(&["2", "--id", &id, "--once"])).good().contains("nothing was recorded"));
    assert_eq!(log.run(&with(&["2", "--id", &id, "--once", "--json"])).json()["recorded"], false);
    let page = log.run(&["events", "show", &id, "--payload", "--json"]).json();
    assert_eq!(page["payload"], 1, "the first one stands");
}
