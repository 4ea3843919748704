//! Retention as a program: the day's in relays that are real processes, and the commands.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postrider::store::{Lease, Settlement, Store, Subscription};
use postrider::{NewEvent, Payload, postgres, sqlite};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, PgPool};

const PATIENCE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);

/// A database of its own and a folder; both go away, also when the test fails.
struct Fixture {
    folder: PathBuf,
    url: String,
    pool: Option<PgPool>,
    database: String,
}

impl Fixture {
    async fn postgres() -> Self {
        let server = std::env::var("POSTRIDER_TEST_POSTGRES")
            .expect("POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask test`");
        let mut ground = Self::sqlite();
        let pool = PgPool::connect(&server).await.expect("the server of the tests");
        let create = format!("create database {}", ground.database);
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&pool).await.expect("created");
        pool.close().await;
        let (base, _) = server.rsplit_once('/').expect("an address with a database");
        ground.url = format!("{base}/{}", ground.database);
        ground.pool = Some(PgPool::connect(&ground.url).await.expect("connected"));
        ground
    }

    fn sqlite() -> Self {
        let database = format!("retention_{}", postrider::Uuid::new_v4().simple());
        let folder = std::env::temp_dir().join(&database);
        std::fs::create_dir(&folder).expect("a folder");
        let url = format!("sqlite:{}", folder.join("shop.db").display());
        Self { folder, url, pool: None, database }
    }

    /// Records events and settles them; each has an e-mail address in it.
    async fn deliver(&self, events: usize) {
        self.run(&["migrate"]).good();
        let event = |n: usize| {
            let payload = Payload::Json(format!("{{\"n\": {n}, \"email\": \"planted@example.org\"}}"));
            NewEvent::new("orders", "OrderPaid", "Order", (n % 7).to_string(), payload)
        };
        if let Some(pool) = &self.pool {
            let outbox = postgres::Outbox::connect(pool).await.expect("an outbox");
            let mut connection = pool.acquire().await.expect("a connection");
            let events: Vec<NewEvent> = (0..events).map(event).collect();
            outbox.record_all(&mut connection, &events).await.expect("recorded");
            settle(&outbox.store().await.expect("a store")).await;
        } else {
            let pool = self.file().await;
            let outbox = sqlite::Outbox::connect(&pool).await.expect("an outbox");
            for n in 0..events {
                outbox.record_outside_transaction(&event(n)).await.expect("recorded");
            }
            settle(&outbox.store()).await;
            pool.close().await;
        }
    }

    async fn file(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.folder.join("shop.db"));
        SqlitePool::connect_with(options).await.expect("connected")
    }

    /// A number from the database; `{}` is what stands before the names of tables.
    async fn number(&self, text: &str) -> i64 {
        match &self.pool {
            Some(pool) => {
                let query = sqlx::query_scalar(AssertSqlSafe(text.replace("{}", "postrider.")));
                query.fetch_one(pool).await.expect(text)
            }
            None => {
                let pool = self.file().await;
                let query = sqlx::query_scalar(AssertSqlSafe(text.replace("{}", "postrider_")));
                let number = query.fetch_one(&pool).await.expect(text);
                pool.close().await;
                number
            }
        }
    }

    async fn left(&self) -> (i64, i64) {
        // In one look: a sweep may be under way.
        let both = self
            .number("select (select count(*) from {}event) * 1000000 + (select count(*) from {}archive)")
            .await;
        (both / 1_000_000, both % 1_000_000)
    }

    async fn execute(&self, text: &str) {
        match &self.pool {
            Some(pool) => {
                sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(pool).await.expect(text);
            }
            None => {
                let pool = self.file().await;
                sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&pool).await.expect(text);
                pool.close().await;
            }
        }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env_clear().env("POSTRIDER_STORE_URL", &self.url).env("USER", "ada");
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
        assert!(!said.err.contains("panicked") && !said.err.contains("planted"), "{}", said.err);
        said
    }

    fn config(&self, name: &str, retention: &str) -> String {
        let path = self.folder.join(format!("{name}.toml"));
        let text = format!(
            "[relay]\nname = \"{name}\"\nlease = \"2s\"\n[http]\nlisten = \"off\"\n\
             [[subscription]]\nname = \"s\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n[retention]\n{retention}\n"
        );
        std::fs::write(&path, text).expect("the settings");
        path.display().to_string()
    }

    fn relay(&self, name: &str, retention: &str) -> RelayProcess {
        let config = self.config(name, retention);
        let log = self.folder.join(format!("{name}.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["relay", "--config", &config]).env_clear().env("POSTRIDER_STORE_URL", &self.url);
        command.stdout(Stdio::null()).stdin(Stdio::null());
        command.stderr(std::fs::File::create(&log).expect("a file"));
        RelayProcess { process: command.spawn().expect("it starts"), log }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.pool.take().is_some() {
            let (server, database) = (std::env::var("POSTRIDER_TEST_POSTGRES"), self.database.clone());
            let drop = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let (Ok(runtime), Ok(server)) = (runtime, server) else { return };
                runtime.block_on(async {
                    if let Ok(pool) = PgPool::connect(&server).await {
                        let sql = format!("drop database {database} with (force)");
                        let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await;
                    }
                });
            };
            let _ = std::thread::spawn(drop).join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn settle(store: &dyn Store) {
    store.subscribe(&Subscription::new("s")).await.expect("subscribed");
    let mut lease: Lease = store.claim("s", "test", LONG).await.expect("claim").expect("a free lane");
    loop {
        let batch = store.read(&lease, &lease.position.clone(), 10_000).await.expect("read");
        if batch.is_idle() {
            break;
        }
        store.settle(&mut lease, &Settlement::of(&batch)).await.expect("settled");
    }
    store.release(lease).await.expect("released");
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    #[track_caller]
    fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn json(self) -> serde_json::Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    #[track_caller]
    fn sentence(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.err.trim_end().lines().count(), 1, "one sentence: {}", self.err);
        self.err
    }
}

/// A relay in a process of its own; it is killed with the test.
struct RelayProcess {
    process: Child,
    log: PathBuf,
}

impl RelayProcess {
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
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < end, "it did not come to pass in time that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A time of the day that has just come.
fn just_now() -> String {
    let now = postrider::OffsetDateTime::now_utc() - Duration::from_secs(60);
    format!("{:02}:{:02}", now.hour(), now.minute())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_relays_one_does_the_days_retention_once() {
    let ground = Fixture::postgres().await;
    ground.deliver(60).await;
    let settings = format!(
        "at = \"{}\"\ndelivered = \"0s\"\narchive = true\nmask = [\"email\"]\nbatch = 7\npause = \"1ms\"",
        just_now()
    );
    let relay_processes = [ground.relay("one", &settings), ground.relay("two", &settings)];
    until("all is archived", async || ground.left().await == (0, 60)).await;
    let done = || {
        relay_processes
            .iter()
            .filter(|relay_process| relay_process.log().contains("retention finished"))
            .count()
    };
    until("one says so", async || done() > 0).await;
    let log = relay_processes
        .iter()
        .map(RelayProcess::log)
        .find(|log| log.contains("retention finished"))
        .expect("one did");
    assert!(log.contains("events=60") && log.contains("how=\"archived\""), "{log}");
    let clear = "select count(*) from {}archive where payload::text like '%planted%' or payload::text not like '%***%'";
    assert_eq!(ground.number(clear).await, 0, "what is masked is not in the archive");

    // What is recorded and delivered now stays until tomorrow, whoever looks.
    ground.execute("select postrider.record('orders', 'OrderPaid', 'Order', '1', '1')").await;
    let looked =
        "select (extract(epoch from lease_until) * 1000000)::bigint from {}duty where name = 'retention'";
    let before = ground.number(looked).await;
    let third = ground.relay("third", &settings);
    until("the third has looked", async || ground.number(looked).await > before).await;
    until("nobody has the duty", async || {
        ground.number("select count(*) from {}duty where name = 'retention' and owner is not null").await == 0
    })
    .await;
    assert_eq!(ground.left().await, (1, 60));
    assert!(!third.log().contains("retention started"), "{}", third.log());
    assert_eq!(done(), 1, "one did it, once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_killed_in_mid_sweep_loses_nothing_and_its_heir_goes_on() {
    let ground = Fixture::postgres().await;
    ground.deliver(400).await;
    let settings = |pause: &str| {
        format!("at = \"{}\"\ndelivered = \"0s\"\narchive = true\nbatch = 5\npause = \"{pause}\"", just_now())
    };
    let mut first = ground.relay("first", &settings("20ms"));
    until("it is in the middle of it", async || {
        let (left, archived) = ground.left().await;
        assert_eq!(left + archived, 400, "every event is in one place");
        archived > 50
    })
    .await;
    first.signal("-KILL");
    assert_eq!(first.ended(), None);
    let (left, archived) = ground.left().await;
    assert!(left > 0 && left + archived == 400, "{left} and {archived}");
    let second = ground.relay("second", &settings("1ms"));
    until("the heir is done", async || second.log().contains("retention finished")).await;
    assert_eq!(ground.left().await, (0, 400));
    assert_eq!(
        ground.number("select count(distinct event_id) from {}archive").await,
        400,
        "none is there twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sigterm_in_mid_sweep_ends_it_promptly() {
    let ground = Fixture::postgres().await;
    ground.deliver(300).await;
    let settings = format!("at = \"{}\"\ndelivered = \"0s\"\nbatch = 1\npause = \"5s\"", just_now());
    let mut relay_process = ground.relay("one", &settings);
    until("it has begun", async || ground.left().await.0 < 300).await;
    let began = Instant::now();
    relay_process.signal("-TERM");
    assert_eq!(relay_process.ended(), Some(0), "{}", relay_process.log());
    assert!(began.elapsed() < Duration::from_secs(5), "it did not wait for its pause: {:?}", began.elapsed());
    assert!(relay_process.log().contains("retention stopped"), "{}", relay_process.log());
    assert!(ground.left().await.0 > 200);
    let free = ground.number("select count(*) from {}duty where name = 'retention' and owner is null").await;
    assert_eq!(free, 1, "the next relay need not wait");
}

async fn archive_and_prune(ground: Fixture) {
    ground.deliver(30).await;
    assert_eq!(
        ground.run(&["archive", "--older-than", "1d", "--dry-run"]).good(),
        "would archive 0 events that every subscription settled more than 1d ago\n"
    );
    let dry = ground.run(&["archive", "--older-than", "0s", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["taken"][0]["rows"]), (&true.into(), &30.into()), "{dry}");
    let said = ground.run(&["archive", "--older-than", "0s"]).sentence(2);
    assert!(said.contains("Archive 30 events") && said.contains("--yes"), "{said}");
    assert_eq!(ground.left().await, (30, 0), "nothing was taken so far");

    let config = ground.config("p", "delivered = \"0s\"\narchive = true\nmask = [\"email\"]");
    let flags = [
        "archive",
        "--config",
        &config,
        "--yes",
        "--batch",
        "4",
        "--pause",
        "1ms",
        "--why",
        "the disk is full",
        "--json",
    ];
    let done = ground.run(&flags).json();
    assert_eq!((&done["finished"], &done["taken"][0]["rows"]), (&true.into(), &30.into()), "{done}");
    assert_eq!(ground.left().await, (0, 30));
    assert_eq!(
        ground.number("select count(*) from {}archive where cast(payload as text) like '%planted%'").await,
        0
    );
    let audits = ground.run(&["audit", "--json"]).good();
    for word in ["archive 30 events", "ada@", "the disk is full"] {
        assert!(audits.contains(word), "{word}: {audits}");
    }
    assert!(ground.run(&flags).json()["finished"].as_bool() == Some(true), "again is no mistake");

    // Archived events are not deleted by a prune without flags; nor is the log, where it is to be archived.
    ground.deliver(3).await;
    ground.run(&["prune", "--config", &config, "--yes"]).good();
    assert_eq!(ground.left().await, (3, 30));
    let out = ground.run(&["prune", "--older-than", "0s", "--yes"]).good();
    assert!(out.contains("deleted 3 events"), "{out}");
    assert_eq!(ground.left().await, (0, 30));
    let dry = ground.run(&["prune", "--archived", "0s", "--inbox", "7d", "--dry-run", "--json"]).json();
    assert_eq!(dry["taken"].as_array().map(Vec::len), Some(2), "{dry}");
    assert_eq!(
        (&dry["taken"][0]["what"], &dry["taken"][0]["rows"]),
        (&"archived".into(), &0.into()),
        "this month goes on: {dry}"
    );

    for (arguments, part) in [
        (&["prune", "--yes"][..], "pass --older-than 30d"),
        (&["archive", "--yes"][..], "pass --older-than 30d"),
    ] {
        let said = ground.run(arguments).sentence(2);
        assert!(said.contains(part), "{said}");
    }
    for arguments in
        [&["prune", "--older-than", "soon"][..], &["archive", "--batch", "0"], &["prune", "--inbox", "-1d"]]
    {
        assert_eq!(ground.run(arguments).code, Some(2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_and_prune_count_ask_take_and_write_it_down_on_postgres() {
    archive_and_prune(Fixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_and_prune_count_ask_take_and_write_it_down_on_sqlite() {
    archive_and_prune(Fixture::sqlite()).await;
}

async fn into_a_table(ground: Fixture, create: &str) {
    ground.deliver(12).await;
    let settings = |columns: &str| {
        format!(
            "delivered = \"0s\"\narchive = true\nat = \"{}\"\n[retention.target]\ntable = \"audit\"\ncolumns = {{ {columns} }}",
            just_now()
        )
    };
    let good = "id = \"event_id\", kind = \"event_type\", at = \"recorded_at\", body = \"payload\"";
    let missing = ground.config("missing", &settings(good));
    for command in [&["archive", "--config", &missing, "--yes"][..], &["relay", "--config", &missing]] {
        let said = ground.run(command).sentence(2);
        assert!(said.contains("retention.target") && said.contains("there is no table audit"), "{said}");
    }
    ground.execute(create).await;
    let wrong = ground.config("wrong", &settings("id = \"event_id\", what = \"event_type\""));
    let said = ground.run(&["archive", "--config", &wrong, "--yes"]).sentence(2);
    assert!(said.contains("has no column \"what\""), "{said}");
    let config = ground.config("good", &settings(good));
    let out = ground.run(&["archive", "--config", &config, "--yes", "--batch", "5", "--json"]).json();
    assert_eq!(
        (&out["taken"][0]["rows"], &out["taken"][0]["target"]),
        (&12.into(), &"audit".into()),
        "{out}"
    );
    assert_eq!(ground.left().await, (0, 0), "they are not in the archive");
    let there = "select count(*) from audit where kind = 'OrderPaid' and cast(id as text) like '________-____-7%' \
         and cast(body as text) like '%planted%' and cast(at as text) like '20__-__-__%'";
    assert_eq!(ground.number(there).await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_events_go_to_a_table_of_the_application_on_postgres() {
    into_a_table(
        Fixture::postgres().await,
        "create table audit (id uuid primary key, kind text not null, at timestamptz not null, body jsonb)",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_events_go_to_a_table_of_the_application_on_sqlite() {
    into_a_table(
        Fixture::sqlite(),
        "create table audit (id text primary key, kind text not null, at text not null, body text) strict",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_refused_where_there_are_none() {
    let ground = Fixture::sqlite();
    ground.deliver(1).await;
    let config = ground.config("months", "delivered = \"0s\"\narchive = true\nby_month = true");
    for command in [&["archive", "--config", &config, "--yes"][..], &["relay", "--config", &config]] {
        let said = ground.run(command).sentence(2);
        assert!(said.contains("retention.by_month: SQLite has no partitions"), "{said}");
    }
    assert_eq!(ground.left().await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_work_beside_another() {
    let ground = Fixture::postgres().await;
    ground.deliver(5).await;
    ground
        .execute(
            "insert into postrider.duty (name, owner, lease_until, lease_for) \
             values ('retention', 'somebody', clock_timestamp() + interval '1 minute', interval '1 minute')",
        )
        .await;
    let said = ground.run(&["archive", "--older-than", "0s", "--yes"]).sentence(1);
    assert!(said.contains("retention is already running"), "{said}");
    assert_eq!(ground.left().await, (5, 0));
}
