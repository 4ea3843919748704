//! The relay as a program: real processes, real signals, publishers that know nothing but SQL.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgPool};
use xtask::postgres::Cluster;

const PATIENCE: Duration = Duration::from_secs(60);

/// A database of its own on the server of the tests, and a folder; both go away.
struct Ground {
    folder: PathBuf,
    url: String,
    pool: PgPool,
    database: String,
}

impl Ground {
    async fn new() -> Self {
        let server = std::env::var("POSTRIDER_TEST_POSTGRES")
            .expect("POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask test`");
        let database = format!("cli_{}", postrider::Uuid::new_v4().simple());
        let pool = PgPool::connect(&server).await.expect("the server of the tests");
        sqlx::raw_sql(AssertSqlSafe(format!("create database {database}")))
            .execute(&pool)
            .await
            .expect("created");
        pool.close().await;
        let (base, _) = server.rsplit_once('/').expect("an address with a database");
        let url = format!("{base}/{database}");
        let folder = std::env::temp_dir().join(&database);
        std::fs::create_dir(&folder).expect("a folder");
        let pool = PgPool::connect(&url).await.expect("connected");
        Self { folder, url, pool, database }
    }

    async fn end(self) {
        self.pool.close().await;
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").expect("the server");
        let pool = PgPool::connect(&server).await.expect("connected");
        let drop = format!("drop database {} with (force)", self.database);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&pool).await.expect("dropped");
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        command
    }

    /// Runs a command to its end: its exit code, and what it said.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{text}");
        (output.status.code(), text.into_owned())
    }

    /// Starts a relay to stdout, which is a file.
    fn relay(&self, name: &str) -> Rider {
        Rider::start(&self.folder, &self.url, name)
    }

    /// Records events, as any language does.
    async fn record(&self, from: u32, to: u32) {
        for number in from..to {
            let sql = "select postrider.record('orders', 'OrderPaid', 'Order', $1, $2::json)";
            let query = sqlx::query(sql).bind((number % 7).to_string());
            query.bind(format!("{{\"number\": {number}}}")).execute(&self.pool).await.expect("recorded");
        }
    }
}

/// A relay in a process of its own; it is killed with the test.
struct Rider {
    process: Child,
    out: PathBuf,
    log: PathBuf,
}

impl Rider {
    fn start(folder: &Path, url: &str, name: &str) -> Self {
        let config = folder.join("p.toml");
        let text = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\nbatch = 50\n[sink.out]\ntype = \"stdout\"\n";
        std::fs::write(&config, text).expect("the settings");
        let (out, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", url);
        command.stdout(std::fs::File::create(&out).expect("a file")).stdin(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a file"));
        Self { process: command.spawn().expect("it starts"), out, log }
    }

    /// What it wrote: key and number of each event.
    fn lines(&self) -> Vec<(String, u64)> {
        let text = std::fs::read_to_string(&self.out).unwrap_or_default();
        // A process that was killed may have left half a line.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| {
                let event: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
                assert_eq!(event["specversion"], "1.0", "{line}");
                let key = event["subject"].as_str().expect("a key").to_owned();
                (key, event["data"]["number"].as_u64().expect("a number"))
            })
            .collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().expect("a process") {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The address that its endpoints answer on.
    fn address(&self) -> Option<String> {
        let log = self.log();
        let rest = log.split("address=").nth(1)?;
        Some(rest.split_whitespace().next()?.to_owned())
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address()?).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for Rider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether first arrivals of each key are in order; how many there were.
fn in_order(lines: &[(String, u64)]) -> usize {
    let (mut seen, mut last) = (HashSet::new(), HashMap::new());
    for (key, number) in lines {
        if seen.insert(*number)
            && let Some(before) = last.insert(key.clone(), *number)
        {
            assert!(before < *number, "{number} of {key} came after {before}");
        }
    }
    seen.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_delivers_what_sql_records_and_a_sigterm_repeats_nothing() {
    let ground = Ground::new().await;
    assert_eq!(ground.run(&["migrate"]), (Some(0), "the schema postrider is up to date\n".to_owned()));
    let mut first = ground.relay("first");
    ground.record(0, 300).await;
    until("some are delivered", || first.lines().len() > 100).await;
    first.signal("-TERM");
    ground.record(300, 400).await;
    assert_eq!(first.ended(), Some(0), "{}", first.log());
    let second = ground.relay("second");
    let all = || [first.lines(), second.lines()].concat();
    until("all are delivered", || all().len() >= 400).await;
    ground.record(400, 401).await;
    until("the last one is delivered", || all().iter().any(|(_, number)| *number == 400)).await;
    let lines = all();
    assert_eq!((in_order(&lines), lines.len()), (401, 401), "none is lost and none came twice");
    drop((first, second));
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_killed_has_an_heir() {
    let ground = Ground::new().await;
    ground.run(&["migrate"]);
    let (mut first, second) = (ground.relay("first"), ground.relay("second"));
    let all = |first: &Rider, second: &Rider| [first.lines(), second.lines()];
    ground.record(0, 200).await;
    until("some are delivered", || all(&first, &second).concat().len() > 50).await;
    // Whoever has the lane.
    let first_holds = !first.lines().is_empty();
    if first_holds {
        first.signal("-KILL");
    } else {
        second.signal("-KILL");
    }
    ground.record(200, 300).await;
    let seen =
        || all(&first, &second).concat().iter().map(|(_, number)| *number).collect::<HashSet<_>>().len();
    until("all are delivered", || seen() == 300).await;
    for lines in all(&first, &second) {
        in_order(&lines);
    }
    if first_holds {
        assert_eq!(first.ended(), None);
    }
    drop((first, second));
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_says_how_it_is_doing() {
    let ground = Ground::new().await;
    ground.run(&["migrate"]);
    let rider = ground.relay("one");
    until("it is ready", || rider.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")))
        .await;
    assert!(rider.get("/healthz").is_some_and(|answer| answer.ends_with("alive\n")));
    ground.record(0, 3).await;
    let delivered = "postrider_delivered_total{subscription=\"out\",stream=\"orders\"} 3";
    until("it is counted", || rider.get("/metrics").is_some_and(|answer| answer.contains(delivered))).await;
    drop(rider);
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_cannot_start_says_why_in_a_sentence() {
    let ground = Ground::new().await;
    let config = ground.folder.join("q.toml");
    std::fs::write(&config, "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n")
        .expect("the settings");
    let config = config.display().to_string();
    let (code, said) = ground.run(&["relay", "--config", &config]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("postrider migrate") && said.lines().count() == 1, "{said}");
    let (code, said) = ground.run(&["relay"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no [[subscription]]"), "{said}");
    let (code, said) = ground.run(&["relay", "--config", &config, "--store", "sqlite:/nowhere/at/all.db"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.lines().count() == 1, "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("http.listen={}", taken.local_addr().expect("its address"));
    let (code, said) = ground.run(&["relay", "--config", &config, "--set", &listen]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("somebody else listens there"), "{said}");
    let (code, said) = ground.run(&["relai"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("relay"), "{said}");
    ground.end().await;
}

/// It waits for a database that is away, says so once, ends when it is asked to, and works once the database is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_waits_for_a_database_that_is_away() {
    let mut cluster = Cluster::create(&[]).expect("this test stops a PostgreSQL of its own");
    let url = cluster.url("postgres");
    let migrate = Command::new(env!("CARGO_BIN_EXE_postrider"))
        .args(["migrate", "--store", &url])
        .env_clear()
        .status()
        .expect("it runs");
    assert!(migrate.success());
    cluster.stop().expect("stopped");

    let mut impatient = Rider::start(cluster.folder(), &url, "impatient");
    until("it is up", || impatient.get("/readyz").is_some_and(|answer| answer.contains("503"))).await;
    impatient.signal("-TERM");
    assert_eq!(impatient.ended(), Some(0), "{}", impatient.log());

    let patient = Rider::start(cluster.folder(), &url, "patient");
    let waits = "trying again until it does";
    until("it says that it waits", || patient.log().contains(waits)).await;
    cluster.start().expect("started");
    until("it is ready", || patient.get("/readyz").is_some_and(|answer| answer.contains("200 OK"))).await;
    let log = patient.log();
    assert_eq!(log.matches(waits).count(), 1, "once: {log}");
    assert!(log.contains("the database answers"), "{log}");
}
