//! What the dashboard shows, and the processes that serve it.

use commerce::adapters::consumers::SALES;
use postrider::Uuid;
use postrider_testkit::{Logged, http, until, until_true};
use serde_json::Value;

use crate::feed::Feed;
use crate::topic::committed;
use crate::world::{World, paid};

/// The figures of the dashboard, by the names of their series.
fn shown() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(include_str!("../../dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.filter_map(|target| target["expr"].as_str());
    let figure = |expression: &str| {
        let begin = expression.find("postrider_").expect("a figure");
        expression[begin..].chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect()
    };
    expressions.map(figure).collect()
}

/// Every figure of the dashboard is one that relays or consumers have, and Prometheus asks both.
#[test]
fn the_dashboard_shows_figures_that_exist_and_prometheus_asks_for() {
    let shown = shown();
    assert_eq!(shown.len(), 8, "{shown:?}");
    for figure in &shown {
        let name = figure.trim_end_matches("_bucket");
        let mut all = postrider::metrics::METRICS.iter().chain(postrider::kafka::CONSUMER_METRICS);
        assert!(all.any(|metric| metric.name == name), "{figure}");
    }
    let compose = include_str!("../../compose.yaml");
    for targets in
        [r#"["relay-1:7678", "relay-2:7678"]"#, r#"["likes:9400", "sales:9400", "views:9400", "stock:9400"]"#]
    {
        assert!(compose.contains(targets), "{targets}");
    }
    assert!(compose.contains("\n    METRICS: \"0.0.0.0:9400\"\n"), "where the consumers serve them");
}

/// A consumer serves the figures that the dashboard shows of it, with its group.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_serves_its_figures() {
    let world = World::new(&["order-events"]).await;
    let feed = Feed::new(&world, "order-events");
    let mut command = world.commerce(&["consumer", SALES]);
    command.env("RETRIES", "0").env("METRICS", "127.0.0.1:0");
    let consumer = Logged::start(&mut command, world.folder.path(), "sales");
    let (group, topic) = (world.name(SALES), world.name("order-events"));
    until("it has its partitions", async || committed(&world.brokers, &group, &topic)[0] == 0).await;
    // There is no such order.
    feed.fact(Uuid::now_v7(), &paid(404));
    feed.flush();
    let out = consumer.out();
    let address = out.lines().find_map(|line| line.strip_prefix("metrics on ")).expect("an address");
    let of_consumers: Vec<String> =
        shown().into_iter().filter(|figure| figure.starts_with("postrider_consumer_")).collect();
    assert_eq!(of_consumers.len(), 2, "{of_consumers:?}");
    until_true("its figures are there", || {
        let text = http::get(address, "/metrics").unwrap_or_default();
        let has = |figure: &String| {
            let name = format!("{figure}{{");
            text.lines().any(|line| line.starts_with(&name) && line.contains(&group))
        };
        of_consumers.iter().all(has)
    })
    .await;
}
