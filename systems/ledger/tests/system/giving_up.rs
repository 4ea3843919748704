//! An event that Kafka refuses again and again, on a mock that refuses as it is told.

use ledger::adapters::figures::Figures;
use ledger::adapters::outbox::event_id;
use ledger::story::stage::{Stage, TopicOption};
use ledger::story::topic::records;
use postrider_testkit::{Logged, http, until, until_true};
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{deposit, program};

/// A broker's answer that is nobody's outage: the event is tried again.
const REFUSAL: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUEST;

type Row = (String, i64, Option<OffsetDateTime>);

async fn row(stage: &Stage, transaction: i64) -> Row {
    let sql =
        "select status, cast(retry_count as signed), processed_at from outbox_event where aggregate_id = ?";
    sqlx::query_as(sql).bind(transaction).fetch_one(stage.ledger.pool()).await.expect("a row")
}

/// The metrics of a relay.
fn metrics(relay: &Logged) -> String {
    let log = relay.log();
    let address = log.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next());
    http::get(address.expect("an address"), "/metrics").expect("metrics")
}

/// The sum of all lines of a metric.
fn metric(text: &str, name: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

fn pauses(stage: &Stage, id: &str) -> Vec<f64> {
    let shown: Value = serde_json::from_str(&stage.operate(&["dead", "show", id, "--json"])).expect("JSON");
    let mut attempts = Vec::new();
    collect(&shown, &mut attempts);
    let times: Vec<OffsetDateTime> =
        attempts.iter().map(|at| OffsetDateTime::parse(at, &Rfc3339).expect("a time")).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_seconds_f64()).collect()
}

/// The times of the attempts, wherever they are in the answer.
fn collect(value: &Value, times: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(Value::String(at)), true) = (fields.get("at"), fields.contains_key("relay")) {
                times.push(at.clone());
            }
            fields.values().for_each(|value| collect(value, times));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, times)),
        _ => {}
    }
}

/// L4, L8, L10, L11, X1: five tries 2 s apart, then FAILED for a person; Slack is told its id; the account goes on, and the consumer
/// notices the gap; requeued, it arrives.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_failed_five_times_is_for_a_person() {
    let mock = MockCluster::new(3).expect("a mock");
    let stage = &Stage::without_topics(program(), &mock.bootstrap_servers(), TopicOption::A).await;
    let topic = &stage.topics()[0];
    mock.create_topic(topic, 6, 1).expect("a topic");
    mock.create_topic(&format!("{topic}.DLT"), 1, 1).expect("a topic");
    let relay = stage.relay("relay");
    let consumer = stage.consumer("read-model", &[]).await;
    deposit(&stage.ledger, 1, 10, 100).await.expect("posted");
    until("the first is processed", async || row(stage, 1).await.0 == "PROCESSED").await;
    mock.request_errors(RDKafkaApiKey::Produce, &[REFUSAL; 5]);
    deposit(&stage.ledger, 2, 10, 100).await.expect("posted");
    until("it failed once", async || row(stage, 2).await.1 == 1).await;
    assert_eq!(row(stage, 2).await.0, "PENDING", "it is tried again");
    deposit(&stage.ledger, 3, 10, 100).await.expect("posted");
    until("it is given up", async || row(stage, 2).await.0 == "FAILED").await;
    until("the account goes on", async || row(stage, 3).await.0 == "PROCESSED").await;
    assert_eq!(row(stage, 2).await, ("FAILED".to_owned(), 5, None));
    let (_, retries, processed_at) = row(stage, 3).await;
    assert!(retries == 0 && processed_at.is_some(), "it waited behind the other, and lost no try");
    let id = event_id(2, 10).to_string();
    let pauses = pauses(stage, &id);
    assert_eq!(pauses.len(), 4, "five tries: {pauses:?}");
    assert!(pauses.iter().all(|pause| (2.0..4.0).contains(pause)), "2 s apart: {pauses:?}");

    until("the gap is noticed", async || consumer.log().contains("is missing")).await;
    assert_gap(&consumer.log());
    assert_figures(stage, &relay).await;
    until_true("Slack is told", || !stage.slack.requests().is_empty()).await;
    stage.rounds(2).await;
    let told = stage.slack.requests();
    assert_eq!(told.len(), 1, "once: {told:?}");
    let said = told[0].body["text"].as_str().expect("a text");
    assert!(said.contains(&id) && said.contains("LEDGER_POSTED of TRANSACTION"), "{said}");
    assert!(stage.pagerduty.requests().is_empty(), "nobody is woken for one event");
    assert_eq!(row(stage, 2).await.0, "FAILED", "it is never tried again by itself");
    stage.operate(&["dead", "requeue", &id, "--yes", "--why", "the broker was mended"]);
    until("it arrives", async || row(stage, 2).await.0 == "PROCESSED").await;
    stage.read_model_is_level().await;
    let numbers: Vec<i64> =
        records(&mock.bootstrap_servers(), topic).iter().map(|record| record.sequence).collect();
    assert_eq!(numbers, [1, 3, 2]);
    assert_eq!(stage.balances().await, [(10, 300)]);
}

fn assert_gap(log: &str) {
    let gap = log.lines().find(|line| line.contains("is missing")).expect("a line");
    assert!(gap.contains("WARN") && gap.contains("account=\"10\""), "{gap}");
    assert!(gap.contains("expected=2") && gap.contains("got=3"), "{gap}");
}

/// One is dead, none waits, and the two that were delivered took about 4 s on average: by the view and by the metrics.
async fn assert_figures(stage: &Stage, relay: &Logged) {
    until("it is counted", async || metric(&metrics(relay), "postrider_dead") == 1.0).await;
    let text = metrics(relay);
    assert_eq!(metric(&text, "postrider_undelivered"), 0.0);
    let figures = Figures::count(stage.ledger.pool()).await.expect("figures");
    assert_eq!((figures.pending, figures.failed), (0, 1));
    assert_eq!(metric(&text, "postrider_delivery_seconds_count"), 2.0);
    let by_metrics = metric(&text, "postrider_delivery_seconds_sum") / 2.0;
    let mean = figures.mean_seconds.expect("a mean");
    assert!(mean > 1.0 && (mean - by_metrics).abs() < 0.5, "{mean} and {by_metrics}: one waited for 8 s");
}
