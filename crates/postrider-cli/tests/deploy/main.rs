//! What is ready-made fits the program that it is made for.

mod query;
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
        }
    }
    assert!(names.len() > 8, "{names:?}");
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

/// A relay in a process of its own, and a folder; both go away.
#[cfg(target_os = "linux")]
struct Unit {
    folder: PathBuf,
    child: Option<std::process::Child>,
}

#[cfg(target_os = "linux")]
impl Drop for Unit {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// It tells systemd that it is ready, and that it stops; and shows histograms with buckets, which the dashboard adds up.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_tells_systemd_and_shows_buckets() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixDatagram;

    let folder = std::env::temp_dir().join(format!("postrider-deploy-{}", postrider::Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("a folder");
    let mut unit = Unit { folder: folder.clone(), child: None };
    let socket = UnixDatagram::bind(folder.join("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[http]\nlisten = \"{address}\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n"
    );
    std::fs::write(folder.join("p.toml"), settings).expect("the settings");
    let command = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args([name, "--config"]).arg(folder.join("p.toml")).env_clear();
        command.env("NOTIFY_SOCKET", folder.join("notify")).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(command("migrate").status().expect("it runs").success());
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the file");
    let insert = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) values ('Paid', 'Order', '7', '1')";
    sqlx::query(insert).execute(&pool).await.expect("recorded");
    pool.close().await;
    let id = unit.child.insert(command("relay").spawn().expect("it starts")).id().to_string();
    let hear = || {
        let mut buffer = [0; 100];
        let length = socket.recv(&mut buffer).expect("it says something");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1");
    let bucket = "postrider_attempts_bucket{subscription=\"out\",stream=\"events\",le=\"1\"} 1";
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let mut stream = std::net::TcpStream::connect(&address).expect("it answers");
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("asked");
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).expect("answered");
        if metrics.contains(bucket) && metrics.contains("postrider_lanes_held{subscription=\"out\"} 1") {
            break;
        }
        assert!(Instant::now() < end, "{metrics}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    assert_eq!(hear(), "STOPPING=1");
    let status = unit.child.take().expect("a process").wait().expect("it ends");
    assert!(status.success());
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
        output.status.code() == Some(2) && said.contains("/etc/postrider/postrider.toml can't be read"),
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
