//! A relay as a unit of systemd, and what Prometheus sees of it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postrider_testkit::{Folder, Process};
use serde_json::Value;

use super::*;

/// It tells systemd that it is ready, and that it stops; and shows histograms with buckets, which the dashboard adds up.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_tells_systemd_and_shows_buckets() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixDatagram;

    let folder = Folder::new();
    let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let url = format!("sqlite:{}", folder.path().join("shop.db").display());
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n"
    );
    std::fs::write(folder.path().join("p.toml"), settings).expect("the settings");
    let command = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args([name, "--config"]).arg(folder.path().join("p.toml")).env_clear();
        command.env("NOTIFY_SOCKET", folder.path().join("notify")).stdout(Stdio::null());
        command.stderr(std::fs::File::create(folder.path().join("log")).expect("a file"));
        command
    };
    assert!(command("migrate").status().expect("it runs").success());
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the file");
    let insert = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) values ('Paid', 'Order', '7', '1')";
    sqlx::query(insert).execute(&pool).await.expect("recorded");
    pool.close().await;
    let mut relay = Process::start(&mut command("relay"));
    let id = relay.id().to_string();
    let hear = || {
        let mut buffer = [0; 100];
        let length = socket.recv(&mut buffer).expect("it says something");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1");
    let address = address_in(&folder.path().join("log")).await;
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
    let status = relay.wait().expect("it ends");
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

#[cfg(target_os = "linux")]
fn the_rule_asks_for_an_increase_of(counter: &str) {
    let rules = yaml("deploy/prometheus/rules.yml");
    let rules = rules["groups"][0]["rules"].as_array().expect("rules").clone();
    let rule = rules.iter().find(|rule| rule["alert"] == "PostriderEventDied").expect("the rule");
    let expected = format!("sum by (subscription) (increase({counter}[5m])) > 0");
    assert_eq!(rule["expr"].as_str(), Some(expected.as_str()));
}

/// Where a relay answers, as soon as its log says so.
#[cfg(target_os = "linux")]
async fn address_in(log: &std::path::Path) -> String {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let said = std::fs::read_to_string(log).expect("a log");
        let line = said.lines().find(|line| line.contains("serving /metrics"));
        let address = line.and_then(|line| line.split("address=").nth(1)?.split_whitespace().next());
        if let Some(address) = address {
            return address.to_owned();
        }
        assert!(Instant::now() < end, "it says where it answers: {said}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The metrics; nothing as long as nobody answers.
#[cfg(target_os = "linux")]
fn scrape(address: &str) -> String {
    use std::io::{Read, Write};
    let mut metrics = String::new();
    if let Ok(mut stream) = std::net::TcpStream::connect(address) {
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("asked");
        stream.read_to_string(&mut metrics).expect("answered");
    }
    metrics
}

/// Waits until the metrics have this line, and returns them.
#[cfg(target_os = "linux")]
async fn until_shown(address: &str, line: &str) -> String {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let metrics = scrape(address);
        if metrics.lines().any(|each| each == line) {
            return metrics;
        }
        assert!(Instant::now() < end, "{line}: {metrics}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The one event that died, with its try and the answer to it: as JSON, and as text that fits the window. `shown` is what the program
/// writes.
#[cfg(target_os = "linux")]
fn the_event_is_shown_with_its_answer(shown: impl Fn(&[&str]) -> String) {
    let list: Value = serde_json::from_str(&shown(&["dead", "list", "--json"])).expect("JSON");
    let id = list[0]["event"]["event_id"].as_str().expect("an id").to_owned();
    let page: Value = serde_json::from_str(&shown(&["dead", "show", &id, "--json"])).expect("JSON");
    let tries = page["deliveries"][0]["last_attempts"].as_array().expect("tries");
    assert_eq!(tries.len(), 1, "{page}");
    assert_eq!((&tries[0]["relay"], &tries[0]["code"]), (&"relay-1".into(), &"http_422".into()));
    assert_eq!(tries[0]["message"], "the endpoint answered 422");
    assert_eq!(tries[0]["answer"], "no such card: {\"card\":\"4711-0815\"}");
    assert!(tries[0]["millis"].is_u64() && tries[0]["at"].is_string(), "{page}");
    for command in ["dead", "events"] {
        let text = shown(&[command, "show", &id]);
        assert!(text.contains("answered: no such card: {\"card\":\"4711-0815\"}"), "{text}");
        let table = text.lines().skip_while(|line| !line.contains("WHEN")).take(3);
        assert!(table.clone().all(|line| line.chars().count() <= 80) && table.count() == 3, "{text}");
    }
}

/// The whole way of a death: what the rule asks for is 0 before the first one and 1 after it, which is an increase; every metric has its
/// text; the answer is shown to who asks for the event, as are its tries, and is in no line of the log.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_death_is_an_increase_and_its_answer_is_shown_and_not_logged() {
    let folder = Folder::new();
    let url = format!("sqlite:{}", folder.path().join("shop.db").display());
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[http]\nlisten = \"127.0.0.1:0\"\n[relay]\nname = \"relay-1\"\n[log]\nlevel = \"trace\"\n\
         [[subscription]]\nname = \"hook\"\nsink = \"hook\"\n\
         [sink.hook]\ntype = \"http\"\nurl = \"{}\"\nstatuses = {{ 422 = \"reject\" }}\n",
        refusing()
    );
    std::fs::write(folder.path().join("p.toml"), settings).expect("the settings");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).arg("--config").arg(folder.path().join("p.toml")).env_clear();
        command
    };
    assert!(command(&["migrate"]).output().expect("it runs").status.success());
    let log = std::fs::File::create(folder.path().join("log")).expect("a file");
    let mut relay = Process::start(command(&["relay"]).stderr(log).stdout(Stdio::null()));
    let address = address_in(&folder.path().join("log")).await;
    let counter = "postrider_deaths_total";
    the_rule_asks_for_an_increase_of(counter);
    until_shown(&address, &format!("{counter}{{subscription=\"hook\"}} 0")).await;
    let requests = "postrider_requests_total{subscription=\"hook\",code=\"422\"}";
    until_shown(&address, &format!("{requests} 0")).await;
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the file");
    let insert = "insert into postrider_event (event_type, aggregate_type, aggregate_id, payload) \
                  values ('Paid', 'Order', '7', '{\"card\":\"4711-0815\"}')";
    sqlx::query(insert).execute(&pool).await.expect("recorded");
    pool.close().await;
    until_shown(&address, &format!("{requests} 1")).await;
    let metrics = until_shown(&address, &format!("{counter}{{subscription=\"hook\"}} 1")).await;
    for (name, kind) in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')) {
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name}, a {kind}, has no text");
    }
    assert!(metrics.contains("postrider_request_seconds_bucket{subscription=\"hook\",le=\""), "{metrics}");

    let shown = |arguments: &[&str]| {
        let output = command(arguments).env("COLUMNS", "80").output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    the_event_is_shown_with_its_answer(shown);
    let child = relay.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &child]).status().expect("kill").success());
    assert!(relay.wait().expect("it ends").success());
    let said = std::fs::read_to_string(folder.path().join("log")).expect("the log");
    assert!(said.contains("http_422"), "{said}");
    assert!(!said.contains("4711-0815") && !said.contains("no such card"), "an answer is in the log: {said}");
}
