//! Who is woken when events wait for Kafka.

use ledger::story::proxy::Proxy;
use ledger::story::stage::TopicOption;
use postrider_testkit::{address, until_true};
use time::Duration;

use crate::support::{deposit, ledger_at, now, stage};

/// L9: 99 events that wait for over 5 minutes wake nobody, the 100th does; it is resolved when they are delivered.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_events_that_wait_for_five_minutes_wake_somebody() {
    let mut stage = stage(TopicOption::A).await;
    let port = address::kafka().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
    let proxy = Proxy::to(port).await;
    proxy.open(false);
    stage.relay_brokers = proxy.bootstrap();
    let earlier = ledger_at(&stage.url, now() - Duration::minutes(6)).await;
    for transaction in 1..=99 {
        deposit(&earlier, transaction, transaction % 7 + 1, 1).await.expect("posted");
    }
    // These wait, too, but not for so long.
    for transaction in 101..=110 {
        deposit(&stage.ledger, transaction, 1, 1).await.expect("posted");
    }
    let _relay = stage.relay("relay");
    stage.rounds(3).await;
    assert!(stage.pagerduty.requests().is_empty(), "99 are quiet: {:?}", stage.pagerduty.requests());
    deposit(&earlier, 100, 1, 1).await.expect("posted");
    until_true("somebody is woken", || !stage.pagerduty.requests().is_empty()).await;
    let body = &stage.pagerduty.requests()[0].body;
    assert_eq!((&body["event_action"], &body["routing_key"]), (&"trigger".into(), &"key".into()));
    let summary = body["payload"]["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("undelivered_over(5m) >= 100 for ledger-to-kafka"), "{summary}");
    assert!(summary.contains("it is 100,"), "the younger don't count: {summary}");
    assert!(summary.ends_with("next: postrider status ledger-to-kafka"), "what to do next: {summary}");

    proxy.open(true);
    stage.all_processed().await;
    until_true("it is over", || {
        stage.pagerduty.requests().iter().any(|request| request.body["event_action"] == "resolve")
    })
    .await;
    let told = stage.pagerduty.requests();
    assert_eq!(told.len(), 2, "one incident: {told:?}");
    assert_eq!(told[0].body["dedup_key"], told[1].body["dedup_key"]);
    assert!(stage.slack.requests().is_empty(), "no event died");
}

/// L8, L9: the Compose file tells Slack and PagerDuty by a process that takes both.
#[tokio::test(flavor = "multi_thread")]
async fn whom_the_compose_file_names_takes_alerts() {
    const COMPOSE: &str = include_str!("../../compose.yaml");
    let stage = stage(TopicOption::A).await;
    let (_stub, address) = stage.serving("stub-alerts").await;
    // As in the file, with the address that the stub has here.
    let url = |name: &str| {
        let mut lines = COMPOSE.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        let url = lines.next().expect("a line").trim_matches('"').to_owned();
        url.replace("http://stub-alerts:8080", &address)
    };
    assert!(COMPOSE.contains(r#"command: ["/target/release/ledger", "stub-alerts"]"#), "it is started");
    let settings = stage.settings("alerts", &[]);
    let mut test = stage.postrider(&settings, &["alerts", "test"]);
    test.env("SLACK_URL", url("SLACK_URL")).env("PAGERDUTY_URL", url("PAGERDUTY_URL"));
    let output = test.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let told = story::process::client().get(format!("{address}/told")).send().await.expect("an answer");
    let told: Vec<serde_json::Value> = told.json().await.expect("JSON");
    let paths: Vec<&str> = told.iter().filter_map(|each| each["path"].as_str()).collect();
    assert_eq!(paths.iter().filter(|path| **path == "/slack").count(), 1, "{paths:?}");
    assert_eq!(
        paths.iter().filter(|path| **path == "/pagerduty").count(),
        2,
        "set off and resolved: {paths:?}"
    );
}
