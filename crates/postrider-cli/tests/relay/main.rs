//! The relay as a program: real processes, real signals, publishers that know nothing but SQL.

#[path = "../support/mod.rs"]
mod support;

mod kafka;
mod migrating;
mod signals;

use std::collections::{HashMap, HashSet};
use std::process::Command;

use support::{Fixture, RelayProcess, until_true};
use xtask::postgres::Cluster;

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
    let fixture = Fixture::new().await;
    assert_eq!(fixture.run(&["migrate"]).0, Some(0));
    let mut first = fixture.relay("first");
    fixture.record(0, 300).await;
    until_true("some are delivered", || first.lines().len() > 100).await;
    first.signal("TERM");
    fixture.record(300, 400).await;
    assert_eq!(first.ended(), Some(0), "{}", first.log());
    let second = fixture.relay("second");
    let all = || [first.lines(), second.lines()].concat();
    until_true("all are delivered", || all().len() >= 400).await;
    fixture.record(400, 401).await;
    until_true("the last one is delivered", || all().iter().any(|(_, number)| *number == 400)).await;
    let lines = all();
    assert_eq!((in_order(&lines), lines.len()), (401, 401), "none is lost and none came twice");
    drop((first, second));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_relay_takes_over_from_a_killed_one() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let (mut first, second) = (fixture.relay("first"), fixture.relay("second"));
    let all = |first: &RelayProcess, second: &RelayProcess| [first.lines(), second.lines()];
    fixture.record(0, 200).await;
    until_true("some are delivered", || all(&first, &second).concat().len() > 50).await;
    // Whoever has the lane.
    let first_holds = !first.lines().is_empty();
    if first_holds {
        first.signal("KILL");
    } else {
        second.signal("KILL");
    }
    fixture.record(200, 300).await;
    let seen =
        || all(&first, &second).concat().iter().map(|(_, number)| *number).collect::<HashSet<_>>().len();
    until_true("all are delivered", || seen() == 300).await;
    for lines in all(&first, &second) {
        in_order(&lines);
    }
    if first_holds {
        assert_eq!(first.ended(), None);
    }
    drop((first, second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_says_how_it_is_doing() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let relay_process = fixture.relay("one");
    until_true("it is ready", || {
        relay_process.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    })
    .await;
    assert!(relay_process.get("/healthz").is_some_and(|answer| answer.ends_with("alive\n")));
    fixture.record(0, 3).await;
    let delivered = "postrider_delivered_total{subscription=\"out\",stream=\"orders\"} 3";
    until_true("it is counted", || {
        relay_process.get("/metrics").is_some_and(|answer| answer.contains(delivered))
    })
    .await;
    drop(relay_process);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_cannot_start_says_why_in_a_sentence() {
    let fixture = Fixture::new().await;
    let config = fixture.folder.path().join("q.toml");
    std::fs::write(&config, "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n")
        .expect("the settings");
    let config = config.display().to_string();
    let (code, said) = fixture.run(&["relay", "--config", &config]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("postrider migrate") && said.lines().count() == 1, "{said}");
    let (code, said) = fixture.run(&["relay"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no [[subscription]] is configured"), "{said}");
    let (code, said) = fixture.run(&["relay", "--config", &config, "--store", "sqlite:/nowhere/at/all.db"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.lines().count() == 1, "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("http.listen={}", taken.local_addr().expect("its address"));
    let (code, said) = fixture.run(&["relay", "--config", &config, "--set", &listen]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the address is already in use"), "{said}");
    let (code, said) = fixture.run(&["relai"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("relay"), "{said}");
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

    let mut impatient = RelayProcess::start(cluster.folder(), &url, "impatient");
    until_true("it is up", || impatient.get("/readyz").is_some_and(|answer| answer.contains("503"))).await;
    impatient.signal("TERM");
    assert_eq!(impatient.ended(), Some(0), "{}", impatient.log());

    let patient = RelayProcess::start(cluster.folder(), &url, "patient");
    let waits = "retrying until it answers";
    until_true("it says that it waits", || patient.log().contains(waits)).await;
    cluster.start().expect("started");
    until_true("it is ready", || patient.get("/readyz").is_some_and(|answer| answer.contains("200 OK")))
        .await;
    let log = patient.log();
    assert_eq!(log.matches(waits).count(), 1, "once: {log}");
    assert!(log.contains("connected to the database"), "{log}");
}

/// Every line of a talkative relay goes into a pipe that nobody reads any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_whose_log_nobody_reads_delivers_all_the_same() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let mut relay_process = RelayProcess::unheard(fixture.folder.path(), &fixture.url);
    fixture.record(0, 50).await;
    until_true("all are delivered", || relay_process.lines().len() >= 50).await;
    relay_process.signal("TERM");
    assert_eq!(relay_process.ended(), Some(0));
    assert_eq!((in_order(&relay_process.lines()), relay_process.lines().len()), (50, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_s_log_is_json_where_that_is_asked_for() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = "[log]\nformat = \"json\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let mut relay_process = RelayProcess::with(fixture.folder.path(), &fixture.url, "json", settings);
    until_true("it works", || relay_process.log().contains("the relay is running")).await;
    relay_process.signal("TERM");
    assert_eq!(relay_process.ended(), Some(0), "{}", relay_process.log());
    let log = relay_process.log();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let works = lines.iter().find(|line| line["message"] == "the relay is running").expect("its line");
    assert_eq!((&works["level"], &works["subscriptions"]), (&"INFO".into(), &1.into()), "{works}");
    assert!(works["timestamp"].is_string() && works["target"] == "postrider::daemon", "{works}");
    assert_eq!(lines.last().expect("a line")["message"], "stopped");
}

/// Whoever else listens on the usual port, of the same program or of another: a relay starts, says where it answers, and answers there.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_relay_on_a_machine_starts_without_any_setting() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let usual = "[relay]\nlease = \"2s\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let start = |name: &str| RelayProcess::with(fixture.folder.path(), &fixture.url, name, usual);
    let relays = [start("first"), start("second")];
    for relay in &relays {
        let alive = || relay.get("/healthz").is_some_and(|answer| answer.ends_with("alive\n"));
        until_true("it answers", alive).await;
    }
    let logs = [relays[0].log(), relays[1].log()];
    assert_ne!(relays[0].address(), relays[1].address());
    let gave_way = |log: &&String| {
        log.contains("is already in use, so the relay listens on a free port; set http.listen to choose one")
    };
    assert!(logs.iter().filter(gave_way).count() >= 1, "{logs:?}");

    // An address that somebody has chosen is not given up.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let chosen = format!("{usual}[http]\nlisten = \"{address}\"\n");
    let mut refused = RelayProcess::with(fixture.folder.path(), &fixture.url, "refused", &chosen);
    assert_eq!(refused.ended(), Some(1), "{}", refused.log());
    assert!(
        refused
            .log()
            .contains(&format!("http.listen: can't listen on {address}: the address is already in use"))
    );
}

/// Nobody has to name a file that is called what it is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_finds_its_settings_in_its_folder_and_says_so() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    fixture.folder.file("postrider.toml", settings);
    let relay_process = RelayProcess::in_folder(fixture.folder.path(), &fixture.url, "found");
    fixture.record(0, 1).await;
    until_true("it is delivered", || relay_process.lines().len() == 1).await;
    assert!(
        relay_process
            .log()
            .contains("loaded the settings from ./postrider.toml (found in the current folder)"),
        "{}",
        relay_process.log()
    );
}
