//! The binary behind a PgBouncer in transaction mode: publishers, relays that are killed, operators and retention.

mod support;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, Row};
use support::{Fixture, RelayProcess, postrider, until_true};
use xtask::pgbouncer::{Pgbouncer, place_of};

/// How many sessions the pooler has for all: the application's, the relays' and the operators'.
const SESSIONS: u32 = 6;

/// A database, and the way to it.
struct Pooled {
    fixture: Fixture,
    /// The address through the pooler.
    url: String,
    _pooler: Pgbouncer,
}

impl Pooled {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        let sessions = SESSIONS.to_string();
        let settings = [("default_pool_size", sessions.as_str())];
        let pooler = Pgbouncer::before(place_of(&fixture.url), &settings).expect("a PgBouncer");
        let (_, database) = fixture.url.rsplit_once('/').expect("a database");
        let url = pooler.url(database);
        Self { fixture, url, _pooler: pooler }
    }

    /// Runs a command through the pooler: what it said, and that it was done.
    fn run(&self, arguments: &[&str]) -> String {
        let output = postrider(&self.url, arguments).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
        text.into_owned()
    }

    fn relay(&self, name: &str, settings: &str) -> RelayProcess {
        let text = format!(
            "{settings}[relay]\nlease = \"2s\"\npoll_interval = \"500ms\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\nbatch = 50\n[sink.out]\ntype = \"stdout\"\n"
        );
        RelayProcess::with(self.fixture.folder.path(), &self.url, name, &text)
    }

    /// A publisher of the application, in transactions of its own on the same pooler; it prepares nothing.
    async fn publish(&self, from: u32, to: u32) {
        let url = format!("{}?sslmode=disable", self.url);
        let options: sqlx::postgres::PgConnectOptions = url.parse().expect("an address");
        let mut connection =
            PgConnection::connect_with(&options.extra_float_digits(None)).await.expect("the pooler");
        for number in from..to {
            let key = number % 7;
            let text = format!(
                "begin; create table if not exists orders (number integer); insert into orders values ({number}); \
                 select postrider.record('orders', 'OrderPaid', 'Order', '{key}', '{{\"number\": {number}}}'); commit"
            );
            connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await.expect("recorded");
        }
    }
}

/// How many numbers came, each key's in order.
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
async fn behind_a_pooler_another_relay_takes_over_from_a_killed_one_and_nothing_is_lost() {
    let pooled = Pooled::new().await;
    assert_eq!(pooled.run(&["migrate"]), "created the schema postrider, version 15\n");
    let nothing = "nothing to do: the schema postrider is up to date, at version 15\n";
    for _ in 0..3 {
        assert_eq!(pooled.run(&["migrate"]), nothing, "nothing was left in the pooler's sessions");
    }
    let (first, second) = (pooled.relay("first", ""), pooled.relay("second", ""));
    let publisher = pooled.publish(0, 3000);
    let killed = async {
        until_true("some are delivered", || first.lines().len() + second.lines().len() > 300).await;
        // Whoever has the lane.
        let first_holds = first.lines().len() > second.lines().len();
        if first_holds { first.signal("KILL") } else { second.signal("KILL") }
    };
    tokio::join!(publisher, killed);
    let third = pooled.relay("third", "");
    let all = || [first.lines(), second.lines(), third.lines()];
    let seen = || all().concat().iter().map(|(_, number)| *number).collect::<HashSet<_>>().len();
    until_true("all are delivered", || seen() == 3000).await;
    for lines in all() {
        in_order(&lines);
    }
    drop((first, second, third));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_and_retention_do_works_behind_a_pooler() {
    let pooled = Pooled::new().await;
    pooled.run(&["migrate"]);
    pooled.publish(0, 30).await;
    let mut relay = pooled.relay("one", "");
    until_true("all are delivered", || relay.lines().len() == 30).await;
    assert!(pooled.run(&["status"]).contains("out"));
    assert!(pooled.run(&["subscriptions", "list"]).contains("out"));
    assert!(pooled.run(&["events"]).contains("OrderPaid"));
    pooled.run(&["dead", "list"]);
    pooled.run(&[
        "record",
        "--stream",
        "orders",
        "--type",
        "OrderPaid",
        "--aggregate",
        "Order",
        "1",
        "{\"number\": 30}",
    ]);
    let once = "01890000-0000-7000-8000-000000000001";
    for _ in 0..2 {
        let event = ["--type", "OrderPaid", "--aggregate", "Order", "1", "{\"number\": 31}"];
        pooled.run(&[&["record", "--stream", "orders", "--once", "--id", once][..], &event].concat());
    }
    until_true("it is delivered", || relay.lines().len() == 32).await;
    pooled.run(&["subscriptions", "pause", "out", "--yes"]);
    pooled.publish(32, 33).await;
    pooled.run(&["subscriptions", "resume", "out", "--yes"]);
    until_true("it is delivered after the pause", || relay.lines().len() == 33).await;
    pooled.run(&["replay", "out", "--since", "1h", "--yes"]);
    until_true("they come again", || relay.lines().len() >= 66).await;
    relay.signal("TERM");
    assert_eq!(relay.ended(), Some(0), "{}", relay.log());
    let left = async || {
        let row = sqlx::query("select count(*) from postrider.event").fetch_one(&pooled.fixture.pool).await;
        row.expect("a count").get::<i64, _>(0)
    };
    assert_eq!(left().await, 33);
    pooled.run(&["prune", "--older-than", "0s", "--yes"]);
    assert_eq!(left().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_which_pooler_it_found_and_what_the_bell_needs() {
    let pooled = Pooled::new().await;
    pooled.run(&["migrate"]);
    let found = postrider(&pooled.url, &["doctor"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&found.stdout).replace('\n', " ");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("one in transaction mode"), "{text}");
    assert!(words.contains("store.listen_url"), "{text}");
    let file = pooled
        .fixture
        .folder
        .file("listen.toml", &format!("[store]\nlisten_url = \"{}\"\n", pooled.fixture.url));
    let text = pooled.run(&["doctor", "--config", &file.display().to_string()]);
    assert!(text.contains("one in transaction mode") && text.contains("notifications arrive"), "{text}");
    let found = postrider(&pooled.fixture.url, &["doctor"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&found.stdout).contains("none, or one in session mode"));
}

/// The poll is a minute away.
#[tokio::test(flavor = "multi_thread")]
async fn with_an_address_to_listen_at_a_relay_behind_a_pooler_is_rung() {
    let pooled = Pooled::new().await;
    pooled.run(&["migrate"]);
    let settings = format!(
        "[store]\nlisten_url = \"{}\"\n[relay]\npoll_interval = \"1h\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n",
        pooled.fixture.url
    );
    let relay = RelayProcess::with(pooled.fixture.folder.path(), &pooled.url, "rung", &settings);
    let armed = async || {
        let row = sqlx::query(
            "select last_value > extract(epoch from clock_timestamp()) * 1000000 from postrider.bell",
        );
        row.fetch_one(&pooled.fixture.pool).await.is_ok_and(|row| row.get(0))
    };
    let end = std::time::Instant::now() + postrider_testkit::PATIENCE;
    for number in 0..5 {
        while !armed().await {
            assert!(std::time::Instant::now() < end, "it does not fall asleep: {}", relay.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        pooled.publish(number, number + 1).await;
        until_true("it was rung", || relay.lines().len() == number as usize + 1).await;
    }
}

/// As vendors write it into the addresses that they give to people.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_as_vendors_write_it_is_understood() {
    let pooled = Pooled::new().await;
    let url = format!("{}?sslmode=disable&channel_binding=prefer&pgbouncer=true", pooled.url);
    let run = |more: &[&str]| {
        let output = postrider(&url, more).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{more:?}: {text}");
        text.into_owned()
    };
    let pooler = |more: &[&str]| {
        let settings: serde_json::Value =
            serde_json::from_str(&run(&[&["config", "check", "--json"], more].concat())).expect("JSON");
        settings["store"]["pooler"].as_str().expect("a word").to_owned()
    };
    assert_eq!(pooler(&[]), "transaction");
    assert_eq!(pooler(&["--set", "store.pooler=detect"]), "detect", "what is set wins");
    run(&["migrate"]);
    pooled.publish(0, 1).await;
    assert!(run(&["events"]).contains("OrderPaid"));
}
