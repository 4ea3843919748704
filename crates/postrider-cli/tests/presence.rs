//! Who is there: relays that are known, and what is said of subscriptions by it.

mod support;

use serde_json::Value;
use support::{Fixture, RelayProcess, until_true};

const SETTINGS: &str = "[relay]\nlease = \"2s\"\nfigures_every = \"1s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
     [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";

fn json(fixture: &Fixture, arguments: &[&str]) -> Value {
    let (code, text) = fixture.run(arguments);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).expect("JSON")
}

fn status(fixture: &Fixture) -> Value {
    json(fixture, &["status", "--json"])["subscriptions"][0].take()
}

/// As if a minute had passed since the relays were last seen.
async fn a_minute_later(fixture: &Fixture) {
    let later = "update postrider.relay set seen_at = seen_at - interval '61 seconds'";
    sqlx::query(later).execute(&fixture.pool).await.expect("updated");
}

async fn ready(relay_process: &RelayProcess) {
    until_true("it is ready", || relay_process.get("/readyz").is_some_and(|answer| answer.contains("ready")))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_was_killed_is_told_from_one_that_is_idle() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let mut relay_process = fixture.relay("night-1");
    ready(&relay_process).await;
    until_true("it is idle", || status(&fixture)["state"] == "idle").await;
    let relays = json(&fixture, &["relays", "--json"]);
    let relay = &relays["relays"][0];
    assert_eq!((&relay["live"], &relay["version"]), (&true.into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(relay["subscriptions"][0]["subscription"], "out");
    let host = gethostname::gethostname();
    assert_eq!(relay["host"], *host.to_string_lossy(), "{relay}");
    assert!(relay["host"] != "unknown" && relay["started_at"].is_string(), "{relay}");
    assert_eq!(status(&fixture)["relays"][0], relay["name"]);
    let (code, text) = fixture.run(&["doctor", "--json"]);
    assert!(code == Some(0) && text.contains("every subscription has one"), "{text}");

    relay_process.signal("KILL");
    relay_process.ended();
    a_minute_later(&fixture).await;
    until_true("its lease has run out", || status(&fixture)["state"] == "no_relay").await;
    let gone = status(&fixture);
    assert_eq!((&gone["last_relay"]["name"], &gone["relays"]), (&relay["name"], &Value::Array(vec![])));
    let text = fixture.run(&["status"]).1;
    assert!(text.contains("out: no relay delivers it; relay-"), "{text}");
    assert!(text.contains("ago without stopping; start one"), "{text}");
    let text = fixture.run(&["relays"]).1;
    assert!(text.contains("gone") && text.lines().all(|line| line.len() <= 120), "{text}");
    fixture.record(0, 1).await;
    let (code, text) = fixture.run(&["doctor", "--json"]);
    assert_eq!(code, Some(0), "nothing is broken: {text}");
    assert!(text.contains("no relay runs out") && text.contains("disappeared without stopping"), "{text}");
    assert_eq!(fixture.run(&["subscriptions", "remove", "out", "--yes"]).0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_stops_is_known_no_longer() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let mut relay_process = fixture.relay("night-1");
    ready(&relay_process).await;
    relay_process.signal("TERM");
    assert_eq!(relay_process.ended(), Some(0));
    assert_eq!(json(&fixture, &["relays", "--json"])["relays"], Value::Array(vec![]));
    assert_eq!(status(&fixture)["state"], "no_relay");
    let text = fixture.run(&["relays"]).1;
    assert!(text.contains("no relay is running, and none disappeared in the last day"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_idle_relay_has_is_removed_by_force_only_and_the_relay_says_so() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let relay_process = RelayProcess::with(fixture.folder.path(), &fixture.url, "night-1", SETTINGS);
    ready(&relay_process).await;
    until_true("its lane is given back", || status(&fixture)["lanes"][0]["owner"].is_null()).await;
    let (code, text) = fixture.run(&["subscriptions", "remove", "out", "--yes"]);
    assert!(code == Some(1) && text.contains("stop it first, or force it"), "{text}");
    assert_eq!(fixture.run(&["subscriptions", "pause", "out", "--yes"]).0, Some(0));
    fixture.record(0, 3).await;
    let measured = async |gauge: &str, is: u32| {
        let line = format!("postrider_{gauge}{{subscription=\"out\",stream=\"orders\"}} {is}\n");
        let shown = || relay_process.get("/metrics").is_some_and(|answer| answer.contains(&line));
        until_true(&format!("{gauge} is {is}"), shown).await;
    };
    measured("pending", 3).await;
    assert_eq!(fixture.run(&["subscriptions", "remove", "out", "--yes", "--force"]).0, Some(0));
    // Nothing waits for a subscription that is gone.
    for gauge in ["pending", "undelivered", "oldest_undelivered_seconds"] {
        measured(gauge, 0).await;
    }
    let removed = "the subscription \"out\" was removed";
    until_true("it is not ready", || {
        relay_process
            .get("/readyz")
            .is_some_and(|answer| answer.contains(" 503 ") && answer.contains(removed))
    })
    .await;
    assert_eq!(relay_process.log().matches(removed).count(), 1, "said once: {}", relay_process.log());
    assert!(!relay_process.log().contains("the database does not answer"), "{}", relay_process.log());
    assert_eq!(fixture.run(&["subscriptions", "create", "out"]).0, Some(0));
    ready(&relay_process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_subscription_is_still_measured() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let mut relay_process = RelayProcess::with(fixture.folder.path(), &fixture.url, "night-1", SETTINGS);
    ready(&relay_process).await;
    fixture.record(0, 3).await;
    until_true("they are delivered", || relay_process.lines().len() == 3).await;
    let pause = ["subscriptions", "pause", "out", "--yes", "--who", "ada", "--why", "the supplier migrates"];
    assert_eq!(fixture.run(&pause).0, Some(0));
    until_true("nobody holds it", || status(&fixture)["lanes"][0]["owner"].is_null()).await;
    fixture.record(3, 8).await;
    let pending = "postrider_pending{subscription=\"out\",stream=\"orders\"} 5";
    until_true("they are measured", || {
        relay_process.get("/metrics").is_some_and(|answer| answer.contains(pending))
    })
    .await;
    let pause = status(&fixture)["pause"].take();
    assert_eq!((&pause["who"], &pause["why"]), (&"ada".into(), &"the supplier migrates".into()));
    let (code, text) = fixture.run(&["doctor", "--json"]);
    assert!(code == Some(0) && text.contains("out is paused by ada"), "{text}");
    assert!(text.contains("1 relay is running, and every subscription has one"), "{text}");
    let paused = "postrider_paused{subscription=\"out\"} 1\n";
    until_true("its pause is shown", || {
        relay_process.get("/metrics").is_some_and(|all| all.contains(paused))
    })
    .await;
    relay_process.signal("TERM");
    assert_eq!(relay_process.ended(), Some(0));
    let (code, text) = fixture.run(&["doctor", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("no relay runs out, which is paused, and events wait for it"), "{text}");
    let text = fixture.run(&["status"]).1;
    assert!(text.contains("out: paused by ada") && text.contains("out: no relay delivers it"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_that_do_not_fit_together_are_shown() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let named = SETTINGS.replace("[relay]\n", "[relay]\nname = \"twin\"\n");
    let settings = "concurrency = 4\npatience = \"7s\"\nlongest_pause = \"9s\"\n";
    let other = named.replace("sink = \"out\"\n", &format!("sink = \"out\"\n{settings}"));
    let other =
        other.replace("type = \"stdout\"\n", "type = \"stdout\"\nevent_type = \"shop.{event_type}\"\n");
    let first = RelayProcess::with(fixture.folder.path(), &fixture.url, "a", &named);
    ready(&first).await;
    let second = RelayProcess::with(fixture.folder.path(), &fixture.url, "b", &other);
    ready(&second).await;
    // The first one reports again within 20 s: until then it may have been killed when the second started.
    let conflicts = || json(&fixture, &["relays", "--json"])["conflicts"].to_string();
    until_true("both are there", || conflicts() != "[]").await;
    let conflicts = conflicts();
    assert!(conflicts.contains("two relays are named twin"), "{conflicts}");
    assert!(conflicts.contains("; give each a different relay.name"), "{conflicts}");
    let (_, text) = fixture.run(&["doctor", "--json"]);
    let findings = serde_json::from_str::<Value>(&text).expect("JSON")["findings"].take();
    let remedy = |words: &str| {
        let has = |finding: &&Value| finding["what"].as_str().is_some_and(|what| what.contains(words));
        findings.as_array().into_iter().flatten().find(has).map(|finding| finding["remedy"].to_string())
    };
    let of_names = remedy("two relays are named twin").expect("a finding");
    assert!(of_names.contains("a different relay.name"), "{of_names}");
    let of_settings = remedy("out: concurrency is 16").expect("a finding");
    assert!(of_settings.contains("the same settings"), "{of_settings}");
    assert!(conflicts.contains("out: concurrency is 16 in twin"), "{conflicts}");
    assert!(conflicts.contains("out: patience is ") && conflicts.contains("7s in twin"), "{conflicts}");
    assert!(conflicts.contains("out: longest_pause is ") && conflicts.contains("9s in twin"), "{conflicts}");
    assert!(conflicts.contains("out: sink is stdout"), "{conflicts}");
    assert!(!conflicts.contains("lanes is"), "only what differs: {conflicts}");
    until_true("the second one says so, too", || {
        let log = second.log();
        log.contains("another relay has the same name")
            && log.contains("settings=[\"concurrency\", \"longest_pause\", \"patience\", \"sink\"]")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_subscription_says_how_much_comes_again() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    fixture.record(0, 4).await;
    let relay_process = fixture.relay("night-1");
    ready(&relay_process).await;
    assert!(relay_process.log().contains("events=4"), "{}", relay_process.log());
    let audits = json(&fixture, &["audit", "--json"]);
    let why = audits[0]["why"].as_str().unwrap_or_default();
    let expected = "created; starts at the beginning; 4 events in the log will be delivered";
    assert_eq!((&audits[0]["what"], why), (&"subscribe".into(), expected), "{audits}");
}
