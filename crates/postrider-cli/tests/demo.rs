//! The demo, as its users run it: real processes, real signals, and what it says when it is piped.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sqlx::MySqlPool;
use sqlx::sqlite::SqlitePool;
use tokio::sync::RwLock;

const PATIENCE: Duration = Duration::from_secs(60);

/// How long a demo takes is measured while no other plays.
static MACHINE: RwLock<()> = RwLock::const_new(());

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.arg("demo").args(arguments).env("TMPDIR", folder).stdin(Stdio::null());
    command
}

fn postrider(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).env("TMPDIR", folder).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("postrider-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn content(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).expect("the folder").map(|entry| entry.expect("an entry").path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A demo at work, that is killed with the test; its relays end with it.
struct Playing {
    process: Child,
    out: Option<BufReader<ChildStdout>>,
    relays: BTreeSet<u32>,
}

impl Playing {
    /// Starts one, and waits until both of its relays are at work.
    fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Folder, arguments: &[&str]) -> Self {
        let mut command = demo(&folder.0, arguments);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut out = BufReader::new(process.stdout.take().expect("its output"));
        let mut playing = Self { process, out: None, relays: BTreeSet::new() };
        let mut line = String::new();
        while !line.contains("share the lanes") {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it ended too early");
        }
        playing.out = Some(out);
        playing.relays = children(playing.process.id());
        assert_eq!(playing.relays.len(), 2, "two relays are processes of their own");
        playing
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// Its exit code, and what it said on stderr.
    fn ended(&mut self) -> (Option<i32>, String) {
        let status = self.process.wait().expect("it ends");
        let mut said = String::new();
        let err = self.process.stderr.as_mut().expect("its errors");
        std::io::Read::read_to_string(err, &mut said).expect("text");
        (status.code(), said)
    }

    fn no_relay_is_left(&self) {
        let end = Instant::now() + PATIENCE;
        while let Some(relay) = self.relays.iter().find(|relay| is_alive(**relay)) {
            assert!(Instant::now() < end, "the relay {relay} was left behind");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn processes() -> Vec<(u32, u32, String)> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output().expect("ps");
    let table = text(&output.stdout);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        Some((number()?, number()?, words.next()?.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

fn children(parent: u32) -> BTreeSet<u32> {
    processes().into_iter().filter(|(_, of, _)| *of == parent).map(|(process, ..)| process).collect()
}

/// Whether a process runs; one that has ended and was not collected does not.
fn is_alive(process: u32) -> bool {
    processes().iter().any(|(number, _, state)| *number == process && !state.starts_with('Z'))
}

/// The figures of a row of the summary: of the books, the mail and the warehouse.
fn row(text: &str, name: &str) -> [u64; 3] {
    let summary = text.split("counted in the shop").nth(1).unwrap_or_else(|| panic!("no summary in\n{text}"));
    let line = summary.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line {name:?} in\n{text}"));
    let figures =
        line.trim_start()[name.len()..].split_whitespace().map(|figure| figure.parse().expect("a number"));
    figures.collect::<Vec<u64>>().try_into().expect("three figures")
}

async fn count(shop: &SqlitePool, sql: &'static str) -> u64 {
    let (count,): (i64,) = sqlx::query_as(sql).fetch_one(shop).await.expect("counted");
    u64::try_from(count).expect("a count")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_demos_at_once_keep_their_promises_and_count_them() {
    let _here = MACHINE.read().await;
    let folder = Folder::new("demo");
    let start =
        || demo(&folder.0, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let (first, second) = (start(), start());
    for playing in [first, second] {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        let [recorded, ..] = row(&said, "recorded");
        assert!(recorded > 100, "{said}");
        assert_eq!(row(&said, "delivered  "), [recorded, recorded - 1, recorded], "{said}");
        assert_eq!(row(&said, "dead"), [0, 1, 0], "one address does not exist");
        assert!(row(&said, "retried")[2] > 0, "the warehouse was closed: {said}");
        assert_eq!(row(&said, "delivered again")[0], 0, "the books have an inbox");
        for promise in ["lost", "out of order", "rolled back, delivered"] {
            assert_eq!(row(&said, promise), [0, 0, 0], "{said}");
        }
        for happening in ["is killed", "relay B takes over after", "an event is dead after 4 attempts"] {
            assert!(said.contains(happening), "no {happening:?} in\n{said}");
        }
        assert!(said.contains("Every promise held") && !said.contains("BROKEN"), "{said}");
    }
    for shop in folder.content() {
        the_kept_shop_says_the_same(&shop).await;
    }
    assert_eq!(folder.content().len(), 2, "each shop is kept, to look around");
}

async fn the_kept_shop_says_the_same(folder: &Path) {
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let shop = SqlitePool::connect(&url).await.expect("the kept file");
    let recorded =
        count(&shop, "select count(*) from postrider_event where stream in ('orders', 'payments')").await;
    assert_eq!(count(&shop, "select count(*) from changed").await, recorded);
    let booked = "select count(*) from effect where subscription = 'books'";
    assert_eq!(count(&shop, booked).await, recorded, "each once");
    let by_a = "select count(*) from effect where relay = 'relay A'";
    assert!(count(&shop, by_a).await > 0, "the relay that was killed had worked");
    let open = "select count(*) from postrider_event_state where state not in ('done', 'dead')";
    assert_eq!(count(&shop, open).await, 0);
    let dead = "select count(*) from postrider_event_state where state = 'dead' and subscription = 'mail'";
    assert_eq!(count(&shop, dead).await, 1);
    shop.close().await;
}

#[test]
fn piped_it_is_plain_text_that_fits_eighty_columns_and_ends_within_twenty_seconds() {
    let _here = MACHINE.blocking_write();
    let folder = Folder::new("piped");
    let output = demo(&folder.0, &["--keep"]).arg(folder.0.join("kept")).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(!said.contains('\x1b') && !said.contains('\r'), "{said:?}");
    let took = said.split(", in ").nth(1).and_then(|rest| rest.split(" s.").next());
    let took: f64 = took.and_then(|took| took.parse().ok()).expect("how long it took");
    assert!(took < 20.0, "it took {took} s");
    // How to look around has a path in it, and is as long as that.
    let shown = said.split("Look around").next().expect("the rest");
    for line in shown.lines() {
        assert!(line.chars().count() < 80, "{line:?} is too long");
    }
    let shop = folder.0.join("kept/shop.db");
    assert!(said.contains(&format!("POSTRIDER_STORE_URL=sqlite:{}", shop.display())), "{said}");
    assert!(said.contains(" status\n") && said.contains(" dead list\n"), "{said}");
    assert!(shop.is_file());
    // What it says to type is typed.
    let commands = said.split("Look around:").nth(1).expect("how to look around");
    let output = Command::new("sh").args(["-ec", commands]).output().expect("a shell");
    let looked = text(&output.stdout);
    assert!(output.status.success(), "{commands}{}", text(&output.stderr));
    assert!(looked.contains("warehouse") && looked.contains("there is no such address"), "{looked}");
}

/// Runs the demo on a terminal of its own: everything that it sent there.
fn on_a_terminal(folder: &Folder, colours: bool) -> Child {
    let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new(xtask::python::ready().expect("a Python"));
    command.args(["-c", script, env!("CARGO_BIN_EXE_postrider"), "demo"]).env("TMPDIR", &folder.0);
    command.env("TERM", "xterm").env("NO_COLOR", if colours { "" } else { "1" });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn on_a_terminal_it_draws_and_gives_the_cursor_back() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new("terminal");
    for (colours, playing) in [true, false].map(|colours| (colours, on_a_terminal(&folder, colours))) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        let (hidden, shown) = (said.rfind("\x1b[?25l"), said.rfind("\x1b[?25h"));
        assert!(hidden.is_some() && hidden < shown, "the cursor was taken and given back: {said:?}");
        assert!(said.contains("\x1b[J") && said.contains('█'), "it was drawn again and again: {said:?}");
        assert_eq!(said.contains("\x1b[32m"), colours, "{said:?}");
        assert_eq!(said.matches("the shop opens").count(), 1, "what happened is written once");
        assert!(said.contains("Every promise held") && said.contains("relay A: "), "{said:?}");
    }
}

#[test]
fn a_broken_promise_is_named_and_ends_with_1() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new("broken");
    let start = |fault: &'static str| {
        let mut command = demo(&folder.0, &["--break", fault]);
        (fault, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
    };
    let playing = ["loss", "order", "effects"].map(start);
    for (fault, process) in playing {
        let output = process.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{fault}: {said}{}", text(&output.stderr));
        let broken: Vec<&str> = said.lines().filter(|line| line.trim_start().starts_with("BROKEN")).collect();
        let named = match fault {
            "loss" => "lost: 1",
            "order" => "out of order within a customer: 1",
            _ => "1 twice",
        };
        assert!(broken.len() == 1 && broken[0].contains(named), "{fault}: {said}");
        assert!(said.contains("A promise was BROKEN") && !said.contains("Every promise held"), "{said}");
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new("interrupted");
    let mut playing = Playing::start(&folder);
    playing.signal("-INT");
    let (code, said) = playing.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("interrupted") && !said.contains("panicked"), "{said}");
    playing.no_relay_is_left();
    assert!(folder.content().is_empty(), "half a shop is removed");
}

#[test]
fn the_relays_of_a_killed_demo_end_by_themselves() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new("killed");
    let mut playing = Playing::start(&folder);
    playing.signal("-KILL");
    assert_eq!(playing.ended().0, None);
    playing.no_relay_is_left();
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new("pipe");
    let mut playing = Playing::start(&folder);
    drop(playing.out.take());
    assert_eq!(playing.ended(), (Some(0), String::new()));
    playing.no_relay_is_left();
    assert!(folder.content().is_empty(), "half a shop is removed");
}

fn server() -> String {
    std::env::var("POSTRIDER_TEST_MYSQL").expect("POSTRIDER_TEST_MYSQL is not set: run `cargo xtask test`")
}

/// A user who may make the demo's databases, and nothing else. It goes with the test, and so do those that were made since.
struct Visitor {
    name: String,
    pool: MySqlPool,
    before: BTreeSet<String>,
}

impl Visitor {
    async fn new(name: &str) -> Self {
        let pool = MySqlPool::connect(&server()).await.expect("the server of the tests");
        let name = format!("demo_{name}_{}", std::process::id());
        let make = format!(
            "create user {name}@'%' identified by 'hush'; grant all on `postrider\\_demo\\_%`.* to {name}@'%'"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(make)).execute(&pool).await.expect("a user");
        let before = databases(&pool).await;
        Self { name, pool, before }
    }

    fn address(&self) -> String {
        let server = server();
        let (_, place) = server.rsplit_once('@').expect("a user in the address");
        let place = place.split('/').next().expect("a host");
        format!("mysql://{}:hush@{place}", self.name)
    }

    /// The databases that demos have made since.
    async fn made(&self) -> Vec<String> {
        databases(&self.pool).await.difference(&self.before).cloned().collect()
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let (name, before) = (self.name.clone(), std::mem::take(&mut self.before));
        let leave = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let Ok(pool) = MySqlPool::connect(&server()).await else { return };
                let mut drops = vec![format!("drop user {name}@'%'")];
                drops.extend(
                    databases(&pool).await.difference(&before).map(|made| format!("drop database {made}")),
                );
                for drop in drops {
                    let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&pool).await;
                }
            });
        };
        let _ = std::thread::spawn(leave).join();
    }
}

async fn databases(pool: &MySqlPool) -> BTreeSet<String> {
    let all = sqlx::query_scalar(
        "select convert(schema_name using utf8mb4) from information_schema.schemata
         where schema_name like 'postrider\\_demo\\_%'",
    );
    all.fetch_all(pool).await.expect("databases").into_iter().collect()
}

/// One test, so that no other demo makes a database meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_mariadb_it_keeps_the_same_promises_in_a_database_of_its_own() {
    let _here = MACHINE.read().await;
    let folder = Folder::new("mariadb");
    let visitor = Visitor::new("visitor").await;
    let address = visitor.address();
    let kept = folder.0.join("kept").display().to_string();
    let start = |arguments: &[&str]| {
        let mut command = demo(&folder.0, arguments);
        command.args(["--store", &address]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let demos = [start(&[]), start(&["--keep", &kept]), start(&["--break", "order"])];
    for (broken, playing) in [false, false, true].into_iter().zip(demos) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(broken)), "{said}{}", text(&output.stderr));
        assert!(output.stderr.is_empty() && !said.contains("hush"), "{}", text(&output.stderr));
        assert!(said.contains("A shop on MariaDB") && said.contains("is killed"), "{said}");
        assert_eq!(said.contains("Every promise held"), !broken, "{said}");
        let [recorded, ..] = row(&said, "recorded");
        assert!(recorded > 100, "{said}");
        assert_eq!(row(&said, "dead"), [0, 1, 0], "one address does not exist");
        assert_eq!(row(&said, "delivered  "), [recorded, recorded - 1, recorded], "{said}");
        assert_eq!(row(&said, "delivered again")[0], 0, "the books have an inbox");
        assert_eq!(row(&said, "out of order"), [0, u64::from(broken), 0], "{said}");
        assert_eq!(row(&said, "lost"), [0, 0, 0], "{said}");
    }
    let left = visitor.made().await;
    let [database] = left.as_slice() else { panic!("only what is to be kept is kept: {left:?}") };
    assert_eq!(folder.content(), [PathBuf::from(&kept)], "and one folder");
    let mut look = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let looked =
        look.args(["status", "--store", &format!("{address}/{database}")]).output().expect("it runs");
    assert!(
        looked.status.success() && text(&looked.stdout).contains("warehouse"),
        "{}",
        text(&looked.stderr)
    );

    let mut playing = Playing::start_with(&folder, &["--store", &address]);
    playing.signal("-INT");
    let (code, said) = playing.ended();
    assert!(
        code == Some(1) && said.contains("interrupted") && said.contains("the demo removed its database"),
        "{said}"
    );
    playing.no_relay_is_left();
    assert_eq!(visitor.made().await, left, "half a shop is removed");
}

/// A database on the PostgreSQL of the tests; it goes away with the test.
struct Place {
    name: String,
    url: String,
}

impl Place {
    async fn new() -> Self {
        let name = format!("demo_{}", postrider::Uuid::new_v4().simple());
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").expect("POSTRIDER_TEST_POSTGRES is not set");
        Self::execute(&server, &format!("create database {name}")).await;
        let (base, _) = server.rsplit_once('/').expect("an address with a database");
        Self { url: format!("{base}/{name}"), name }
    }

    async fn execute(url: &str, statement: &str) {
        let pool = sqlx::PgPool::connect(url).await.expect("the server of the tests");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(&pool).await.expect("executed");
        pool.close().await;
    }

    async fn schemas(&self) -> Vec<String> {
        let pool = sqlx::PgPool::connect(&self.url).await.expect("the server of the tests");
        let all = sqlx::query_scalar(
            "select nspname::text from pg_namespace where nspname !~ '^pg_|^information' order by 1",
        );
        let all = all.fetch_all(&pool).await.expect("schemas");
        pool.close().await;
        all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let drop = format!("drop database {} with (force)", self.name);
        let leave = move || {
            let server = std::env::var("POSTRIDER_TEST_POSTGRES").expect("the server of the tests");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(Self::execute(&server, &drop));
        };
        let _ = std::thread::spawn(leave).join();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_postgresql_it_keeps_the_same_promises_in_a_schema_of_its_own() {
    let _here = MACHINE.read().await;
    let folder = Folder::new("postgres");
    let place = Place::new().await;
    let kept = folder.0.join("kept").display().to_string();
    let start = |arguments: &[&str]| {
        let mut command = demo(&folder.0, arguments);
        command.args(["--store", &place.url]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let demos = [
        start(&[]),
        start(&["--keep", &kept, "--schema", "kept"]),
        start(&["--break", "order", "--schema", "broken"]),
    ];
    for (broken, playing) in [false, false, true].into_iter().zip(demos) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(broken)), "{said}{}", text(&output.stderr));
        assert!(said.contains("A shop on PostgreSQL") && said.contains("is killed"), "{said}");
        assert_eq!(said.contains("Every promise held"), !broken, "{said}");
        let [recorded, ..] = row(&said, "recorded");
        assert!(recorded > 100, "{said}");
        assert_eq!(row(&said, "dead"), [0, 1, 0], "one address does not exist");
        assert_eq!(row(&said, "delivered  "), [recorded, recorded - 1, recorded], "{said}");
        assert_eq!(row(&said, "delivered again")[0], 0, "the books have an inbox");
        assert_eq!(row(&said, "out of order"), [0, u64::from(broken), 0], "{said}");
        assert_eq!(row(&said, "lost"), [0, 0, 0], "{said}");
    }
    assert_eq!(place.schemas().await, ["kept", "public"], "only what is to be kept is kept");
    let mut look = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let looked = look.args(["status", "--store", &place.url, "--schema", "kept"]).output().expect("it runs");
    assert!(
        looked.status.success() && text(&looked.stdout).contains("warehouse"),
        "{}",
        text(&looked.stderr)
    );

    // One that is there is nobody's to play in, and stays as it is.
    let output = demo(&folder.0, &["--store", &place.url, "--schema", "kept"]).output().expect("it runs");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("the schema kept already exists"), "{said}");
    assert!(said.contains("choose another with --schema"), "{said}");
    assert_eq!(place.schemas().await, ["kept", "public"]);

    let mut playing = Playing::start_with(&folder, &["--store", &place.url]);
    playing.signal("-INT");
    let (code, said) = playing.ended();
    assert!(
        code == Some(1) && said.contains("interrupted") && said.contains("the demo removed its schema"),
        "{said}"
    );
    playing.no_relay_is_left();
    assert_eq!(place.schemas().await, ["kept", "public"], "half a shop is removed");
}

/// An address where nobody listens.
fn nobody() -> std::net::SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a port that was free")
}

#[test]
fn a_server_that_will_not_do_is_said_so_without_its_password() {
    let folder = Folder::new("nowhere");
    let nobody = nobody();
    let away = format!("does not answer (host 127.0.0.1, port {}, database x)", nobody.port());
    for (address, code, part) in [
        (&*format!("mysql://root:hush@{nobody}"), 1, "does not answer"),
        (&*server().replace("root@", "nobody:hush@"), 1, "Access denied"),
        (&*format!("postgres://u:hush@{nobody}/x"), 1, away.as_str()),
        ("postgres://u:hu@sh@127.0.0.1/x", 2, "--store: the user or password contains an unescaped @"),
        (
            "oracle://u:hush@127.0.0.1/x",
            2,
            "--store must be postgres://user@host/database or mysql://user@host",
        ),
    ] {
        let output = demo(&folder.0, &["--store", address]).output().expect("it runs");
        let said = text(&output.stderr);
        assert!(
            output.status.code() == Some(code) && said.contains(part) && !said.contains("hush"),
            "{said}"
        );
        assert!(!said.contains("panicked") && folder.content().is_empty(), "{said}");
    }
}

#[test]
fn what_is_not_a_command_is_said_so() {
    let folder = Folder::new("usage");
    let output = postrider(&["dmeo"], &folder.0);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("'dmeo'") && said.contains("'demo'"), "{said}");
    assert_eq!(postrider(&[], &folder.0).status.code(), Some(2));
    let extra = postrider(&["demo", "extra"], &folder.0);
    assert_eq!(extra.status.code(), Some(2));
    assert!(text(&extra.stderr).contains("'extra'"));
    let nowhere = postrider(&["demo"], Path::new("/dev/null"));
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("set TMPDIR"));
    std::fs::write(folder.0.join("mine"), "").expect("written");
    let full = demo(&folder.0, &["--keep"]).arg(&folder.0).output().expect("it runs");
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stderr).contains("must be empty; choose another one"), "{}", text(&full.stderr));
    let help = postrider(&["help"], &folder.0);
    assert!(help.status.success() && text(&help.stdout).contains("Run a demo"));
    let help = postrider(&["demo", "--help"], &folder.0);
    assert!(help.status.success() && !text(&help.stdout).contains("--break"), "it is for developers");
}
