//! `events` finds them, and shows one with all that belongs to it.

use postrider::{NewEvent, Payload, Uuid};
use serde_json::Value;

use crate::support::log::{Log, Mess};

crate::on_both!(
    events_are_found_by_what_they_are,
    events_are_found_by_where_they_stand,
    a_look_that_ends_early_says_how_to_go_on,
    an_event_is_shown_with_its_deliveries_and_its_chain,
    an_unknown_event_is_a_sentence,
);

fn ids(answer: &Value) -> Vec<String> {
    let events = answer["events"].as_array().expect("events");
    events.iter().map(|event| event["event_id"].as_str().expect("an id").to_owned()).collect()
}

fn texts<const N: usize>(ids: [Uuid; N]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

async fn events_are_found_by_what_they_are(log: Log) {
    let mess = Mess::new(log).await;
    let other = NewEvent::new("billing", "InvoiceSent", "Invoice", "1", Payload::Json("{}".into()));
    let other =
        mess.log.record_event(&other.with_header("correlation_id", "c-1").ordered_by("account-9")).await;
    let found = |flags: &[&str]| {
        let arguments = [&["events", "--json"], flags].concat();
        ids(&mess.log.run(&arguments).json())
    };
    for flags in [
        &["--stream", "bill*"][..],
        &["--type", "Invoice*"],
        &["--aggregate", "Invoice:1"],
        &["--aggregate", "Invoice"],
        &["--key", "account-9"],
        &["--correlation", "c-1"],
        &["--id", &other.to_string()],
        &["--limit", "1"],
    ] {
        assert_eq!(found(flags), texts([other]), "{flags:?}");
    }
    assert_eq!(found(&["--aggregate", "Order:gone"]), texts([mess.behind[1], mess.behind[0], mess.dead]));
    let oldest = found(&["--aggregate", "Order:gone", "--oldest-first"]);
    assert_eq!(oldest, texts([mess.dead, mess.behind[0], mess.behind[1]]));
    assert_eq!(found(&["--since", "1h"]).len(), 9, "the archive as well");
    assert_eq!(found(&["--since", "-1h"]).len(), 9);
    assert!(found(&["--from", "2001-01-01", "--until", "2001-01-02T00:00:00Z"]).is_empty());
    assert!(found(&["--stream", "nowhere"]).is_empty());

    let answer = mess.log.run(&["events", "--json", "--id", &mess.archived.to_string()]).json();
    let event = &answer["events"][0];
    assert_eq!((&event["archived"], &event["aggregate_type"]), (&true.into(), &"Order".into()));
    for key in ["id", "stream", "event_type", "key", "occurred_at", "recorded_at", "headers", "payload_bytes"]
    {
        assert!(!event[key].is_null(), "{key}: {event}");
    }
    let text = mess.log.run(&["events"]).good();
    assert!(text.contains("InvoiceSent") && text.contains(&other.to_string()), "{text}");
    assert!(!text.contains("planted-payload") && !answer.to_string().contains("planted-payload"), "{text}");
}

async fn events_are_found_by_where_they_stand(log: Log) {
    let mess = Mess::new(log).await;
    let found = |state: &str| {
        let arguments = ["events", "--json", "--subscription", "mail", "--state", state];
        let answer = mess.log.run(&arguments).json();
        assert!(answer["events"].as_array().expect("events").iter().all(|event| event["state"] == state));
        ids(&answer)
    };
    assert_eq!(found("dead"), texts([mess.dead]));
    assert_eq!(found("retrying"), texts([mess.retrying, mess.waiting, mess.behind[0], mess.behind[1]]));
    assert_eq!(found("pending"), texts([mess.pending]));
    assert_eq!(found("done"), texts([mess.done]));
    assert_eq!(found("discarded"), texts([]));
    let text = mess.log.run(&["events", "--subscription", "mail"]).good();
    for word in ["dead", "retrying", "pending", "done", "archived"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    let said = mess.log.run(&["events", "--state", "dead"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("--subscription"), "{}", said.err);
    let said = mess.log.run(&["events", "--subscription", "mail", "--state", "ded"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("pending, processing, retrying, dead, done, discarded"), "{}", said.err);
}

async fn a_look_that_ends_early_says_how_to_go_on(log: Log) {
    for number in 0..30 {
        log.record("a", number).await;
    }
    let said = log.run(&["events", "--stream", "nowhere", "--rows", "10"]);
    assert!(said.err.contains("no event matches so far: searched 10 events, back to"), "{}", said.err);
    let next = said.err.trim_end().rsplit(' ').next().expect("a number").to_owned();
    let answer = log.run(&["events", "--before", &next, "--json", "--limit", "100"]).json();
    assert_eq!((ids(&answer).len(), &answer["complete"]), (20, &true.into()), "{next}");
    let answer = log.run(&["events", "--limit", "5", "--json"]).json();
    assert_eq!(answer["complete"], false);
    let before = answer["reached"].to_string();
    let rest = log.run(&["events", "--limit", "100", "--json", "--before", &before]).json();
    assert_eq!(ids(&rest).len(), 25, "none twice, none left out");
}

async fn an_event_is_shown_with_its_deliveries_and_its_chain(log: Log) {
    let mess = Mess::new(log).await;
    let caused = |by: Uuid, kind: &str| {
        let event = NewEvent::new("orders", kind, "Order", "gone", Payload::Json("{}".into()));
        event.with_header("causation_id", by.to_string())
    };
    let child = mess.log.record_event(&caused(mess.dead, "ReceiptSent")).await;
    let grandchild = mess.log.record_event(&caused(child, "ReceiptRead")).await;
    let show = |flags: &[&str]| mess.log.run(&[&["events", "show"], flags].concat());

    let page = show(&[&mess.dead.to_string(), "--json"]).json();
    let mail = page["deliveries"].as_array().expect("deliveries");
    let mail = mail.iter().find(|delivery| delivery["subscription"] == "mail").expect("mail");
    assert_eq!((&mail["state"], &mail["attempts"]), (&"dead".into(), &3.into()));
    assert_eq!(
        (&mail["error_code"], &mail["error_message"]),
        (&"rejected".into(), &"there is no such address".into())
    );
    assert_eq!(page["followed"][1]["event_id"], grandchild.to_string());
    assert!(page.get("payload").is_none());
    let page = show(&[&grandchild.to_string(), "--json"]).json();
    assert_eq!(page["causes"][0]["event_id"], mess.dead.to_string());

    let text = show(&[&child.to_string()]).good();
    let lines: Vec<&str> = text.lines().collect();
    let place =
        |id: Uuid| lines.iter().rposition(|line| line.contains(&id.to_string())).expect("in the tree");
    assert!(place(mess.dead) < place(child) && place(child) < place(grandchild), "{text}");
    assert!(lines[place(child)].contains("<- this one"), "{text}");
    let text = show(&[&mess.retrying.to_string()]).good();
    assert!(text.contains("timeout: the shop does not answer"), "one line, whatever the error: {text}");
    assert!(!text.contains("planted-payload"), "{text}");
    assert!(show(&[&mess.retrying.to_string(), "--payload"]).good().contains("planted-payload"));
    let payload = show(&[&mess.retrying.to_string(), "--payload", "--json"]).json();
    assert_eq!(payload["payload"]["number"], 2);
    let text = show(&[&mess.waiting.to_string()]).good();
    assert!(text.contains("waits for an earlier event of its key"), "{text}");
    assert!(show(&[&mess.archived.to_string()]).good().contains("in the archive"));
}

async fn an_unknown_event_is_a_sentence(log: Log) {
    let nobody = Uuid::new_v4().to_string();
    for arguments in [&["events", "show", &nobody][..], &["dead", "show", &nobody]] {
        let sentence = log.run(arguments).sentence(1);
        assert!(sentence.contains(&format!("there is no event {nobody}")), "{sentence}");
    }
    let said = log.run(&["events", "--id", &nobody]);
    assert_eq!(said.code, Some(0));
    assert!(said.err.contains(&format!("no event {nobody} matches")), "{}", said.err);
    assert_eq!(log.run(&["events", "show", "7"]).code, Some(2));
}
