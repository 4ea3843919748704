//! What is ready-made fits the program that it is made for.

mod kubernetes;
mod query;
mod relay;
mod schema;
mod systems;
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use postrider_testkit::Folder;
use serde_json::Value;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    yaml::parse(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&text("deploy/grafana/postrider.json")).expect("JSON")
}

/// The queries of the dashboard.
fn shown(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect();
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    queries
        .extend(variables.iter().filter_map(|each| each["query"]["query"].as_str()).map(ToOwned::to_owned));
    queries
}

/// U13, L10: everything that a dashboard for it needs is there, and nothing is used that is not emitted.
#[test]
fn every_metric_and_label_in_the_dashboard_exists() {
    let metrics = query::metrics(&text("METRICS.md"));
    assert!(metrics.len() > 20, "{metrics:?}");
    let mut all = BTreeSet::new();
    for query in shown(&dashboard()) {
        all.extend(query::used(&query, &metrics).unwrap_or_else(|what| panic!("{query}: {what}")));
    }
    for wanted in [
        "undelivered",
        "oldest_undelivered_seconds",
        "retrying",
        "dead",
        "delivered_total",
        "retried_total",
        "rejected_total",
        "handler_seconds",
        "delivery_seconds",
        "lag_seconds",
        "attempts",
        "lanes_held",
        "breaker_open",
        "requests_total",
        "request_seconds",
    ] {
        assert!(all.contains(&format!("postrider_{wanted}")), "nothing shows {wanted}");
    }
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<i64> = panels.iter().filter_map(|panel| panel["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let titles: BTreeSet<&str> = panels.iter().filter_map(|panel| panel["title"].as_str()).collect();
    assert_eq!(titles.len(), panels.len(), "and a title");
}

#[test]
fn every_metric_and_label_in_the_rules_exists() {
    let metrics = query::metrics(&text("METRICS.md"));
    let rules = yaml("deploy/prometheus/rules.yml");
    let mut names = BTreeSet::new();
    for group in rules["groups"].as_array().expect("groups") {
        for rule in group["rules"].as_array().expect("rules") {
            let name = rule["alert"].as_str().expect("a name");
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            let query = rule["expr"].as_str().expect("a query");
            query::used(query, &metrics).unwrap_or_else(|what| panic!("{name}: {what}"));
            assert!(rule["labels"]["severity"].as_str().is_some(), "{name} has no severity");
            let summary = rule["annotations"]["summary"].as_str().expect("a summary");
            // A label that was summed away is empty in the text.
            for label in summary.split("$labels.").skip(1) {
                let label = label.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
                assert!(label.is_some_and(|label| query.contains(label)), "{name}: {summary}");
            }
            let next =
                summary.split_once("; next: ").unwrap_or_else(|| panic!("{name} says no next command")).1;
            is_understood(next);
            // Whatever the program itself can show is shown by it.
            let by_us = !name.contains("DeadLetters") || next.starts_with("postrider dead-letters list ");
            assert!(by_us, "{name}: {next}");
        }
    }
    assert!(names.len() > 8, "{names:?}");
}

/// A command of ours is one that the program knows; what is no command of ours is said as it is.
fn is_understood(next: &str) {
    let next = ["subscription", "topic", "group"]
        .into_iter()
        .fold(next.to_owned(), |next, label| next.replace(&format!("{{{{ $labels.{label} }}}}"), "mail"));
    let mut words = next.split(' ');
    match words.next() {
        Some("postrider") => {
            // What it is asked before that is understood, or the help is not shown.
            let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
            let output = command.args(words).arg("--help").env_clear().output().expect("it runs");
            assert!(output.status.success(), "{next}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Some(other) => assert!(other == "systemctl" || other.starts_with("kafka-"), "{next}"),
        None => panic!("nothing"),
    }
}

/// The check finds what it is for.
#[test]
fn a_query_that_is_wrong_is_found_out() {
    let metrics = query::metrics(&text("METRICS.md"));
    for (query, what) in [
        ("sum(postrider_undeliverd)", "no metric postrider_undeliverd"),
        ("sum by (topic) (postrider_undelivered)", "topic is neither"),
        ("max(postrider_lag_seconds{stream=\"x\"})", "stream is neither"),
        ("rate(postrider_attempts[5m])", "no metric postrider_attempts"),
        ("rate(postrider_dead_bucket[5m])", "no metric postrider_dead_bucket"),
        ("summe(postrider_dead)", "summe is neither"),
        ("sum(postrider_dead", "left open"),
        ("sum(up)", "no metric of ours"),
    ] {
        let found = query::used(query, &metrics).expect_err(query);
        assert!(found.contains(what), "{query}: {found}");
    }
}

#[test]
fn the_unit_starts_what_there_is() {
    let unit = text("deploy/postrider.service");
    let lines: BTreeSet<&str> = unit.lines().collect();
    for line in [
        "Type=notify",
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "RestartPreventExitStatus=2",
    ] {
        assert!(lines.contains(line), "{line}");
    }
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let mut words = start.split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/postrider"));
    let arguments: Vec<&str> = words.collect();
    let output =
        Command::new(env!("CARGO_BIN_EXE_postrider")).args(&arguments).env_clear().output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // The arguments are understood; only the file is not there.
    assert!(
        output.status.code() == Some(2) && said.contains("can't read the file /etc/postrider/postrider.toml"),
        "{said}"
    );
}

/// The secret is in no environment: it is a file that systemd hands to the unit alone.
#[test]
fn the_unit_s_credentials_are_what_the_settings_find() {
    let unit = text("deploy/postrider.service");
    let credential =
        unit.lines().find_map(|line| line.strip_prefix("LoadCredential=")).expect("a credential");
    let (name, source) = credential.split_once(':').expect("a name and a file");
    let shown = text("deploy/README.md");
    let setting = format!("url = \"file:$CREDENTIALS_DIRECTORY/{name}\"");
    assert!(unit.contains(&setting) && shown.contains(&setting), "{setting} is shown");
    assert!(shown.contains(source), "{source} is made");

    let folder = Folder::new();
    std::fs::write(folder.path().join("p.toml"), format!("[store]\n{setting}\n")).expect("the settings");
    std::fs::write(folder.path().join(name), "postgres://ada:planted@db/shop\n").expect("the credential");
    let check = |directory: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["config", "check", "--config"]).arg(folder.path().join("p.toml")).env_clear();
        command.envs(directory.map(|directory| ("CREDENTIALS_DIRECTORY", directory)));
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said.into_owned())
    };
    let (code, said) = check(Some(folder.path()));
    assert!(code == Some(0) && said.contains("postgres://ada:***@db/shop"), "{said}");
    let (code, said) = check(None);
    assert!(code == Some(2) && said.contains("CREDENTIALS_DIRECTORY is not set: systemd sets it"), "{said}");
    let (code, said) = check(Some(Path::new("/nowhere")));
    assert!(
        code == Some(2) && said.contains(&format!("can't read the file /nowhere/{name}: it does not exist")),
        "{said}"
    );
}

#[test]
fn the_image_is_built_from_what_there_is() {
    let file = text("deploy/Dockerfile");
    let build = file.lines().find(|line| line.contains("cargo build")).expect("a build");
    assert!(build.contains("--locked --profile dist -p postrider-cli --features kafka-tls"), "{build}");
    assert!(text("Cargo.toml").contains("\n[profile.dist]\n"));
    assert!(text("crates/postrider-cli/Cargo.toml").contains("\nkafka-tls = "));
    assert!(file.lines().any(|line| line == "USER 10001:10001"), "not as root");
    let check = file.lines().find_map(|line| line.strip_prefix("HEALTHCHECK ")).expect("a health check");
    assert!(check.ends_with("CMD [\"postrider\", \"health\"]"), "{check}");
    let compose = &yaml("deploy/compose.yaml")["services"]["relay"]["healthcheck"]["test"];
    assert_eq!(*compose, serde_json::json!(["CMD", "postrider", "health"]));
    assert!(text("deploy/Dockerfile.dockerignore").lines().any(|line| line == "target"));
}

#[test]
fn what_compose_mounts_is_there_and_its_settings_are_understood() {
    let compose = yaml("deploy/compose.yaml");
    let services = compose["services"].as_object().expect("services");
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    for name in ["postgres", "kafka", "relay", "prometheus", "grafana"] {
        assert!(names.contains(name), "{name} is missing");
    }
    let mut mounted = 0;
    for (name, service) in services {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().expect("a volume");
            if let Some((file, _)) = volume.strip_prefix("./").and_then(|rest| rest.split_once(':')) {
                assert!(path("deploy").join(file).is_file(), "{name:?}: {file} is not there");
                mounted += 1;
            }
        }
        for needed in service["depends_on"].as_object().into_iter().flat_map(|all| all.keys()) {
            assert!(names.contains(needed.as_str()), "{name:?} needs {needed}");
        }
        // Nothing is open to others than this machine.
        for port in service["ports"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(port.starts_with("127.0.0.1:"), "{name:?}: {port}");
        }
    }
    assert!(mounted >= 6, "{mounted}");
    for name in ["prometheus/prometheus.yml", "grafana/datasources.yml", "grafana/dashboards.yml"] {
        assert!(yaml(&format!("deploy/{name}")).is_object(), "{name}");
    }
    let environment = &compose["services"]["relay"]["environment"]["POSTRIDER_STORE_URL"];
    let output = Command::new(env!("CARGO_BIN_EXE_postrider"))
        .args(["config", "check", "--config"])
        .arg(path("deploy/compose/postrider.toml"))
        .env_clear()
        .env("POSTRIDER_STORE_URL", environment.as_str().expect("an address"))
        .env("POSTRIDER_HTTP_LISTEN", "0.0.0.0:7678")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(text("deploy/Dockerfile").contains("POSTRIDER_HTTP_LISTEN=0.0.0.0:7678"));
}
