//! The metrics of a consumer are those that are documented.

mod support;

use postrider::testing::Outbox;
use postrider::{Failure, Received};
use postrider_kafka::CONSUMER_METRICS;
use support::{Feed, broker, consumer, topics, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_emits_what_is_documented() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    metrics::set_global_recorder(recorder).expect("the only recorder");
    broker();
    let brokers = topics(&[("metrics", 1)]);
    let mut feed = Feed::new(&brokers, "metrics");
    let running = consumer(&Outbox::new(), &brokers, "meter", "metrics")
        .retry(support::retry(2))
        .inbox()
        .property("statistics.interval.ms", "100")
        .on_type("Counted", async |event: Received<i64>| match *event {
            -1 => Err(Failure::retry("negative")),
            _ => Ok(()),
        })
        .start()
        .await
        .expect("started");
    let by_topic = r#"{group="meter",topic="metrics"}"#;
    let none = format!("postrider_consumer_dead_lettered_total{by_topic} 0");
    let text = metrics.render();
    assert!(text.lines().any(|line| line == none), "it is counted from the start, at 0: {text}");
    for number in [1, 2, 5] {
        feed.event_with("a", number, &[("ce_sequence", &number.to_string())]);
    }
    feed.event("b", -1);
    feed.flush();
    let lines = [
        format!("postrider_consumer_consumed_total{by_topic} 4"),
        format!("postrider_consumer_handled_total{by_topic} 3"),
        format!("postrider_consumer_retried_total{by_topic} 1"),
        format!("postrider_consumer_dead_lettered_total{by_topic} 1"),
        r#"postrider_consumer_gaps_total{group="meter"} 1"#.to_owned(),
        r#"postrider_consumer_lag{group="meter",topic="metrics",partition="0"} 0"#.to_owned(),
    ];
    until("all is counted", async || {
        let text = metrics.render();
        lines.iter().all(|line| text.lines().any(|shown| shown == line))
    })
    .await;
    // Once more: it is in the inbox.
    feed.event_with("a", 5, &[]);
    feed.flush();
    let duplicate = format!("postrider_consumer_duplicates_total{by_topic} 1");
    until("the repetition is counted", async || metrics.render().lines().any(|shown| shown == duplicate))
        .await;
    running.stop().await.expect("stopped");
    let text = metrics.render();
    for metric in CONSUMER_METRICS {
        assert!(text.contains(&format!("\n{}{{", metric.name)), "{} is not emitted", metric.name);
        let help = format!("# HELP {} {}\n", metric.name, metric.help);
        assert!(text.contains(&help), "{help} is not said");
    }
}

/// The table in METRICS.md says the same.
#[test]
fn the_table_for_people_is_the_table_of_the_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../METRICS.md");
    let text = std::fs::read_to_string(path).expect("METRICS.md");
    let rows: Vec<String> = CONSUMER_METRICS
        .iter()
        .map(|metric| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            format!("| `{}` | {kind} | {} | {} |", metric.name, metric.labels.join(", "), metric.help)
        })
        .collect();
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("| `postrider_consumer_")).collect();
    assert_eq!(found, rows);
}
