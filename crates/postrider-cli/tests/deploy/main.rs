//! What is ready-made fits the program that it is made for.

mod query;
mod schema;
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
        }
    }
    assert!(names.len() > 8, "{names:?}");
}

/// A command of ours is one that the program knows; what is no command of ours is said as it is.
fn is_understood(next: &str) {
    let next = next.replace("{{ $labels.subscription }}", "mail");
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

/// A relay in a process of its own, and a folder; both go away.
struct Unit {
    folder: PathBuf,
    child: Option<std::process::Child>,
}

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
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n"
    );
    std::fs::write(folder.join("p.toml"), settings).expect("the settings");
    let command = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args([name, "--config"]).arg(folder.join("p.toml")).env_clear();
        command.env("NOTIFY_SOCKET", folder.join("notify")).stdout(Stdio::null());
        command.stderr(std::fs::File::create(folder.join("log")).expect("a file"));
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
    let log = std::fs::read_to_string(folder.join("log")).expect("a log");
    let address = log.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let address = address.unwrap_or_else(|| panic!("it says where it answers: {log}")).to_owned();
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

/// An endpoint that refuses every event and repeats what it was sent.
#[cfg(target_os = "linux")]
fn refusing() -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let (mut length, mut line) = (0, String::new());
            while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
                let value =
                    line.to_lowercase().strip_prefix("content-length:").map(|value| value.trim().to_owned());
                length = value.map_or(length, |value| value.parse().expect("a length"));
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body");
            let body = format!("no such card:\n{}", String::from_utf8_lossy(&body));
            let head =
                format!("HTTP/1.1 422 No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.get_mut().write_all((head + &body).as_bytes()).expect("answered");
        }
    });
    format!("http://{address}/hook")
}

/// The whole way of a death: what the rule asks for is 0 before the first one and 1 after it, which is an increase; every metric has its
/// text; the answer is shown to who asks for the event, as are its tries, and is in no line of the log.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_death_is_an_increase_and_its_answer_is_shown_and_not_logged() {
    use std::io::{Read, Write};

    let folder = std::env::temp_dir().join(format!("postrider-deploy-{}", postrider::Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("a folder");
    let mut unit = Unit { folder: folder.clone(), child: None };
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[http]\nlisten = \"{address}\"\n[relay]\nname = \"relay_process-1\"\n[log]\nlevel = \"trace\"\n\
         [[subscription]]\nname = \"hook\"\nsink = \"hook\"\n\
         [sink.hook]\ntype = \"http\"\nurl = \"{}\"\nstatuses = {{ 422 = \"reject\" }}\n",
        refusing()
    );
    std::fs::write(folder.join("p.toml"), settings).expect("the settings");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).arg("--config").arg(folder.join("p.toml")).env_clear();
        command
    };
    assert!(command(&["migrate"]).output().expect("it runs").status.success());
    let log = std::fs::File::create(folder.join("log")).expect("a file");
    unit.child = Some(command(&["relay"]).stderr(log).stdout(Stdio::null()).spawn().expect("it starts"));
    let scrape = || {
        let mut metrics = String::new();
        if let Ok(mut stream) = std::net::TcpStream::connect(&address) {
            write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("asked");
            stream.read_to_string(&mut metrics).expect("answered");
        }
        metrics
    };
    let until_shown = async |line: &str| {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let metrics = scrape();
            if metrics.lines().any(|each| each == line) {
                return metrics;
            }
            assert!(Instant::now() < end, "{line}: {metrics}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let rules = yaml("deploy/prometheus/rules.yml");
    let rules = rules["groups"][0]["rules"].as_array().expect("rules").clone();
    let rule = rules.iter().find(|rule| rule["alert"] == "PostriderEventDied").expect("the rule");
    let counter = "postrider_deaths_total";
    let expected = format!("sum by (subscription) (increase({counter}[5m])) > 0");
    assert_eq!(rule["expr"].as_str(), Some(expected.as_str()));
    until_shown(&format!("{counter}{{subscription=\"hook\"}} 0")).await;
    let requests = "postrider_requests_total{subscription=\"hook\",code=\"422\"}";
    until_shown(&format!("{requests} 0")).await;
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the file");
    let insert = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) \
                  values ('Paid', 'Order', '7', '{\"card\":\"4711-0815\"}')";
    sqlx::query(insert).execute(&pool).await.expect("recorded");
    pool.close().await;
    until_shown(&format!("{requests} 1")).await;
    let metrics = until_shown(&format!("{counter}{{subscription=\"hook\"}} 1")).await;
    for (name, kind) in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')) {
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name}, a {kind}, has no text");
    }
    assert!(metrics.contains("postrider_request_seconds_bucket{subscription=\"hook\",le=\""), "{metrics}");

    let shown = |arguments: &[&str]| {
        let output = command(arguments).env("COLUMNS", "80").output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let list: Value = serde_json::from_str(&shown(&["dead", "list", "--json"])).expect("JSON");
    let id = list[0]["event"]["event_id"].as_str().expect("an id").to_owned();
    let page: Value = serde_json::from_str(&shown(&["dead", "show", &id, "--json"])).expect("JSON");
    let tries = page["deliveries"][0]["last_attempts"].as_array().expect("tries");
    assert_eq!(tries.len(), 1, "{page}");
    assert_eq!((&tries[0]["relay"], &tries[0]["code"]), (&"relay_process-1".into(), &"http_422".into()));
    assert_eq!(tries[0]["message"], "the endpoint answered 422");
    assert_eq!(tries[0]["answer"], "no such card: {\"card\":\"4711-0815\"}");
    assert!(tries[0]["millis"].is_u64() && tries[0]["at"].is_string(), "{page}");
    for command in ["dead", "events"] {
        let text = shown(&[command, "show", &id]);
        assert!(text.contains("answered: no such card: {\"card\":\"4711-0815\"}"), "{text}");
        let table = text.lines().skip_while(|line| !line.contains("WHEN")).take(3);
        assert!(table.clone().all(|line| line.chars().count() <= 80) && table.count() == 3, "{text}");
    }
    let child = unit.child.as_ref().expect("a process").id().to_string();
    assert!(Command::new("kill").args(["-TERM", &child]).status().expect("kill").success());
    assert!(unit.child.take().expect("a process").wait().expect("it ends").success());
    let said = std::fs::read_to_string(folder.join("log")).expect("the log");
    assert!(said.contains("http_422"), "{said}");
    assert!(!said.contains("4711-0815") && !said.contains("no such card"), "an answer is in the log: {said}");
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

    let folder = std::env::temp_dir().join(format!("postrider-credentials-{}", postrider::Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("a folder");
    let _unit = Unit { folder: folder.clone(), child: None };
    std::fs::write(folder.join("p.toml"), format!("[store]\n{setting}\n")).expect("the settings");
    std::fs::write(folder.join(name), "postgres://ada:planted@db/shop\n").expect("the credential");
    let check = |directory: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["config", "check", "--config"]).arg(folder.join("p.toml")).env_clear();
        command.envs(directory.map(|directory| ("CREDENTIALS_DIRECTORY", directory)));
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said.into_owned())
    };
    let (code, said) = check(Some(&folder));
    assert!(code == Some(0) && said.contains("postgres://ada:***@db/shop"), "{said}");
    let (code, said) = check(None);
    assert!(code == Some(2) && said.contains("CREDENTIALS_DIRECTORY is not set: systemd sets it"), "{said}");
    let (code, said) = check(Some(Path::new("/nowhere")));
    assert!(
        code == Some(2) && said.contains(&format!("can't read the file /nowhere/{name}: it does not exist")),
        "{said}"
    );
}

/// The parts of a Kubernetes file, and what is wrong with them.
fn kubernetes(text: &str) -> (Vec<Value>, Vec<String>) {
    let schema: Value = serde_json::from_str(include_str!("kubernetes.schema.json")).expect("a schema");
    let documents = yaml::parse_typed(text).unwrap_or_else(|error| panic!("{error}"));
    let mut faults = Vec::new();
    for document in &documents {
        let part = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let kind = format!("{}/{}", part("apiVersion"), part("kind"));
        match &schema["kinds"][&kind] {
            Value::Null => faults.push(format!("there is no schema of {kind}")),
            of_kind => {
                let found = schema::faults(document, of_kind, &schema["definitions"]);
                faults.extend(found.into_iter().map(|fault| format!("{kind}{fault}")));
            }
        }
    }
    (documents, faults)
}

#[test]
fn what_kubernetes_is_given_is_as_its_api_has_it_and_fits_together() {
    let (documents, faults) = kubernetes(&text("deploy/kubernetes.yaml"));
    assert!(faults.is_empty(), "{faults:#?}");
    let of = |kind: &str| {
        documents.iter().find(|each| each["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    };
    let deployment = &of("Deployment")["spec"];
    let pod = &deployment["template"]["spec"];
    let relay = &pod["containers"][0];
    // Who selects the relays finds them, and not the job.
    let labels = &deployment["template"]["metadata"]["labels"];
    for selector in [
        &deployment["selector"]["matchLabels"],
        &of("Service")["spec"]["selector"],
        &of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        let all = selector.as_object().expect("labels");
        assert!(!all.is_empty() && all.iter().all(|(name, value)| &labels[name] == value), "{selector}");
        let of_job = &of("Job")["spec"]["template"]["metadata"]["labels"];
        assert!(all.iter().any(|(name, value)| &of_job[name] != value), "{selector}");
    }
    let port = relay["ports"][0]["containerPort"].as_u64().expect("a port");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(
            (&relay[probe]["httpGet"]["path"], &relay[probe]["httpGet"]["port"]),
            (&path.into(), &relay["ports"][0]["name"])
        );
    }
    assert_eq!(of("Service")["spec"]["ports"][0]["port"], port);
    // What is mounted is there, and the settings are understood, with the secret where it is mounted.
    for container in [relay, &of("Job")["spec"]["template"]["spec"]["containers"][0]] {
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        let volumes = pod["volumes"].as_array().expect("volumes");
        for mount in mounts {
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("a volume");
            let source = if volume["secret"].is_object() {
                &volume["secret"]["secretName"]
            } else {
                &volume["configMap"]["name"]
            };
            let kind = if volume["secret"].is_object() { "Secret" } else { "ConfigMap" };
            assert_eq!(&of(kind)["metadata"]["name"], source);
        }
        let settings = format!("{}/postrider.toml", mounts[0]["mountPath"].as_str().expect("a path"));
        assert_eq!(container["args"][2], settings.as_str());
    }
    let folder = std::env::temp_dir().join(format!("postrider-kubernetes-{}", postrider::Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("a folder");
    let _unit = Unit { folder: folder.clone(), child: None };
    let (key, secret) =
        of("Secret")["stringData"].as_object().and_then(|all| all.iter().next()).expect("a secret");
    std::fs::write(folder.join(key), secret.as_str().expect("text")).expect("the secret");
    let settings = of("ConfigMap")["data"]["postrider.toml"].as_str().expect("settings");
    let mounted = format!("file:/run/secrets/postrider/{key}");
    assert!(settings.contains(&mounted), "{settings}");
    let settings = settings.replace("/run/secrets/postrider", &folder.display().to_string());
    std::fs::write(folder.join("p.toml"), settings).expect("the settings");
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let output = command
        .args(["config", "check", "--json", "--config"])
        .arg(folder.join("p.toml"))
        .env_clear()
        .output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let understood: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(understood["http"]["listen"], format!("0.0.0.0:{port}"));
}

/// The check finds what it is for.
#[test]
fn what_kubernetes_would_pass_over_or_refuse_is_found_out() {
    let file = text("deploy/kubernetes.yaml");
    for (right, wrong, fault) in [
        (
            "readinessProbe:",
            "readynessProbe:",
            "Deployment.spec.template.spec.containers[0].readynessProbe: there is no such field",
        ),
        ("replicas: 2", "replicas: \"2\"", "Deployment.spec.replicas: \"2\" is not of the type integer"),
        (
            "prometheus.io/port: \"7678\"",
            "prometheus.io/port: 7678",
            "annotations.prometheus.io/port: 7678 is not of the type string",
        ),
        ("containerPort: 7678", "containerPort: 76780", "containerPort: 76780 is out of bounds"),
        ("apiVersion: apps/v1", "apiVersion: apps/v1beta1", "there is no schema of apps/v1beta1/Deployment"),
        ("restartPolicy: OnFailure", "restartPolicy: Sometimes", "\"Sometimes\" is none of"),
        ("memory: 256Mi", "memory: 256MB", "\"256MB\" is no quantity"),
        (
            "          image: registry.example/postrider:0.1.0\n          args: [\"relay\"",
            "          args: [\"relay\"",
            "image is missing",
        ),
        ("name: postrider-migrate", "name: Postrider_migrate", "\"Postrider_migrate\" is no dns-label"),
    ] {
        assert!(file.contains(right), "{right}");
        let (_, faults) = kubernetes(&file.replacen(right, wrong, 1));
        assert!(faults.iter().any(|found| found.contains(fault)), "{wrong}: {faults:?}");
    }
    let crossed = "a: &x 1\n---\nb: *x\n";
    assert!(yaml::parse_typed(crossed).is_err(), "an alias of another document is refused, as by Kubernetes");
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
