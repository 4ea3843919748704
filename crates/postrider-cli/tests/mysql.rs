//! The relay as a program on MariaDB: publishers call a procedure, and another relay takes over from one that is killed.

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use postrider_testkit::mysql::Database;
use postrider_testkit::{Folder, Logged, PATIENCE, address, until_true};
use sqlx::MySqlPool;
use xtask::mariadb::Mariadb;

/// A database of its own on the server of the tests, and a folder; both go away.
struct Fixture {
    folder: Folder,
    url: String,
    _database: Database,
}

impl Fixture {
    async fn new() -> Self {
        Self::on(&address::mysql()).await
    }

    async fn on(server: &str) -> Self {
        let database = Database::on(server.parse().expect("an address of a MariaDB")).await;
        let url = address::with_database(server, database.name());
        Self { folder: Folder::new(), url, _database: database }
    }

    fn run(&self, url: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        let output = command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", url).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{text}");
        (output.status.code(), text.into_owned())
    }

    fn relay(&self, name: &str) -> RelayProcess {
        let text = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"out\"\nsink = \"out\"\nbatch = 20\n[sink.out]\ntype = \"stdout\"\n";
        self.relay_with(name, text)
    }

    fn relay_with(&self, name: &str, text: &str) -> RelayProcess {
        let config = self.folder.file(&format!("{name}.toml"), text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config"]).arg(&config).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        RelayProcess(Logged::start(&mut command, self.folder.path(), name))
    }
}

/// A relay in a process of its own; it is killed with the test.
struct RelayProcess(Logged);

impl RelayProcess {
    /// The number of each event that it wrote.
    fn numbers(&self) -> Vec<u64> {
        let text = self.0.out();
        // A process that was killed may have left half a line.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let number = |line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
            event["data"]["number"].as_u64().expect("a number")
        };
        whole.lines().map(number).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_on_mariadb_delivers_what_a_procedure_records_and_another_takes_over() {
    let fixture = Fixture::new().await;
    let (code, said) = fixture.run(&fixture.url, &["migrate", "--print"]);
    assert!(code == Some(0) && said.contains(" procedure postrider_number("), "{said}");
    for what in ["created the schema, version ", "nothing to do: the schema is up to date, at version "] {
        let (code, said) = fixture.run(&fixture.url, &["migrate"]);
        assert!(code == Some(0) && said.starts_with(what), "{said}");
    }
    let (code, said) = fixture.run(&fixture.url, &["migrate", "--print"]);
    assert!(
        code == Some(0) && said.trim() == "-- the schema is up to date",
        "only what is pending is printed: {said}"
    );
    let pool = MySqlPool::connect(&fixture.url).await.expect("connected");
    let record = async |from: u64, to: u64| {
        for number in from..to {
            let call = sqlx::query("call postrider_record('orders', 'OrderPaid', 'Order', ?, ?)");
            let call = call.bind((number % 7).to_string()).bind(format!("{{\"number\": {number}}}"));
            call.execute(&pool).await.expect("recorded");
        }
    };
    let mut first = fixture.relay("first");
    record(0, 150).await;
    until_true("the first delivers", || first.numbers().len() >= 50).await;
    first.0.process.kill();
    record(150, 200).await;
    let second = fixture.relay("second");
    let all = || -> HashSet<u64> { first.numbers().into_iter().chain(second.numbers()).collect() };
    until_true("all of it arrives", || all().len() == 200).await;
    let next_holder = second.numbers();
    assert!(next_holder.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice: {next_holder:?}");
    drop((first, second));
    pool.close().await;
}

async fn until_no_lane_is_held(pool: &MySqlPool, end: Instant) {
    let held = "select count(*) from postrider_lane where lease_owner is not null";
    while sqlx::query_scalar::<_, i64>(held).fetch_one(pool).await.expect("a count") > 0 {
        assert!(Instant::now() < end, "it does not give its lanes back");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// There is no NOTIFY: the relay asks, seldom while nothing happens, and hears of another process's event long before its
/// poll interval is over.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_relay_asks_the_server_seldom_and_hears_of_others_soon() {
    // Of its own, so that every statement that it counts is the relay's.
    let server = Mariadb::create(&[]).expect("a MariaDB");
    let fixture = Fixture::on(&server.url("test")).await;
    fixture.run(&fixture.url, &["migrate"]);
    let subscriptions = (0..6).map(|n| {
        format!("[[subscription]]\nname = \"s{n}\"\nsink = \"{}\"\n", if n == 0 { "out" } else { "file" })
    });
    let settings = format!(
        "[relay]\npoll_interval = \"10m\"\nfigures_every = \"1h\"\n[http]\nlisten = \"off\"\n{}[sink.out]\ntype = \"stdout\"\n[sink.file]\ntype = \"stdout\"\n",
        subscriptions.collect::<String>()
    );
    let relay = fixture.relay_with("idle", &settings);
    let pool = MySqlPool::connect(&fixture.url).await.expect("connected");
    let record = async |number: u64| {
        let call = sqlx::query("call postrider_record('orders', 'OrderPaid', 'Order', '7', ?)");
        call.bind(format!("{{\"number\": {number}}}")).execute(&pool).await.expect("recorded");
    };
    record(0).await;
    until_true("all of them work", || relay.numbers().len() == 6).await;
    let asked = async || -> i64 {
        let row = sqlx::query("show global status like 'Questions'").fetch_one(&pool).await.expect("a count");
        sqlx::Row::get::<String, _>(&row, 1).parse().expect("a number")
    };
    let often = async |window: Duration| {
        let before = asked().await;
        tokio::time::sleep(window).await;
        asked().await - before - 1
    };
    let window = Duration::from_secs(5);
    // After work it asks often, and gives its lanes back after a third of a lease; then it is calm.
    let end = Instant::now() + PATIENCE;
    until_no_lane_is_held(&pool, end).await;
    while often(window).await > 40 {
        assert!(Instant::now() < end, "it does not calm down");
    }
    let calm = often(window).await;
    assert!((10..=40).contains(&calm), "{calm} statements in {window:?} for six subscriptions");

    let mut took = Vec::new();
    for number in 1..=10 {
        let begun = Instant::now();
        record(number).await;
        let wanted = 6 * (number as usize + 1);
        until_true("it arrives", || relay.numbers().len() == wanted).await;
        took.push(begun.elapsed());
        // The next one comes when it is slow to ask again: no more than four times in half a second.
        let end = Instant::now() + PATIENCE;
        while often(Duration::from_millis(500)).await > 4 {
            assert!(Instant::now() < end, "it does not calm down");
        }
    }
    took.sort_unstable();
    assert!(took[5] < Duration::from_secs(2), "half of them took longer than {:?}", took[5]);
    drop(relay);
    pool.close().await;
}

/// The limit of payloads is a setting of the log: publishers meet it by SQL, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_payload_is_set_by_migrate_and_met_by_publishers() {
    let fixture = Fixture::new().await;
    let config = fixture.folder.path().join("limit.toml").display().to_string();
    let pool = MySqlPool::connect(&fixture.url).await.expect("connected");
    let record = async |bytes: usize| {
        let call = sqlx::query("call postrider_record('orders', 'OrderPaid', 'Order', '7', ?)");
        let call = call.bind("7".repeat(bytes)).execute(&pool).await;
        call.map(|_| ()).map_err(|error| error.to_string())
    };
    for (limit, done) in [
        (100, "created the schema"),
        (200, "set the payload limit to 200 bytes; the schema is up to date"),
        (200, "nothing to do"),
    ] {
        std::fs::write(&config, format!("[store]\nmax_payload = {limit}\n")).expect("the settings");
        let (code, said) = fixture.run(&fixture.url, &["migrate", "--config", &config]);
        assert!(code == Some(0) && said.starts_with(done), "{said}");
        record(limit).await.expect("within the limit");
        let said = record(limit + 1).await.expect_err("above the limit");
        assert!(said.contains(&format!("more than the limit of {limit}")), "{said}");
    }
    pool.close().await;
}

/// L13: an archive that has events is partitioned when somebody says so, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn months_of_the_archive_are_asked_for_by_a_setting() {
    let fixture = Fixture::new().await;
    fixture.run(&fixture.url, &["migrate"]);
    let pool = MySqlPool::connect(&fixture.url).await.expect("connected");
    sqlx::raw_sql(
        "insert into postrider_archive (id, event_id, stream, event_type, aggregate_type, aggregate_id, occurred_at, recorded_at,
                                        headers, payload, archived_at)
         values (1, unhex(left(sha2(1, 256), 32)), 's', 'T', 'A', '1', '2020-01-12', '2020-01-12', '{}', '1', utc_timestamp())",
    )
    .execute(&pool)
    .await
    .expect("an old event");
    let config = fixture.folder.path().join("months.toml").display().to_string();
    let settings = "[retention]\ndelivered = \"0s\"\narchive = true\narchived = \"5y\"\nby_month = true\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    std::fs::write(&config, settings).expect("the settings");
    for command in [&["relay", "--config", &config][..], &["archive", "--yes", "--config", &config]] {
        let (code, said) = fixture.run(&fixture.url, command);
        let remedy = "call postrider_archive_months(null)";
        assert!(code == Some(2) && said.contains("retention.by_month") && said.contains(remedy), "{said}");
    }
    sqlx::raw_sql("call postrider_archive_months(null)").execute(&pool).await.expect("partitioned");
    let (code, said) = fixture.run(&fixture.url, &["doctor"]);
    assert!(code.is_some() && said.contains("it has months up to"), "{said}");
    let (code, said) = fixture.run(&fixture.url, &["config", "check", "--config", &config]);
    assert!(code == Some(0) && said.contains("partitioned by month"), "{said}");
    let (code, said) = fixture.run(&fixture.url, &["prune", "--yes", "--config", &config]);
    assert!(code == Some(0) && said.contains("deleted 1 archived event"), "{said}");
    let left = "select count(*) from information_schema.partitions where table_schema = database()
                and table_name = 'postrider_archive' and partition_name = 'm2020_01'";
    let left: i64 = sqlx::query_scalar(left).fetch_one(&pool).await.expect("a count");
    assert_eq!(left, 0, "its month is gone");
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_is_said_so_without_its_password() {
    let fixture = Fixture::new().await;
    for (url, part) in [
        (&*format!("mysql://root:hush@{}/shop", address::nobody()), "does not answer"),
        (&*fixture.url.replace("root@", "nobody:hush@"), "check user and password"),
        ("mysqll://root:hush@127.0.0.1/shop", "it must begin with postgres://, mysql:// or sqlite:"),
    ] {
        let (code, said) = fixture.run(url, &["migrate"]);
        assert!(matches!(code, Some(1 | 2)) && said.contains(part) && !said.contains("hush"), "{said}");
    }
}
