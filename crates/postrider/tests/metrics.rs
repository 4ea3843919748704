//! What a relay emits is what the table of metrics says, and the other way round. E13, L10, U13.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postrider::metrics::{Kind, METRICS};
use postrider::store::{DeliveryFailure, Operate, OutboxSource, Outcome, Pause};
use postrider::testing::{Destination, Outbox, until_quiet};
use postrider::{NewEvent, Raw, Received, Relay, Retry};

async fn record(outbox: &Outbox, aggregate: &str) {
    let event = NewEvent::of("orders", "OrderPaid", "Order", aggregate, &1).expect("an event");
    outbox.record_alone(&event).await.expect("recorded");
}

/// The values of a subscription, histograms by their count.
fn shown(text: &str, subscription: &str) -> BTreeMap<String, f64> {
    let label = format!("subscription=\"{subscription}\"");
    let lines = text
        .lines()
        .filter(|line| line.contains(&label) && !line.contains("quantile") && !line.contains("_sum{"));
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once('{')?;
            let value = rest.rsplit_once(' ')?.1.parse().ok()?;
            Some((name.trim_end_matches("_count").to_owned(), value))
        })
        .collect()
}

fn is(figures: &BTreeMap<String, f64>, name: &str, figure: f64) -> bool {
    figures.get(name) == Some(&figure)
}

/// Waits until the figures of the subscription `shop` fit, and returns them.
async fn until(
    recorder: &PrometheusHandle,
    what: &str,
    fit: fn(&BTreeMap<String, f64>) -> bool,
) -> BTreeMap<String, f64> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let figures = shown(&recorder.render(), "shop");
        if fit(&figures) {
            return figures;
        }
        assert!(Instant::now() < end, "{what}: {figures:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Relays four events, each with another end, through an outage: the figures when all is settled.
async fn settle_four_events(recorder: &PrometheusHandle) -> BTreeMap<String, f64> {
    let outbox = Outbox::new();
    let shop = Destination::new();
    shop.decide(|attempt| match (attempt.event.aggregate_id.as_str(), attempt.attempt) {
        ("dies", _) => Outcome::reject(DeliveryFailure::new("no", "never")),
        ("again", 1) => Outcome::retry(DeliveryFailure::new("later", "not now")),
        ("known", _) => Outcome::Duplicate,
        _ => Outcome::Delivered,
    });
    for aggregate in ["fine", "dies", "again", "known"] {
        record(&outbox, aggregate).await;
    }
    shop.unavailable(Some("not yet"));
    let sink = shop.clone();
    let relay = Relay::new(&outbox)
        .figures_every(Some(Duration::from_millis(20)))
        .subscribe("shop", |s| {
            s.sink(sink)
                .retry(Retry::fixed(Duration::from_millis(50)))
                .longest_pause(Duration::from_millis(50))
        })
        .subscribe("mail", |s| s.on_other(|_: Received<Raw>| async {}))
        .start()
        .await
        .expect("started");
    until(recorder, "the outage shows", |figures| {
        is(figures, "postrider_undelivered", 4.0)
            && is(figures, "postrider_breaker_open", 1.0)
            && is(figures, "postrider_lanes_held", 1.0)
            && figures.get("postrider_oldest_undelivered_seconds").is_some_and(|age| *age > 0.0)
    })
    .await;
    shop.unavailable(None);
    until_quiet(&relay, "shop").await.expect("quiet");
    until_quiet(&relay, "mail").await.expect("quiet");
    let after = until(recorder, "all is settled", |figures| {
        is(figures, "postrider_undelivered", 0.0) && is(figures, "postrider_delivered_total", 2.0)
    })
    .await;
    relay.stop().await.expect("stopped");
    after
}

/// U13: of two undelivered events, one of which has failed once and holds up the other, the mean of the attempts is a half.
#[tokio::test]
async fn the_mean_of_attempts_is_that_of_what_is_undelivered() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let shown_by = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let outbox = Outbox::new();
    let shop = Destination::new();
    shop.decide(|attempt| match attempt.event.aggregate_id.as_str() {
        "later" => Outcome::retry(DeliveryFailure::new("later", "not now")),
        _ => Outcome::Delivered,
    });
    for aggregate in ["later", "later", "fine"] {
        record(&outbox, aggregate).await;
    }
    let sink = shop.clone();
    let relay = Relay::new(&outbox)
        .figures_every(Some(Duration::from_millis(20)))
        .subscribe("shop", |s| s.sink(sink).retry(Retry::fixed(Duration::from_secs(3600))))
        .start()
        .await
        .expect("started");
    until(&shown_by, "one has failed", |figures| {
        is(figures, "postrider_undelivered", 2.0) && is(figures, "postrider_mean_attempts", 0.5)
    })
    .await;
    relay.stop().await.expect("stopped");
}

/// A relay without a lane does not know how the destination is: otherwise its alert would never end.
#[tokio::test]
async fn a_relay_that_lost_its_lanes_reports_no_outage() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let shown_by = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let outbox = Outbox::new();
    let shop = Destination::new();
    shop.unavailable(Some("not yet"));
    record(&outbox, "fine").await;
    let sink = shop.clone();
    let relay = Relay::new(&outbox)
        .subscribe("shop", |s| s.sink(sink).longest_pause(Duration::from_millis(50)))
        .start()
        .await
        .expect("started");
    until(&shown_by, "the outage shows", |figures| is(figures, "postrider_breaker_open", 1.0)).await;
    let store = outbox.store();
    store.pause("shop", Some(&Pause::by("ada"))).await.expect("paused");
    until(&shown_by, "the lane is given back", |figures| {
        is(figures, "postrider_lanes_held", 0.0) && is(figures, "postrider_breaker_open", 0.0)
    })
    .await;
    until(&shown_by, "the pause shows", |figures| is(figures, "postrider_paused", 1.0)).await;
    store.pause("shop", None).await.expect("resumed");
    until(&shown_by, "the outage shows again", |figures| is(figures, "postrider_breaker_open", 1.0)).await;
    relay.stop().await.expect("stopped");
}

fn every_metric_has_its_kind_and_its_text(text: &str) {
    let types: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let documented: BTreeMap<&str, &str> = METRICS
        .iter()
        .map(|metric| {
            let kind = match metric.kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
                Kind::Histogram => "summary",
            };
            (metric.name, kind)
        })
        .collect();
    assert_eq!(types, documented);
    let helped: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')).collect();
    let helps: BTreeMap<&str, &str> = METRICS.iter().map(|metric| (metric.name, metric.help)).collect();
    assert_eq!(helped, helps);
}

fn every_metric_has_its_labels(text: &str) {
    for metric in METRICS {
        let line = text.lines().find(|line| line.starts_with(metric.name)).expect("a value");
        let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).expect("labels").0;
        let labels: BTreeSet<&str> = labels
            .split(',')
            .filter_map(|label| Some(label.split_once('=')?.0))
            .filter(|name| *name != "quantile")
            .collect();
        assert_eq!(labels, metric.labels.iter().copied().collect(), "{}", metric.name);
    }
}

#[tokio::test]
async fn what_is_emitted_is_what_is_documented() {
    let recorder = PrometheusBuilder::new().install_recorder().expect("the only recorder");
    let after = settle_four_events(&recorder).await;

    let text = recorder.render();
    every_metric_has_its_kind_and_its_text(&text);
    every_metric_has_its_labels(&text);
    for (name, figure) in [
        ("postrider_delivered_total", 2.0),
        ("postrider_duplicates_total", 1.0),
        ("postrider_retried_total", 1.0),
        ("postrider_rejected_total", 1.0),
        ("postrider_deaths_total", 1.0),
        ("postrider_attempts", 3.0),
        ("postrider_delivery_seconds", 2.0),
        ("postrider_undelivered", 0.0),
        ("postrider_mean_attempts", 0.0),
        ("postrider_dead", 1.0),
        ("postrider_breaker_open", 0.0),
    ] {
        assert_eq!(after[name], figure, "{name}");
    }
}

/// The table in METRICS.md says the same.
#[test]
fn the_table_for_people_is_the_table_of_the_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../METRICS.md");
    let text = std::fs::read_to_string(path).expect("METRICS.md");
    let rows: Vec<String> = METRICS
        .iter()
        .map(|metric| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            format!("| `{}` | {kind} | {} | {} |", metric.name, metric.labels.join(", "), metric.help)
        })
        .collect();
    let others = ["| `postrider_consumer_", "| `postrider_retention_"];
    let ours = |line: &&str| {
        line.starts_with("| `postrider_") && !others.iter().any(|other| line.starts_with(other))
    };
    let found: Vec<&str> = text.lines().filter(ours).collect();
    assert_eq!(found, rows);
}
