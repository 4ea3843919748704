//! Metrics and log lines, as the document asks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use everbit::domain::streams::WORKERS;
use everbit::story::cast::Cast;
use everbit::stubs::exchange::Conduct;
use postrider_testkit::{http, until};
use serde_json::{Value, json};

/// A rule: the name that it records, its expression, and the labels that it adds.
struct Rule {
    record: String,
    expr: String,
    labels: BTreeMap<String, String>,
}

/// The rules of rules.yml, which has one field per line.
fn rules() -> Vec<Rule> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/rules.yml")).expect("rules");
    let mut rules: Vec<Rule> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(record) = line.strip_prefix("- record: ") {
            rules.push(Rule { record: record.to_owned(), expr: String::new(), labels: BTreeMap::new() });
        } else if let Some(expr) = line.strip_prefix("expr: ") {
            rules.last_mut().expect("a rule").expr = expr.to_owned();
        } else if let Some(labels) = line.strip_prefix("labels: ") {
            let labels = labels.trim_matches(['{', '}']).split(',').filter_map(|pair| pair.split_once(':'));
            let labels = labels.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
            rules.last_mut().expect("a rule").labels = labels.collect();
        }
    }
    rules
}

/// The metrics of METRICS.md: kind and labels by name.
fn metrics() -> BTreeMap<String, (String, Vec<String>)> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../METRICS.md")).expect("metrics");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `postrider_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = format!("postrider_{}", cells[0].trim_end_matches('`'));
        (name, (cells[1].to_owned(), cells[2].split(", ").map(str::to_owned).collect()))
    })
    .collect()
}

/// The names in an expression that begin with `postrider_`.
fn named(expr: &str) -> Vec<&str> {
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    expr.split(|sign| !is_name(sign)).filter(|word| word.starts_with("postrider_")).collect()
}

/// The metric of a series: a histogram has three.
fn metric<'a>(series: &'a str, metrics: &BTreeMap<String, (String, Vec<String>)>) -> &'a str {
    let ends = ["_bucket", "_sum", "_count"];
    let base = ends.iter().find_map(|end| series.strip_suffix(end));
    base.filter(|base| metrics.get(*base).is_some_and(|(kind, _)| kind == "histogram")).unwrap_or(series)
}

/// The labels that an expression shows, which are those of its outermost aggregation.
fn shown(expr: &str) -> Vec<&str> {
    let aggregation = ["sum by (", "max by ("].iter().find_map(|start| expr.strip_prefix(start));
    let labels = aggregation.and_then(|rest| rest.split(')').next());
    labels.unwrap_or_else(|| panic!("{expr} must begin with sum by or max by")).split(", ").collect()
}

/// The label that `label_replace` adds, and the one that it is made of.
fn replaced(expr: &str) -> Option<(&str, &str)> {
    let (_, arguments) = expr.split_once("label_replace(")?.1.split_once("}, \"")?;
    let mut arguments = arguments.split("\", \"");
    let (to, value, from) = (arguments.next()?, arguments.next()?, arguments.next()?);
    (value == "$1").then_some((to, from))
}

/// E13: the document's metrics are recorded from metrics that exist, by labels that they have.
#[test]
fn the_rules_record_the_metrics_of_the_document() {
    let (rules, metrics) = (rules(), metrics());
    let recorded: BTreeSet<&str> = rules.iter().map(|rule| rule.record.as_str()).collect();
    let wanted = [
        "everbit_outbox_dead",
        "everbit_outbox_handler_duration_seconds_bucket",
        "everbit_outbox_handler_duration_seconds_count",
        "everbit_outbox_handler_duration_seconds_sum",
        "everbit_outbox_oldest_pending_seconds",
        "everbit_outbox_pending",
        "everbit_outbox_processed_total",
        "everbit_outbox_processing",
    ];
    assert_eq!(recorded, wanted.into());
    for Rule { record, expr, labels } in &rules {
        let names = named(expr);
        assert!(!names.is_empty(), "{expr}");
        for name in names {
            let (_, has) =
                metrics.get(metric(name, &metrics)).unwrap_or_else(|| panic!("{name} does not exist"));
            let known = |label: &str| label == "le" || has.iter().any(|each| each == label);
            let made = replaced(expr);
            assert!(made.is_none_or(|(_, from)| known(from)), "{name} has no such label: {made:?}");
            let is_made = |label: &str| made.is_some_and(|(to, _)| to == label);
            let by = shown(expr);
            assert!(
                by.iter().all(|label| known(label) || is_made(label)),
                "{name} has no such labels: {by:?}"
            );
        }
        let wanted = match record.strip_prefix("everbit_outbox_").expect("a name of the document") {
            "processed_total" => "result stream",
            "handler_duration_seconds_bucket" => "eventType le stream",
            "handler_duration_seconds_sum" | "handler_duration_seconds_count" => "eventType stream",
            _ => "stream",
        };
        let shown: Vec<&str> = shown(expr).into_iter().chain(labels.keys().map(String::as_str)).collect();
        let shown: BTreeSet<&str> = shown.into_iter().collect();
        assert_eq!(shown, wanted.split(' ').collect(), "the labels of {record}");
    }
    let results: BTreeSet<_> = rules.iter().filter_map(|rule| rule.labels.get("result")).collect();
    assert_eq!(results.len(), 3, "done, retry, dead");
    let handlers: BTreeSet<(String, String)> = rules
        .iter()
        .filter(|rule| rule.record.ends_with("_bucket"))
        .map(|rule| {
            let worker = rule.expr.split("subscription=\"").nth(1).and_then(|rest| rest.split('"').next());
            (worker.expect("a worker").to_owned(), rule.labels["stream"].clone())
        })
        .collect();
    let wanted = WORKERS.map(|(worker, stream)| (worker.to_owned(), stream.to_owned()));
    assert_eq!(handlers, wanted.into(), "one subscription per stream makes the labels map");
}

/// E13: the dashboard shows what the rules record, and nothing else.
#[test]
fn the_dashboard_shows_what_the_rules_record() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let shown: Vec<&str> = panels.filter_map(|panel| panel["targets"][0]["expr"].as_str()).collect();
    let recorded: BTreeSet<String> = rules().into_iter().map(|rule| rule.record).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for query in shown {
        let mut words = query.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let name = words.find(|word| word.starts_with("everbit_")).unwrap_or_else(|| panic!("{query}"));
        assert!(recorded.contains(name), "{name} is not recorded");
    }
}

/// The fields of a line that the document asks for.
const FIELDS: [&str; 6] = ["traceId", "eventId", "stream", "eventType", "aggregateType", "aggregateId"];
/// The same in Postrider's own lines.
const OWN: [&str; 6] = ["trace_id", "event_id", "stream", "event_type", "aggregate_type", "aggregate_id"];

fn has_all(line: &Value, fields: [&str; 6]) -> bool {
    fields.iter().all(|name| line[name].as_str().is_some_and(|value| !value.is_empty()))
}

/// E14, E13: every line on an event has trace, event, stream, type and aggregate; every series that a rule reads is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_name_their_event_and_series_are_there() {
    let cast = Cast::raise(Path::new(env!("CARGO_BIN_EXE_everbit")), false).await;
    let (worker, address) = cast.worker("watched", &[("LOG_LEVEL", "debug")]).await;
    let intent = cast.signal(Conduct::Place).await;
    cast.settled(&[intent]).await;
    let subject = json!({ "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": "XYZ-ABC" });
    cast.post("/backtests", &subject).await;
    let dead = "select count(*) from outbox_event where status = 'DEAD'";
    until("it is dead", async || cast.database.count(dead).await == 1).await;
    cast.direct("/candle-status", &json!(503)).await;
    cast.post("/backtests", &subject).await;
    cast.post("/kill-switch", &json!({ "engaged": true, "ownerId": "OWNER" })).await;
    let seen = "select count(distinct event_type) from outbox_event where attempt_count > 0 and event_type <> 'OrderFilled'";
    until("each worker had something", async || cast.database.count(seen).await == 4).await;
    let failed = "select count(*) from outbox_event where last_error_code is not null";
    until("two failed", async || cast.database.count(failed).await == 2).await;

    let address = address.strip_prefix("http://").expect("an address").to_owned();
    let (rules, known) = (rules(), metrics());
    until("every series is there", async || {
        let text = http::get(&address, "/metrics").unwrap_or_default();
        rules
            .iter()
            .flat_map(|rule| named(&rule.expr))
            .all(|name| text.lines().any(|line| line.starts_with(&format!("{name}{{"))))
    })
    .await;
    let text = http::get(&address, "/metrics").expect("metrics");
    for (name, (_, labels)) in
        known.iter().filter(|(name, _)| rules.iter().any(|rule| rule.expr.contains(*name)))
    {
        let line = text.lines().find(|line| line.starts_with(name) && line.contains('{')).expect("a series");
        assert!(labels.iter().all(|label| line.contains(&format!("{label}=\""))), "{line}");
    }
    assert_eq!(metric("postrider_handler_seconds_bucket", &known), "postrider_handler_seconds");

    let errors = worker.errors();
    worker.stop().await;
    let lines: Vec<Value> =
        errors.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let processed: Vec<&Value> = lines.iter().filter(|line| line["message"] == "processed").collect();
    let types: BTreeSet<&str> = processed.iter().filter_map(|line| line["eventType"].as_str()).collect();
    assert!(
        types
            .is_superset(&["CreateOrderAttempt", "KillSwitchChanged", "OrderAccepted", "RunBacktest"].into()),
        "{types:?}"
    );
    for line in processed {
        assert!(has_all(line, FIELDS), "{line}");
        assert_eq!(line["traceId"].as_str().map(str::len), Some(32), "{line}");
    }
    // Every line on processing says its outcome: what lacks one of the names is found.
    let own = lines.iter().filter(|line| line["outcome"].is_string() && line["message"] != "processed");
    let own: Vec<&Value> = own.collect();
    let outcomes: BTreeSet<&str> = own.iter().filter_map(|line| line["outcome"].as_str()).collect();
    assert!(outcomes.is_superset(&["dead", "delivered", "retry"].into()), "{outcomes:?}");
    let nameless: Vec<_> = own.iter().filter(|line| !has_all(line, OWN)).collect();
    assert!(nameless.is_empty(), "{nameless:?}");
}

/// What the database says is for the log: the caller of the API learns in a sentence that it did not work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_database_is_in_the_log_and_not_in_the_answer() {
    let cast = Cast::raise(Path::new(env!("CARGO_BIN_EXE_everbit")), false).await;
    cast.database.execute("alter table backtest_job rename to elsewhere").await;
    let subject = json!({ "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": "KRW-BTC" });
    let answer = cast.post("/backtests", &subject).await;
    assert_eq!(answer, (503, json!({ "error": "everbit can't do that at the moment; try again" })));
    until("it is in the log", async || cast.errors_of("api").contains("does not exist")).await;
}
