//! The Compose files of the five systems: what they name is there, and whoever is asked at a port listens there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{path, text, yaml};

const SYSTEMS: [&str; 5] = ["umbra", "everbit", "ledger", "commerce", "transfers"];

/// With the tables that are merged in by `<<`.
fn merged(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(merged).collect(),
        Value::Object(mut table) => {
            let other = table.remove("<<").map(merged);
            let mut table: Map<String, Value> =
                table.into_iter().map(|(key, value)| (key, merged(value))).collect();
            if let Some(Value::Object(other)) = other {
                for (key, value) in other {
                    table.entry(key).or_insert(value);
                }
            }
            Value::Object(table)
        }
        text => text,
    }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

/// The texts of a list or of a table's values, or the text itself.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::Object(table) => table.values().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

fn host(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-')
}

/// The hosts that a text names, with their ports: `http://HOST:PORT/…`, `postgres://…@HOST/…`, `HOST:PORT,…`.
fn addresses(text: &str) -> Vec<(&str, Option<u16>)> {
    let words = text.split([' ', ',', '"', '\n']).map(|word| match word.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, word),
    });
    let parts = words.filter_map(|(is_url, word)| {
        let authority = word.split('/').next()?;
        let authority = authority.rsplit_once('@').map_or(authority, |(_, rest)| rest);
        let (name, port) = match authority.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (authority, None),
        };
        (host(name) && (is_url || port.is_some())).then_some((name, port))
    });
    parts.collect()
}

/// Whether a service runs the binary `postrider`, and no program of the system.
fn runs_postrider(service: &Value) -> bool {
    texts(&service["command"]).first() == Some(&"postrider")
        || service["build"]["dockerfile"] == "deploy/Dockerfile"
}

/// The ports that a service listens on.
fn ports(service: &Value) -> BTreeSet<u16> {
    let environment = &service["environment"];
    let names: &[&str] =
        if runs_postrider(service) { &["POSTRIDER_HTTP_LISTEN"] } else { &["LISTEN", "METRICS"] };
    let port = |text: &str| text.rsplit(':').next().and_then(|port| port.parse().ok());
    let mut ports: BTreeSet<u16> =
        names.iter().filter_map(|name| environment[name].as_str()).filter_map(port).collect();
    let listeners = environment["KAFKA_LISTENERS"].as_str().unwrap_or_default();
    ports.extend(listeners.split(',').filter_map(port));
    if service["build"]["dockerfile"] == "deploy/Dockerfile" && ports.is_empty() {
        ports.extend(
            text("deploy/Dockerfile").lines().find_map(|line| line.strip_prefix("EXPOSE ")).and_then(port),
        );
    }
    let images =
        [("postgres:", 5432), ("mariadb:", 3306), ("prom/prometheus:", 9090), ("grafana/grafana:", 3000)];
    let image = service["image"].as_str().unwrap_or_default();
    ports.extend(images.iter().filter(|(name, _)| image.starts_with(name)).map(|(_, port)| port));
    ports
}

/// The addresses that Prometheus asks.
fn asked(prometheus: &Value) -> Vec<(String, Option<u16>)> {
    let mut asked = Vec::new();
    for job in prometheus["scrape_configs"].as_array().into_iter().flatten() {
        for config in job["static_configs"].as_array().into_iter().flatten() {
            let targets = texts(&config["targets"]).into_iter().flat_map(addresses);
            asked.extend(targets.map(|(name, port)| (name.to_owned(), port)));
        }
        for config in job["dns_sd_configs"].as_array().into_iter().flatten() {
            let port = config["port"].as_str().and_then(|port| port.parse().ok());
            asked.extend(texts(&config["names"]).into_iter().map(|name| (name.to_owned(), port)));
        }
    }
    asked
}

/// What is wrong with the Compose file of a system.
fn complaints(system: &str, compose: &str) -> Vec<String> {
    let compose = merged(yaml::parse(compose).unwrap_or_else(|error| panic!("{system}: {error}")));
    let folder = path("systems").join(system);
    let services = compose["services"].as_object().expect("services");
    let mut named = Vec::new();
    let mut wrong = Vec::new();
    for (name, service) in services {
        for field in ["environment", "command"] {
            let found = texts(&service[field]).into_iter().flat_map(addresses);
            named.extend(found.map(|(host, port)| (host.to_owned(), port)));
        }
        let needed = &service["depends_on"];
        let listed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
        named.extend(keys(needed).into_iter().chain(listed).map(|host| (host.to_owned(), None)));
        wrong.extend(files(&folder, &compose, service).into_iter().map(|what| format!("{name}: {what}")));
        for port in texts(&service["ports"]) {
            let inner = port.rsplit(':').next().and_then(|port| port.parse().ok());
            if !port.starts_with("127.0.0.1:") || !inner.is_some_and(|inner| ports(service).contains(&inner))
            {
                wrong.push(format!("{name}: it does not listen on loopback and at {port}"));
            }
        }
    }
    let prometheus =
        compose["configs"]["prometheus"]["content"].as_str().expect("the settings of Prometheus");
    named.extend(asked(&yaml::parse(prometheus).expect("YAML")));
    for (host, port) in named {
        match services.get(&host) {
            None => wrong.push(format!("there is no service {host}")),
            Some(service) => {
                if let Some(port) = port.filter(|port| !ports(service).contains(port)) {
                    wrong.push(format!("{host} does not listen on {port}"));
                }
            }
        }
    }
    wrong
}

/// What is wrong with the files that a service is built from, or that it mounts, and with the variables that its settings need.
fn files(folder: &Path, compose: &Value, service: &Value) -> Vec<String> {
    let mut needed: Vec<PathBuf> = Vec::new();
    let mut wrong = Vec::new();
    let build = &service["build"];
    if let Some(context) = build["context"].as_str().map(|context| folder.join(context)) {
        if build["dockerfile_inline"].is_null() {
            needed.push(context.join(build["dockerfile"].as_str().unwrap_or("Dockerfile")));
        }
        needed.push(context);
    }
    for volume in texts(&service["volumes"]) {
        let source = volume.split(':').next().unwrap_or_default();
        if source.starts_with('.') {
            needed.push(folder.join(source));
        } else if !keys(&compose["volumes"]).contains(source) {
            wrong.push(format!("there is no volume {source}"));
        }
    }
    let missing = needed.iter().filter(|file| !file.exists());
    wrong.extend(missing.map(|file| format!("{} is not there", file.display())));
    for source in
        service["configs"].as_array().into_iter().flatten().filter_map(|each| each["source"].as_str())
    {
        if !keys(&compose["configs"]).contains(source) {
            wrong.push(format!("there is no config {source}"));
        }
    }
    let settings = needed.iter().filter(|file| file.extension().is_some_and(|kind| kind == "toml"));
    for file in settings.filter(|_| runs_postrider(service)) {
        let file = std::fs::read_to_string(file).unwrap_or_default();
        let variables = file.split("\"env:").skip(1).filter_map(|rest| rest.split('"').next());
        let known = keys(&service["environment"]);
        wrong.extend(variables.filter(|name| !known.contains(name)).map(|name| format!("{name} is not set")));
    }
    wrong
}

/// Hosts that are named are services, files that are mounted or built from are there, and ports are those that somebody listens on.
#[test]
fn what_the_compose_files_of_the_systems_name_is_there() {
    for system in SYSTEMS {
        let compose = text(&format!("systems/{system}/compose.yaml"));
        assert_eq!(complaints(system, &compose), [""; 0], "{system}");
    }
}

/// What would be wrong is found.
#[test]
fn what_is_wrong_in_a_compose_file_of_a_system_is_found() {
    for (system, right, wrong, complaint) in [
        ("umbra", "http://toss:8080", "http://tossed:8080", "there is no service tossed"),
        ("umbra", "http://toss:8080", "http://toss:8081", "toss does not listen on 8081"),
        ("umbra", "umbra@postgres/", "umbra@postgresql/", "there is no service postgresql"),
        ("umbra", "worker:8080", "worker:9400", "worker does not listen on 9400"),
        ("umbra", "./umbra.toml", "./umbre.toml", "umbre.toml is not there"),
        ("umbra", "    ALERT_URL:", "    ALERTS_URL:", "alerts: ALERT_URL is not set"),
        ("umbra", "127.0.0.1:8081:8080", "8081:8080", "it does not listen on loopback and at 8081:8080"),
        ("umbra", "source: prometheus", "source: prometheuses", "there is no config prometheuses"),
        ("ledger", "port: 7678", "port: 7679", "relay does not listen on 7679"),
        ("ledger", "deploy/Dockerfile", "deploy/Dockerfiles", "Dockerfiles is not there"),
        ("commerce", "context: ../..", "context: ../", "systems/commerce/Dockerfile is not there"),
        ("commerce", "migrate: { condition", "migrated: { condition", "there is no service migrated"),
        ("commerce", "2@kafka-2:9093", "2@kafka-4:9093", "there is no service kafka-4"),
        ("transfers", "\n  target:", "\n  targets:", "there is no volume target"),
        ("everbit", "relay:7678", "relay:7687", "relay does not listen on 7687"),
    ] {
        let compose = text(&format!("systems/{system}/compose.yaml"));
        assert!(compose.contains(right), "{system}: {right}");
        let found = complaints(system, &compose.replace(right, wrong));
        assert!(found.iter().any(|each| each.contains(complaint)), "{system}, {wrong}: {found:?}");
    }
}

/// Docker sends neither what was built here nor the history: the images of the systems are built from this folder, too.
#[test]
fn what_images_are_built_from_leaves_out_what_is_large() {
    for file in [".dockerignore", "deploy/Dockerfile.dockerignore"] {
        let left_out = text(file);
        assert!([".git", "target"].iter().all(|name| left_out.lines().any(|line| line == *name)), "{file}");
    }
}
