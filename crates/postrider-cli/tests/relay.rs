//! The relay as a program: real processes, real signals, publishers that know nothing but SQL.

mod support;

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use sqlx::AssertSqlSafe;
use support::{Fixture, RelayProcess, until_true};
use tokio::io::AsyncWriteExt;
use xtask::kafka::{Broker, Options};
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

/// A terminal that is closed ends a relay as SIGTERM does, with its lanes given back; not one that was started to outlive it.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_ends_a_relay_in_order_unless_it_ignores_that() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = "[relay]\nlease = \"2m\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let start =
        |ignores, name| RelayProcess::hung_up(ignores, fixture.folder.path(), &fixture.url, name, settings);
    let mut closed = start(false, "closed");
    fixture.record(0, 1).await;
    until_true("it is delivered", || closed.lines().len() == 1).await;
    closed.signal("HUP");
    assert_eq!(closed.ended(), Some(0), "{}", closed.log());
    // The lane was given back: nobody waits for two minutes.
    let mut outlives = start(true, "outlives");
    fixture.record(1, 2).await;
    until_true("it is delivered", || outlives.lines().len() == 1).await;
    outlives.signal("HUP");
    fixture.record(2, 3).await;
    until_true("it goes on", || outlives.lines().len() == 2).await;
    outlives.signal("TERM");
    assert_eq!(outlives.ended(), Some(0), "{}", outlives.log());
}

/// One terminal that is closed may send SIGHUP twice: from the shell, and from the system when the shell has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_hangup_does_not_cut_short_a_stop() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let endpoint = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let settings = format!(
        "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"hook\"\nsink = \"hook\"\n\
         [sink.hook]\ntype = \"http\"\nurl = \"http://{}\"\n",
        endpoint.local_addr().expect("an address")
    );
    let mut relay = RelayProcess::hung_up(false, fixture.folder.path(), &fixture.url, "closed", &settings);
    fixture.record(0, 1).await;
    let (mut request, _) = endpoint.accept().await.expect("a request");
    relay.signal("HUP");
    until_true("it stops", || relay.log().contains("stopping:")).await;
    relay.signal("HUP");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    request.write_all(answer).await.expect("answered");
    assert_eq!(relay.ended(), Some(0), "{}", relay.log());
    let done = "select count(*) from postrider.event_state where state = 'done'";
    let done: i64 = sqlx::query_scalar(done).fetch_one(&fixture.pool).await.expect("a count");
    assert_eq!(done, 1, "{}", relay.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_killed_has_an_heir() {
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

/// What a DBA runs by hand is what `migrate` would have run.
#[tokio::test(flavor = "multi_thread")]
async fn the_printed_migration_makes_a_schema_that_a_relay_works_with() {
    let fixture = Fixture::new().await;
    let (code, sql) = fixture.run(&["migrate", "--print"]);
    assert_eq!(code, Some(0), "{sql}");
    let (code, said) = fixture.run(&["status"]);
    assert!(code == Some(1) && said.contains("postrider migrate"), "nothing was run: {said}");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&fixture.pool).await.expect("it runs by hand");
    let relay_process = fixture.relay("one");
    fixture.record(0, 3).await;
    until_true("all are delivered", || relay_process.lines().len() == 3).await;
    let (code, said) = fixture.run(&["migrate", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &said["done"], &said["schema"]), (Some(0), &"nothing".into(), &"postrider".into()));
    assert_eq!(said["up_to_date"], true);
}

/// Made, brought up to date, or left alone: each is said, with its versions.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_says_what_it_did() {
    let fixture = Fixture::new().await;
    let latest = postrider::postgres::schema_version();
    let (_, all) = fixture.run(&["migrate", "--print", "--all"]);
    let (code, said) = fixture.run(&["migrate"]);
    assert_eq!((code, said), (Some(0), format!("created the schema postrider, version {latest}\n")));
    let nothing = format!("nothing to do: the schema postrider is up to date, at version {latest}\n");
    assert_eq!(fixture.run(&["migrate"]), (Some(0), nothing));
    // As an older version left it.
    let (older, _) = all.split_once("\n-- migration 4:").expect("a fourth migration");
    let older = AssertSqlSafe(format!("drop schema postrider cascade;\n{older}\ncommit;"));
    sqlx::raw_sql(older).execute(&fixture.pool).await.expect("an older schema");
    let (code, said) = fixture.run(&["migrate", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &said["done"]), (Some(0), &"updated".into()));
    assert_eq!((&said["from"], &said["to"]), (&3.into(), &latest.into()));
    let url = format!("sqlite:{}", fixture.folder.path().join("shop.db").display());
    let (code, said) = fixture.run(&["migrate", "--store", &url]);
    assert!(code == Some(0) && said.starts_with("created the schema, version "), "{said}");
    let (code, said) = fixture.run(&["migrate", "--store", &url]);
    assert!(code == Some(0) && said.starts_with("nothing to do: the schema is up to date"), "{said}");
    for url in [&fixture.url, &url] {
        let limit = ["migrate", "--store", url, "--set", "store.max_payload=50"];
        let (code, said) = fixture.run(&limit);
        assert!(
            code == Some(0) && said.starts_with("set the payload limit to 50 bytes; the schema"),
            "{said}"
        );
        let (code, said) = fixture.run(&limit);
        assert!(code == Some(0) && said.starts_with("nothing to do: the schema"), "it is set: {said}");
        let (code, said) =
            fixture.run(&["migrate", "--json", "--store", url, "--set", "store.max_payload=60"]);
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((code, &said["done"], &said["max_payload"]), (Some(0), &"limited".into(), &60.into()));
    }
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

/// A schema that is there is not made again: what it has is left out, and where nothing is lacking nothing is to be run.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_database_lacks_is_printed_unless_all_is_asked_for() {
    let fixture = Fixture::new().await;
    let (code, all) = fixture.run(&["migrate", "--print", "--all"]);
    assert!(code == Some(0) && all.contains("-- migration 1: log"), "{all}");
    // As an older version left it.
    let (older, _) = all.split_once("\n-- migration 4:").expect("a fourth migration");
    let older = AssertSqlSafe(format!("{older}\ncommit;"));
    sqlx::raw_sql(older).execute(&fixture.pool).await.expect("an older schema");
    let (code, pending) = fixture.run(&["migrate", "--print"]);
    assert!(code == Some(0) && !pending.contains("-- migration 3:"), "{pending}");
    assert!(pending.contains("-- migration 4:"), "{pending}");
    sqlx::raw_sql(AssertSqlSafe(pending.clone())).execute(&fixture.pool).await.expect("it runs by hand");
    let (code, said) = fixture.run(&["migrate", "--print"]);
    assert!(code == Some(0) && said.starts_with("-- the schema postrider is up to date"), "{said}");
    let again =
        sqlx::raw_sql(AssertSqlSafe(pending)).execute(&fixture.pool).await.expect_err("it was run already");
    assert!(again.to_string().contains("is for the schema postrider at version 3"), "{again}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let nowhere = format!("postgres://nobody@{}/nowhere", free.expect("a port that was free"));
    let (code, said) = fixture.run(&["migrate", "--print", "--store", &nowhere]);
    assert!(code == Some(1) && said.contains("--print --all"), "{said}");
}

/// All there is in a topic: key and number of each event.
fn topic(brokers: &str, topic: &str) -> Vec<(String, u64)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "look")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&list).expect("assigned");
    let (_, high) = consumer.fetch_watermarks(topic, 0, Duration::from_secs(10)).expect("its end");
    let mut seen = Vec::new();
    while (seen.len() as i64) < high {
        let message = consumer.poll(Duration::from_secs(10)).expect("a record in time").expect("a record");
        let key = String::from_utf8_lossy(message.key().expect("a key")).into_owned();
        let event: serde_json::Value =
            serde_json::from_slice(message.payload().expect("a value")).expect("JSON");
        seen.push((key, event["number"].as_u64().expect("a number")));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_to_kafka_delivers_in_order_and_a_sigterm_repeats_nothing() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 1).expect("a topic");
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = format!(
        "[relay]\nlease = \"5s\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"kafka\"\nbatch = 50\n\
         [sink.kafka]\ntype = \"kafka\"\nbrokers = \"{}\"\n",
        broker.bootstrap()
    );
    let mut first = RelayProcess::with(fixture.folder.path(), &fixture.url, "first", &settings);
    fixture.record(0, 200).await;
    until_true("some are delivered", || topic(&broker.bootstrap(), "orders").len() > 50).await;
    first.signal("TERM");
    assert_eq!(first.ended(), Some(0), "{}", first.log());
    fixture.record(200, 250).await;
    let _second = RelayProcess::with(fixture.folder.path(), &fixture.url, "second", &settings);
    until_true("all are delivered", || topic(&broker.bootstrap(), "orders").len() >= 250).await;
    let seen = topic(&broker.bootstrap(), "orders");
    assert_eq!((in_order(&seen), seen.len()), (250, 250), "none is lost and none came twice");
}
