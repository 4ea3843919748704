//! `status` says how it is.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use postrider::Uuid;
use postrider::store::{DeliveryChange, DeliveryFailure, RelayReport, RelayRun, Subscription};
use serde_json::Value;

use crate::support::log::{Log, Mess};
use crate::support::postrider;

crate::on_both!(
    status_shows_what_is_wrong_and_who_holds_what,
    status_of_one_subscription_and_its_streams,
    a_long_backlog_is_estimated_and_marked,
    watching_goes_on_until_it_is_ended,
    what_others_wrote_commands_no_terminal,
);

const LONG: Duration = Duration::from_secs(600);

fn of<'a>(status: &'a Value, name: &str) -> &'a Value {
    let all = status["subscriptions"].as_array().expect("subscriptions");
    all.iter().find(|each| each["subscription"] == name).unwrap_or_else(|| panic!("no {name} in {status}"))
}

async fn status_shows_what_is_wrong_and_who_holds_what(log: Log) {
    let mess = Mess::new(log).await;
    let status = mess.log.run(&["status", "--json"]).json();
    let mail = of(&status, "mail");
    assert_eq!(mail["state"], "delivering");
    assert_eq!((&mail["pending"], &mail["dead"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(mail["retrying"], 4, "the one that failed, and the three behind it and the dead one: {mail}");
    assert_eq!(mail["estimated"], false);
    assert!(mail["oldest_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{mail}");
    assert_eq!(mail["lanes"][0]["owner"], "relay-1");
    assert_eq!(mail["lanes"][0]["behind"], 1);
    assert!(mail["lanes"][0]["lease_until"].as_str().is_some_and(|until| until.contains('T')), "{mail}");
    assert_eq!(
        (&of(&status, "resting")["state"], &of(&status, "resting")["paused"]),
        (&"paused".into(), &true.into())
    );
    let growing = of(&status, "growing");
    assert_eq!((&growing["state"], &growing["lanes_next"]), (&"idle".into(), &3.into()));
    let pause = &of(&status, "resting")["pause"];
    assert!(pause["who"] == "ada" && pause["since"].is_string(), "{pause}");
    assert_eq!((&mail["waiting"], mail["next_retry_at"].is_string()), (&3.into(), true));
    assert!(status["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{status}");

    let text = mess.log.run(&["status"]).good();
    for word in [
        "delivering",
        "paused by ada since",
        "changing from 1 to 3",
        "mail: 1 dead event holds its key; see `postrider dead list --subscription mail`",
        "relay-1",
        "nobody",
        "RETRYING",
        "LAG",
    ] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains('~'), "plain, and nothing is estimated:\n{text}");
}

async fn status_of_one_subscription_and_its_streams(log: Log) {
    let mess = Mess::new(log).await;
    let text = mess.log.run(&["status", "mail", "--streams"]).good();
    assert!(text.contains("orders") && !text.contains("growing"), "{text}");
    let sentence = mess.log.run(&["status", "mial"]).sentence(1);
    assert!(sentence.contains("there is no subscription \"mial\"; did you mean \"mail\"?"), "{sentence}");
}

async fn a_long_backlog_is_estimated_and_marked(log: Log) {
    log.run(&["subscriptions", "create", "all"]).good();
    log.run(&["subscriptions", "create", "half", "--type", "Even"]).good();
    log.fill(60_000).await;
    let status = log.run(&["status", "--json"]).json();
    assert_eq!(of(&status, "all")["estimated"], true);
    assert_eq!(of(&status, "all")["pending"], 60_000);
    let half = of(&status, "half")["pending"].as_u64().expect("a number");
    assert!((29_000..31_000).contains(&half), "the filter counts: {half}");
    assert_eq!(of(&status, "all")["state"], "no_relay");
    let text = log.run(&["status"]).good();
    assert!(text.contains("~60,000") && text.contains("an estimate"), "{text}");
}

async fn watching_goes_on_until_it_is_ended(log: Log) {
    let mess = Mess::new(log).await;
    let mut child = postrider(&mess.log.url, &["status", "--watch=100ms", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a line").expect("text");
        let status: Value = serde_json::from_str(&line).expect("a JSON object a line");
        assert_eq!(of(&status, "mail")["dead"], 1);
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Names, reasons and hosts are what somebody chose: on a terminal they are letters, and one line.
async fn what_others_wrote_commands_no_terminal(log: Log) {
    const EVIL: &str = "a\u{1b}]0;b\u{7}\u{9b}2J\u{202e}c\nd\r";
    for name in [EVIL, "mail"] {
        log.store.subscribe(&Subscription::new(name)).await.expect("subscribe");
    }
    let report = |subscription: &str| RelayReport {
        id: Uuid::now_v7(),
        name: EVIL.to_owned(),
        host: EVIL.to_owned(),
        process: 1,
        version: "1".to_owned(),
        runs: vec![RelayRun { subscription: subscription.to_owned(), ..RelayRun::default() }],
    };
    let (one, two) = (report("mail"), report(EVIL));
    for report in [&one, &two, &one] {
        log.store.heartbeat(report).await.expect("a heartbeat");
    }
    let event = log.record("1", 1).await;
    let mut lease = log.store.claim("mail", EVIL, LONG).await.expect("claim").expect("a lane");
    log.settle(&mut lease, |_, event| {
        Some(DeliveryChange::retrying(event, 1, LONG, DeliveryFailure::new("http_500", EVIL)))
    })
    .await;
    let pause = log.run(&["subscriptions", "pause", EVIL, "--yes", "--who", EVIL, "--why", EVIL]);
    let event = event.to_string();
    for (said, shown) in [
        (pause, "is paused; deliveries in flight finish"),
        (log.run(&["status"]), "paused by a ]0;b  2J c d  since "),
        (log.run(&["relays"]), "two relays are named a ]0;b  2J c d "),
        (log.run(&["audit"]), "pause"),
        (log.run(&["subscriptions", "list"]), "paused"),
        (log.run(&["events", "show", &event]), "http_500: a ]0;b"),
        (log.run(&["subscriptions", "resume", &format!("{EVIL}?")]), "there is no subscription"),
    ] {
        let text = said.out + &said.err;
        assert!(text.contains(shown), "{shown}: {text:?}");
        let obeyed = |letter: &char| letter.is_control() && *letter != '\n' || *letter == '\u{202e}';
        assert_eq!(text.chars().find(obeyed), None, "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("d ")), "one line each: {text}");
    }
}
