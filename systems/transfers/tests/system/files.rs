//! The files beside the programs.

use serde_json::Value;

/// Every figure of the dashboard is one that relays have.
#[test]
fn the_dashboard_shows_figures_that_exist() {
    let dashboard: Value = serde_json::from_str(include_str!("../../dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
    assert_eq!(expressions.len(), 6, "{expressions:?}");
    for expression in expressions {
        let begin = expression.find("postrider_").expect("a figure");
        let figure: String =
            expression[begin..].chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect();
        assert!(postrider::metrics::METRICS.iter().any(|metric| metric.name == figure), "{figure}");
    }
}

/// There are at least as many partitions as relays that can share the work, and a topic for what fraud detection gives up.
#[test]
fn there_are_partitions_for_every_relay() {
    let topics = story::topics::parse(include_str!("../../topics.txt")).expect("topics");
    let names: Vec<(&str, u16)> =
        topics.iter().map(|topic| (topic.name.as_str(), topic.partitions)).collect();
    assert_eq!(names, [("transfers", 6), ("transfers.DLT", 1)]);
    assert!(include_str!("../../transfers.toml").contains("lanes = 3"));
}
