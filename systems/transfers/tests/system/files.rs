//! The files beside the programs.

use std::process::Command;

use postrider_testkit::Program;
use serde_json::Value;

/// Every figure of the dashboard is one that relays or consumers have.
#[test]
fn the_dashboard_shows_figures_that_exist() {
    let dashboard: Value = serde_json::from_str(include_str!("../../dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
    assert_eq!(expressions.len(), 9, "{expressions:?}");
    for expression in expressions {
        let begin = expression.find("postrider_").expect("a figure");
        let figure: String =
            expression[begin..].chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect();
        let mut all = postrider::metrics::METRICS.iter().chain(postrider::kafka::CONSUMER_METRICS);
        assert!(all.any(|metric| metric.name == figure), "{figure}");
    }
}

/// The hosts that an address in a text names, `http://HOST:PORT`.
fn hosts(text: &str) -> Vec<&str> {
    let after = text.split("http://").skip(1);
    after.map(|rest| rest.split([':', '/', '"', '\n']).next().unwrap_or_default()).collect()
}

/// Every address in the compose file is that of a service in it, and Grafana has the dashboard.
#[test]
fn the_compose_file_names_services_that_it_has() {
    let compose = include_str!("../../compose.yaml");
    let addresses = compose.lines().filter(|line| !line.trim_start().starts_with('#'));
    let addresses = addresses.collect::<Vec<_>>().join("\n");
    assert!(hosts(&addresses).contains(&"operations"), "alerts go to somebody");
    for host in hosts(&addresses) {
        assert!(compose.contains(&format!("\n  {host}:\n")), "there is no service {host}");
    }
    for mounted in ["./dashboard.json:/var/lib/grafana/dashboards/", "grafana/dashboards.yml:/etc/grafana/"] {
        assert!(compose.contains(mounted), "{mounted}");
    }
}

/// Prometheus asks the relays and fraud detection, which serves its figures where it is asked.
#[test]
fn prometheus_asks_relays_and_fraud_detection() {
    let compose = include_str!("../../compose.yaml");
    assert!(compose.contains("names: [relay], type: A, port: 7678"), "the relays");
    assert!(compose.contains("names: [fraud], type: A, port: 9400"), "fraud detection");
    assert!(compose.contains("\n      METRICS: \"0.0.0.0:9400\"\n"), "where it serves them");
}

/// T4: the operations of the compose file say what they are told.
#[tokio::test]
async fn the_stub_of_operations_says_what_it_is_told() {
    let mut operations =
        Program::start("operations", Command::new(crate::support::program()).arg("stub-operations"));
    let url = operations.line("listening on ").await;
    let alert = serde_json::json!({ "text": "transfers-to-kafka: 10,001 undelivered" });
    let answer = story::process::client().post(format!("{url}/alerts")).json(&alert).send().await;
    assert_eq!(answer.expect("an answer").status(), 200);
    assert_eq!(operations.line("told: ").await, "transfers-to-kafka: 10,001 undelivered");
}

/// What `--keep` shows to look around with are commands of the binary `postrider`.
#[test]
fn the_commands_that_are_shown_exist() {
    let known = include_str!("../../../../docs/cli.md");
    for command in transfers::acts::tale::COMMANDS {
        let heading = format!("# postrider {command}");
        assert!(known.lines().any(|line| line.trim_start_matches('#') == &heading[1..]), "{command}");
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
