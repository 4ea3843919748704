//! Alerts as people get them: real processes, a real database, and a server that records what came.

mod deaths;
mod ear;
mod fixture;
mod outage;
mod presets;

use std::time::Duration;

use ear::Heard;
use fixture::Fixture;
use postrider_testkit::until_true;
use serde_json::Value;

/// What the first test sets.
const REPEAT: Duration = Duration::from_secs(4);
const SLACK: &str = "/planted-hook";

fn texts(heard: &[Heard]) -> Vec<String> {
    heard.iter().map(|each| each.body["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What PagerDuty was asked to do, and for which incident.
fn actions(heard: &[Heard]) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    heard.iter().map(|each| (word(&each.body["event_action"]), word(&each.body["dedup_key"]))).collect()
}

/// Every field of what a webhook was sent is in the documentation.
fn documented(heard: &[Heard]) {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/alerts.md"))
        .expect("the page");
    let table = page.split("## The webhook").nth(1).expect("its table");
    for key in heard.iter().flat_map(|each| each.body.as_object().expect("an object").keys()) {
        assert!(table.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

/// What, since when, and the next command.
#[track_caller]
fn is_told(text: &str, what: &str, next: &str) {
    assert!(text.starts_with(what) && text.ends_with(next), "{text}");
}

/// U13, L9: it is said once, again after the set time, and once more when it is over.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_told_once_again_after_the_set_time_and_when_it_is_over() {
    let fixture = Fixture::new().await;
    fixture.settings(
        "[[alert]]\nname = \"mail waits\"\nwhen = \"undelivered >= 3\"\nto = [\"pager\", \"log\"]\nrepeat = \"4s\"\n\
         [[alert]]\nwhen = \"retrying > 2\"\nto = [\"slack\", \"own\"]\n\
         [[alert]]\nwhen = \"undelivered > 3\"\nto = [\"slack\"]\n",
    );
    let ear = &fixture.ear;
    ear.always("/mail", Some(503));
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(3).await;
    until_true("it is told", || !ear.heard("/pager").is_empty() && !ear.heard(SLACK).is_empty()).await;
    let first = ear.heard("/pager");
    let Heard { body, .. } = &first[0];
    assert_eq!((&body["routing_key"], &body["event_action"]), (&"planted-key".into(), &"trigger".into()));
    let summary = body["payload"]["summary"].as_str().expect("a summary");
    is_told(
        summary,
        "mail waits (undelivered >= 3) for mail: it is 3, since 20",
        "; next: postrider status mail",
    );
    assert_eq!(body["payload"]["severity"], "error");
    assert_eq!(body["payload"]["custom_details"]["value"], 3.0);
    until_true("it is told again, and again", || ear.heard("/pager").len() > 2).await;
    let again = ear.heard("/pager");
    let (many, took) = (again.len() as u32 - 1, again[again.len() - 1].at - again[0].at);
    assert!(many * REPEAT <= took + Duration::from_secs(3), "{many} times more in {took:?}");
    ear.always("/mail", None);
    until_true("it is over", || {
        ear.heard("/own").len() > 1
            && actions(&ear.heard("/pager")).last().is_some_and(|(last, _)| last == "resolve")
    })
    .await;
    fixture.rounds(3).await;

    let told = actions(&ear.heard("/pager"));
    let (last, before) = told.split_last().expect("some");
    assert_eq!(last.0, "resolve");
    assert!(before.iter().all(|(action, _)| action == "trigger"), "{told:?}");
    assert!(told.iter().all(|(_, incident)| *incident == told[0].1), "one incident: {told:?}");
    let slack = texts(&ear.heard(SLACK));
    assert_eq!(slack.len(), 2, "without a time it is not repeated: {slack:?}");
    let next = "; next: postrider events --subscription mail --state retrying";
    is_told(&slack[0], ":red_circle: retrying &gt; 2 for mail: it is 3, since 20", next);
    assert!(slack[1].starts_with(":large_green_circle: resolved after "), "{slack:?}");
    let own = ear.heard("/own");
    assert!(own.iter().all(|each| each.token.as_deref() == Some("Bearer planted-token")));
    let states: Vec<&Value> = own.iter().map(|each| &each.body["state"]).collect();
    assert_eq!(states, ["firing", "resolved"]);
    documented(&own);
    assert_eq!((&own[0].body["subscription"], &own[0].body["limit"]), (&"mail".into(), &2.0.into()));
    let log = relay.log();
    assert!(log.contains("WARN") && log.contains("mail waits (undelivered >= 3) for mail: it is 3"), "{log}");
    relay.end();
    fixture.end().await;
}

/// One of two relays speaks. Killed, there is a next holder that neither repeats nor forgets.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_relays_sends_alerts_and_the_next_leader_neither_repeats_nor_forgets() {
    let fixture = Fixture::new().await;
    fixture.settings(
        "[[alert]]\nwhen = \"retrying >= 3\"\nto = [\"pager\"]\n[[alert]]\nwhen = \"dead >= 1\"\nto = [\"own\"]\n\
         [[alert]]\nwhen = \"event dies\"\nto = [\"slack\"]\n",
    );
    let ear = &fixture.ear;
    ear.always("/mail", Some(422));
    let relays = [fixture.start("one", &["relay"]), fixture.start("two", &["relay"])];
    fixture.record(1).await;
    until_true("its death is told", || ear.heard(SLACK).len() == 1 && ear.heard("/own").len() == 1).await;
    ear.always("/mail", Some(503));
    fixture.record(3).await;
    until_true("it is told", || !ear.heard("/pager").is_empty()).await;
    fixture.rounds(4).await;
    let heard = (ear.heard("/pager").len(), ear.heard("/own").len(), ear.heard(SLACK).len());
    assert_eq!(heard, (1, 1, 1), "one of the two speaks, once");

    let speaker = fixture.speaker().await.expect("somebody speaks");
    let [first, second] = &relays;
    let (dying, next_holder) =
        if speaker.starts_with(&format!("{}-", first.name)) { (first, second) } else { (second, first) };
    assert!(speaker.starts_with(&format!("{}-", dying.name)), "{speaker}");
    dying.signal("KILL");
    // They are given up while nobody speaks.
    ear.always("/mail", Some(422));
    let sql = "select event_id::text from postrider.delivery where state = 'dead'";
    let end = std::time::Instant::now() + Duration::from_secs(60);
    let dead: Vec<String> = loop {
        let dead: Vec<String> = sqlx::query_scalar(sql).fetch_all(&fixture.pool).await.expect("asked");
        if dead.len() == 4 {
            break dead;
        }
        assert!(std::time::Instant::now() < end, "the next holder does not deliver: {}", next_holder.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    until_true("the next holder speaks", || ear.heard(SLACK).len() >= 4 && ear.heard("/pager").len() >= 2)
        .await;
    fixture.rounds(3).await;
    assert!(
        fixture.speaker().await.is_some_and(|speaker| speaker.starts_with(&format!("{}-", next_holder.name)))
    );
    let told = actions(&ear.heard("/pager"));
    assert_eq!(told.iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(), ["trigger", "resolve"]);
    assert_eq!(told[0].1, told[1].1, "the next holder ends what the one before it began");
    assert_eq!(ear.heard("/own").len(), 1, "what fires still is not said again");
    let slack = texts(&ear.heard(SLACK));
    assert_eq!(slack.len(), 4, "{slack:?}");
    assert!(dead.iter().all(|id| slack.iter().filter(|text| text.contains(id)).count() == 1), "{slack:?}");
    drop(relays);
    fixture.end().await;
}

/// Who does not answer well is told later, holds up nobody else, and is complained of once.
#[tokio::test(flavor = "multi_thread")]
async fn who_answers_badly_at_first_is_told_in_the_end_and_holds_up_nobody() {
    let fixture = Fixture::new().await;
    fixture.settings("[[alert]]\nwhen = \"dead >= 1\"\nto = [\"own\", \"pager\", \"slack\"]\n");
    let ear = &fixture.ear;
    // The first request is never answered.
    ear.answers("/pager", &[0, 500]);
    ear.always(SLACK, Some(403));
    ear.answers("/mail", &[422]);
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(1).await;
    until_true("one is told", || ear.heard("/own").len() == 1).await;
    until_true("another is told", || ear.heard("/pager").len() == 3).await;
    until_true("it was tried in several rounds", || ear.heard(SLACK).len() >= 3).await;
    fixture.record(20).await;
    until_true("events are delivered meanwhile", || ear.heard("/mail").len() >= 21).await;
    ear.always(SLACK, None);
    let failed = ear.heard(SLACK).len();
    until_true("it is told in the end", || ear.heard(SLACK).len() > failed).await;
    fixture.rounds(3).await;
    assert!(ear.heard(SLACK).len() <= failed + 2, "once it was heard, it is not repeated");
    assert_eq!((ear.heard("/own").len(), ear.heard("/pager").len()), (1, 3), "nor to the others");
    let log = relay.log();
    assert_eq!(log.matches("can't send alerts to slack: it answered 403").count(), 1, "once: {log}");
    assert!(log.contains("alerts reach slack again"), "{log}");
    assert_eq!(log.matches("can't send alerts to pager: it did not answer in time").count(), 1, "{log}");
    relay.end();
    fixture.end().await;
}

/// A message that somebody refuses keeps no other from them.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_holds_up_no_other() {
    let fixture = Fixture::new().await;
    fixture.settings("[[alert]]\nwhen = \"event dies\"\nto = [\"own\"]\n");
    let ear = &fixture.ear;
    ear.always("/mail", Some(422));
    ear.refuses("aggregate_id", "1");
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(2).await;
    let told = |aggregate: &str| {
        ear.heard("/own").iter().filter(|each| each.body["aggregate_id"] == aggregate).count()
    };
    until_true("the other is told", || told("2") == 1 && told("1") > 1).await;
    fixture.rounds(2).await;
    assert_eq!(told("2"), 1, "and not again");
    relay.end();
    fixture.end().await;
}

/// U13, L8, L9, T4, T8: the presets, each condition just below its limit and just above it.
#[tokio::test(flavor = "multi_thread")]
async fn the_presets_fire_at_the_limits_of_their_systems() {
    let fixture = Fixture::new().await;
    fixture.settings(
        "[[alert]]\nname = \"U\"\npreset = \"saas\"\n[[alert]]\nname = \"L\"\npreset = \"ledger\"\n\
         [[alert]]\nname = \"T\"\npreset = \"transfers\"\n[[alert]]\nname = \"in all\"\nwhen = \"undelivered > 10000\"\nof = \"all\"\n",
    );
    presets::reach_every_limit(&fixture).await;
    let (code, rows) = presets::check(&fixture).await;
    assert!(code == Some(0) && rows.iter().all(|(_, _, fires)| !fires), "{rows:?}");
    assert_eq!(presets::value("U: undelivered > 1000", &rows), 999.0);
    assert_eq!(presets::value("U: dead > 10", &rows), 10.0);
    assert_eq!(presets::value("T: retrying > 100", &rows), 100.0);
    assert!((0.8..=1.0).contains(&presets::value("U: mean_attempts > 1", &rows)), "{rows:?}");
    assert_eq!(presets::value("L: event dies", &rows), 10.0, "how many are dead");

    presets::pass_almost_every_limit(&fixture).await;
    let (code, rows) = presets::check(&fixture).await;
    assert_eq!(code, Some(1), "{rows:?}");
    let quiet: Vec<&str> =
        rows.iter().filter(|(_, _, fires)| !fires).map(|(name, ..)| name.as_str()).collect();
    let expected = [
        "L: event dies",
        "L: undelivered_over(5m) >= 100",
        "L: unavailable_seconds > 60",
        "T: event dies",
        "T: unavailable_seconds > 60",
    ];
    assert_eq!(quiet, expected, "{rows:?}");
    assert_eq!(presets::value("L: undelivered_over(5m) >= 100", &rows), 99.0);
    presets::execute(
        &fixture,
        "update postrider.event set recorded_at = now() - interval '301 s' \
         where id in (select id from postrider.event order by id desc offset 5 limit 100)",
    )
    .await;
    let (_, rows) = presets::check(&fixture).await;
    assert!(
        rows.iter().any(|row| *row == ("L: undelivered_over(5m) >= 100".to_owned(), 100.0, true)),
        "{rows:?}"
    );
    let (code, table) = fixture.run(&["alerts", "check"]).await;
    assert_eq!(code, Some(1));
    let line = table.lines().find(|line| line.starts_with("U: undelivered > 1000")).expect("its line");
    assert!(line.contains("mail") && line.contains("firing"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("in all") && line.contains("(all)")), "{table}");
    fixture.end().await;
}

/// For those who deliver by a library: the same alerts in a process of their own.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_run_without_a_relay_and_can_be_tried() {
    let fixture = Fixture::new().await;
    let (code, said) = fixture.run(&["alerts", "run"]).await;
    assert!(code == Some(2) && said.contains("no [[alert]] is configured"), "{said}");
    fixture.settings("[[alert]]\nwhen = \"undelivered >= 2\"\nto = [\"own\"]\n[[alert]]\nwhen = \"dead > 1\"\nsubscription = \"mail\"\n");
    let (code, said) = fixture.run(&["alerts", "check"]).await;
    assert!(code == Some(0) && said.contains("no such subscription"), "{said}");
    let mut relay = fixture.start("relay", &["relay", "--set", "relay.alerts_every=1d"]);
    until_true("it works", || relay.log().contains("the relay is running")).await;
    relay.end();
    fixture.record(2).await;
    let mut watch = fixture.start("watch", &["alerts", "run"]);
    let ear = &fixture.ear;
    until_true("it is told", || !ear.heard("/own").is_empty()).await;
    let own = ear.heard("/own");
    let text = own[0].body["text"].as_str().expect("a text");
    is_told(text, "undelivered >= 2 for mail: it is 2, since 20", "; next: postrider status mail");
    assert_eq!(own[0].body["next"], "postrider status mail");
    watch.end();
    assert_eq!(fixture.speaker().await, None, "it gave the duty back");
    assert!(ear.heard("/mail").is_empty(), "and delivered nothing");

    let (code, said) = fixture.run(&["alerts", "test"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "own: sent\npager: sent\nslack: sent\n"));
    assert_eq!(
        actions(&ear.heard("/pager")).iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(),
        ["trigger", "resolve"]
    );
    assert!(texts(&ear.heard(SLACK))[0].contains("no action is needed"));
    ear.always(SLACK, Some(404));
    let (code, said) = fixture.run(&["alerts", "test", "slack"]).await;
    assert_eq!((code, said.as_str()), (Some(1), "slack: not sent: it answered 404\n"));
    let (code, said) = fixture.run(&["alerts", "test", "slack", "--json"]).await;
    assert_eq!(code, Some(1), "{said}");
    let told: Value = serde_json::from_str(&said).expect("JSON");
    let expected = serde_json::json!([{ "name": "slack", "told": false, "error": "it answered 404" }]);
    assert_eq!(told, expected);
    let (code, said) = fixture.run(&["alerts", "test", "nobody"]).await;
    assert!(code == Some(2) && said.contains("there is no [notify.nobody]"), "{said}");
    fixture.end().await;
}

/// What was said is not said again although it could not be written down, and the round after that failed altogether.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_and_not_written_down_is_not_said_again() {
    let fixture = Fixture::new().await;
    fixture.settings("[[alert]]\nwhen = \"undelivered >= 2\"\nto = [\"own\"]\n");
    let (code, said) = fixture.run(&["subscriptions", "create"]).await;
    assert_eq!(code, Some(0), "{said}");
    fixture.record(2).await;
    let sql = async |text: &'static str| {
        sqlx::raw_sql(text).execute(&fixture.pool).await.expect("done");
    };
    sql("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$; \
         create trigger refuse before update on postrider.duty for each row \
         when (new.note is distinct from old.note) execute function refuse()")
    .await;
    let mut watch = fixture.start("watch", &["alerts", "run"]);
    let ear = &fixture.ear;
    until_true("it is told", || !ear.heard("/own").is_empty()).await;
    until_true("it could not be written down", || watch.log().contains("can't evaluate alerts")).await;
    // Nothing can be looked up for some rounds.
    sql("alter table postrider.delivery rename to hidden").await;
    fixture.rounds(2).await;
    sql("alter table postrider.hidden rename to delivery; drop trigger refuse on postrider.duty").await;
    until_true("all is well again", || watch.log().contains("alerts are evaluated again")).await;
    fixture.rounds(2).await;
    assert_eq!(ear.heard("/own").len(), 1, "once: {}", watch.log());
    watch.end();
    fixture.end().await;
}

/// On SQLite it is the same.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_told_on_sqlite_too() {
    let fixture = Fixture::new().await;
    fixture.settings(
        "[[alert]]\npreset = \"ledger\"\nto = [\"slack\"]\n[[alert]]\nwhen = \"dead >= 1\"\nto = [\"own\"]\n",
    );
    let (path, url) = fixture.file("shop.db");
    let (code, said) = fixture.run(&["migrate", "--store", &url]).await;
    assert_eq!(code, Some(0), "{said}");
    fixture.ear.always("/mail", Some(422));
    let mut relay = fixture.start("relay", &["relay", "--store", &url]);
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the file");
    let insert = "insert into postrider_event (stream, event_type, aggregate_type, aggregate_id, payload) \
                  values ('orders', 'OrderPaid', 'Order', '7', '{}')";
    sqlx::query(insert).execute(&pool).await.expect("recorded");
    pool.close().await;
    let ear = &fixture.ear;
    until_true("it is told", || !ear.heard(SLACK).is_empty() && !ear.heard("/own").is_empty()).await;
    assert!(texts(&ear.heard(SLACK))[0].contains("OrderPaid of Order 7"));
    assert_eq!(ear.heard("/own")[0].body["source"], path.as_str());
    relay.end();
    let (code, said) = fixture.run(&["alerts", "check", "--store", &url]).await;
    assert!(code == Some(1) && said.contains("firing"), "{said}");
    fixture.end().await;
}
