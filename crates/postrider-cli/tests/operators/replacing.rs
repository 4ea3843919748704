//! `dead replace` records a corrected event in place of a dead one, or changes nothing.

use std::io::Write;
use std::process::Stdio;

use postrider::store::{DeliveryChange, DeliveryFailure, Subscription};
use postrider::{NewEvent, Payload, Uuid};

use crate::support::log::{Log, Mess, Said, said};
use crate::support::{RelayProcess, postrider, until_true};

crate::on_both!(
    a_replaced_event_is_delivered_after_what_waited_behind_it,
    a_replacement_says_what_it_did_and_is_written_down,
    a_replacement_keeps_what_it_is_not_told_to_change,
    what_cannot_be_replaced_is_said_in_a_sentence_and_nothing_changes,
);

const RELAY: &str = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
     [[subscription]]\nname = \"mail\"\nsink = \"out\"\non_dead = \"hold\"\n[sink.out]\ntype = \"stdout\"\n";
const SURE: [&str; 5] = ["--yes", "--who", "ada", "--why", "the address was wrong"];

fn replace(log: &Log, id: Uuid, rest: &[&str]) -> Said {
    log.run(&[&["dead", "replace", &id.to_string()], rest].concat())
}

/// E8: under `hold` the events behind the dead one come first, then the corrected one; the dead one never.
async fn a_replaced_event_is_delivered_after_what_waited_behind_it(log: Log) {
    let mess = Mess::new(log).await;
    mess.free().await;
    let file = format!("@{}", mess.log.folder.file("mended.json", "{\"number\": 40}").display());
    replace(&mess.log, mess.dead, &[&["--payload", &file], &SURE[..]].concat()).good();
    let relay = RelayProcess::with(mess.log.folder.path(), &mess.log.url, "relay", RELAY);
    let of_gone = || {
        let lines = relay.lines().into_iter().filter(|(key, _)| key.contains("gone"));
        lines.map(|(_, number)| number).collect::<Vec<u64>>()
    };
    until_true("the corrected event is delivered", || of_gone().contains(&40)).await;
    assert_eq!(of_gone(), [5, 6, 40]);
}

/// E8: who, why, the old and the new id.
async fn a_replacement_says_what_it_did_and_is_written_down(log: Log) {
    let mess = Mess::new(log).await;
    let flags = [&["--payload", "{\"number\": 40}", "--dry-run"], &SURE[..]].concat();
    let text = replace(&mess.log, mess.dead, &flags).good();
    assert!(text.contains(&format!("would record a corrected event and discard {} for mail", mess.dead)));
    let dry = replace(&mess.log, mess.dead, &[&flags[..], &["--json"]].concat()).json();
    assert_eq!((&dry["dry_run"], &dry["event_id"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(mess.log.run(&["dead", "list", "--json"]).json().as_array().map(Vec::len), Some(1));

    let flags = [&["--payload", "{\"number\": 40}", "--json"], &SURE[..]].concat();
    let answer = replace(&mess.log, mess.dead, &flags).json();
    assert_eq!(answer["replaced"], mess.dead.to_string());
    assert_eq!((&answer["subscriptions"], &answer["dry_run"]), (&serde_json::json!(["mail"]), &false.into()));
    let new = answer["event_id"].as_str().expect("an id").to_owned();
    let page = mess.log.run(&["events", "show", &mess.dead.to_string()]).good();
    assert!(page.contains("mail: discarded"), "{page}");
    let audit = mess.log.run(&["audit", "--json"]).json();
    let entry = &audit[0];
    assert_eq!((&entry["who"], &entry["why"]), (&"ada".into(), &"the address was wrong".into()));
    assert_eq!(
        (&entry["what"], &entry["event_id"]),
        (&format!("replace by {new}").into(), &mess.dead.to_string().into())
    );
    assert_eq!(entry["subscription"], "mail");

    let sentence = replace(&mess.log, mess.dead, &flags).sentence(1);
    assert!(sentence.contains("is not dead for any subscription"), "a second time: {sentence}");
}

async fn a_replacement_keeps_what_it_is_not_told_to_change(log: Log) {
    for name in ["bill", "mail"] {
        log.store.subscribe(&Subscription::new(name)).await.expect("subscribe");
    }
    let payload = Payload::bytes("text/csv", "1;planted-payload").expect("bytes");
    let event = NewEvent::new("orders", "OrderPaid", "Order", "7", payload);
    let mut event = event.ordered_by("customer 1").sequenced().with_header("tenant", "acme");
    event.headers.set_correlation_id("c-1");
    event.headers.set_schema_version(1);
    let old = log.record_event(&event).await;
    for name in ["bill", "mail"] {
        let mut lease = log.claim(name).await;
        let dead = |_: &str, id| Some(DeliveryChange::dead(id, 1, DeliveryFailure::new("rejected", "no")));
        log.settle(&mut lease, dead).await;
    }
    // Bytes that are no JSON, by a pipe, for what was none.
    let (id, header) = (old.to_string(), ["--header", "schema_version=2"]);
    let flags = [&["dead", "replace", &id, "--payload", "-"], &header[..], &SURE[..]].concat();
    let mut child = postrider(&log.url, &flags);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("it starts");
    child.stdin.take().expect("its input").write_all(b"2;mended").expect("piped");
    let text = said(&child.wait_with_output().expect("it ends")).good();
    assert!(text.contains(&format!("in place of {old}, which was discarded for bill, mail")), "{text}");
    assert!(
        text.contains("every subscription gets it, also those that have delivered the old one"),
        "{text}"
    );
    let new = text.split_whitespace().nth(1).expect("an id").to_owned();

    let page = log.run(&["events", "show", &new, "--json"]).json();
    let event = &page["event"];
    assert_eq!((&event["stream"], &event["event_type"]), (&"orders".into(), &"OrderPaid".into()), "{event}");
    assert_eq!((&event["key"], &event["sequence"]), (&"customer 1".into(), &2.into()), "{event}");
    let headers = &event["headers"];
    assert_eq!(
        (&headers["tenant"], &headers["correlation_id"]),
        (&"acme".into(), &"c-1".into()),
        "{headers}"
    );
    assert_eq!(
        (&headers["causation_id"], headers["schema_version"].as_str()),
        (&old.to_string().into(), Some("2"))
    );
    assert_eq!(event["content_type"], "text/csv", "{event}");
}

async fn what_cannot_be_replaced_is_said_in_a_sentence_and_nothing_changes(log: Log) {
    let mess = Mess::new(log).await;
    let large = format!("\"{}\"", "x".repeat((1 << 20) + 1));
    let large = format!("@{}", mess.log.folder.file("large.json", &large).display());
    let (good, unknown) = ("{}", Uuid::new_v4());
    let why = ["--yes", "--why", "x"];
    for (id, rest, code, words) in [
        (unknown, &["--payload", good][..], 1, "there is no event"),
        (mess.done, &["--payload", good], 1, "is not dead for any subscription"),
        (mess.retrying, &["--payload", good], 1, "is not dead for any subscription"),
        (mess.dead, &["--payload", "{\"number\": planted-secret"], 2, "the payload is not JSON (line 1"),
        (mess.dead, &["--payload", "@no-such-file"], 2, "can't read the file no-such-file"),
        (mess.dead, &["--payload", &large], 2, "the limit"),
        (mess.dead, &["--payload", good, "--header", "a=\u{1}", "--header", "=b"], 2, "NAME=VALUE"),
    ] {
        let said = replace(&mess.log, id, &[rest, &why[..]].concat());
        assert_eq!(said.code, Some(code), "{rest:?}: {}", said.err);
        assert!(said.err.contains(words), "{words}: {}", said.err);
        assert!(!said.err.contains("planted"), "{}", said.err);
    }
    for (rest, words) in [
        (&["--payload", good, "--yes"][..], "replace needs a reason; pass --why REASON"),
        (&["--payload", good, "--yes", "--why", " "], "replace needs a reason; pass --why REASON"),
        (&["--payload", good, "--why", "x"], "pass --yes"),
    ] {
        let sentence = replace(&mess.log, mess.dead, rest).sentence(2);
        assert!(sentence.contains(words), "{rest:?}: {sentence}");
    }
    assert_eq!(mess.log.run(&["dead", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
    assert!(mess.log.run(&["audit", "--json"]).json().as_array().is_some_and(Vec::is_empty));
    let events = mess.log.run(&["events", "--aggregate", "Order:gone", "--json"]).json();
    assert_eq!(events.as_array().or(events["events"].as_array()).map(Vec::len), Some(3), "{events}");
}
