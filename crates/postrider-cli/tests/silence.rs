//! A database that keeps its connections open and answers nothing: a relay goes on by itself, commands end with a sentence.

mod support;

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postrider_testkit::mysql;
use sqlx::{MySqlPool, PgPool};
use support::{Database, Folder, RelayProcess, postrider, until_true};
use xtask::line::Line;

/// The lease of these relays.
const LEASE: Duration = Duration::from_secs(2);
/// How soon a relay goes on when its database answers again: what is left of a call, and what a new connection takes.
const SOON: Duration = Duration::from_secs(12);
/// The time that the documents give to commands.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

const SETTINGS: &str = "[relay]\nlease = \"2s\"\npoll_interval = \"60s\"\n[http]\nlisten = \"off\"\n\
     [[subscription]]\nname = \"out\"\nsink = \"out\"\nbatch = 20\n[sink.out]\ntype = \"stdout\"\n";

/// A log on a server of the tests, and a relay that reaches it by a line of its own.
struct Fixture {
    line: Line,
    through: String,
    folder: Folder,
    publisher: Publisher,
    _keep: Box<dyn Send + Sync>,
}

/// Who records, straight on the server.
enum Publisher {
    Postgres(PgPool),
    Mysql(MySqlPool),
}

fn ok(mut command: Command) {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Fixture {
    async fn postgres() -> Self {
        let database = Database::new().await;
        ok(postrider(&database.url(), &["migrate"]));
        let (line, through) = Line::before(&database.url()).expect("a line");
        let pool = PgPool::connect(&database.url()).await.expect("connected");
        let (folder, publisher) = (Folder::new(), Publisher::Postgres(pool));
        Self { line, through, folder, publisher, _keep: Box::new(database) }
    }

    async fn mysql() -> Self {
        let database = mysql::Database::new().await;
        let url = database.url();
        ok(postrider(&url, &["migrate"]));
        let (line, through) = Line::before(&url).expect("a line");
        let pool = MySqlPool::connect(&url).await.expect("connected");
        let (folder, publisher) = (Folder::new(), Publisher::Mysql(pool));
        Self { line, through, folder, publisher, _keep: Box::new(database) }
    }

    async fn record(&self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let (key, payload) = ((number % 3).to_string(), format!("{{\"number\": {number}}}"));
            match &self.publisher {
                Publisher::Postgres(pool) => {
                    let sql = "select postrider.record('orders', 'OrderPaid', 'Order', $1, $2::json)";
                    sqlx::query(sql).bind(key).bind(payload).execute(pool).await.map(|_| ())
                }
                Publisher::Mysql(pool) => {
                    let sql =
                        "insert into postrider_event (stream, event_type, aggregate_type, aggregate_id, payload) \
                         values ('orders', 'OrderPaid', 'Order', ?, ?)";
                    sqlx::query(sql).bind(key).bind(payload).execute(pool).await.map(|_| ())
                }
            }
            .expect("recorded");
        }
    }

    fn relay(&self) -> RelayProcess {
        RelayProcess::with(self.folder.path(), &self.through, "relay", SETTINGS)
    }
}

/// Every number below this came, for the first time in the order of its key.
fn assert_whole(relay_process: &RelayProcess, count: u64) {
    let (mut first, mut last) = (Vec::new(), HashMap::new());
    for (key, number) in relay_process.lines() {
        if !first.contains(&number) {
            first.push(number);
            let before = last.insert(key.clone(), number);
            assert!(before.is_none_or(|before| before < number), "{number} of {key} after {before:?}");
        }
    }
    first.sort_unstable();
    assert_eq!(first, (0..count).collect::<Vec<_>>());
}

async fn until_it_wrote(relay_process: &RelayProcess, count: usize) {
    let distinct = || {
        let mut numbers: Vec<u64> = relay_process.lines().into_iter().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    };
    until_true(&format!("{count} are delivered: {}", relay_process.log()), || distinct() >= count).await;
}

/// Silent in the middle of work, for longer than a lease; then new connections work, and the old ones stay silent. Then silent
/// while it sleeps, where nobody notices but who asks.
async fn goes_on(fixture: Fixture) {
    let relay_process = fixture.relay();
    fixture.record(0..50).await;
    until_it_wrote(&relay_process, 50).await;

    fixture.line.fall_silent();
    fixture.record(50..100).await;
    until_true("the relay says so", || relay_process.log().contains("a request to the database failed"))
        .await;
    let began = Instant::now();
    until_true("longer than a lease", || began.elapsed() > 2 * LEASE).await;
    fixture.line.let_new_ones_through();
    let spoke = Instant::now();
    until_it_wrote(&relay_process, 100).await;
    assert!(spoke.elapsed() < SOON, "it took {:?}: {}", spoke.elapsed(), relay_process.log());

    // It sleeps after a lease or so: nothing is in flight when the line falls silent.
    let began = Instant::now();
    until_true("it sleeps", || began.elapsed() > 2 * LEASE).await;
    fixture.line.fall_silent();
    fixture.line.let_new_ones_through();
    let spoke = Instant::now();
    fixture.record(100..110).await;
    until_it_wrote(&relay_process, 110).await;
    assert!(spoke.elapsed() < SOON, "it took {:?}: {}", spoke.elapsed(), relay_process.log());
    until_true("no connection is kept that says nothing", || fixture.line.kept() == 0).await;
    assert_whole(&relay_process, 110);
}

/// Asked to end while nothing is answered, it ends.
async fn ends(fixture: Fixture) {
    let mut relay_process = fixture.relay();
    fixture.record(0..10).await;
    until_it_wrote(&relay_process, 10).await;
    fixture.line.fall_silent();
    fixture.record(10..20).await;
    let began = Instant::now();
    relay_process.signal("TERM");
    relay_process.ended();
    assert!(began.elapsed() < HALF_A_MINUTE, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_goes_on_when_a_silent_postgresql_answers_new_connections() {
    goes_on(Fixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_goes_on_when_a_silent_mariadb_answers_new_connections() {
    goes_on(Fixture::mysql().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_asked_to_end_ends_though_nothing_is_answered() {
    ends(Fixture::postgres().await).await;
    ends(Fixture::mysql().await).await;
}

/// What each command says of a database that falls silent after so many bytes, from the first on.
fn commands_end(fixture: &Fixture, bytes: u64) {
    if bytes == 0 {
        fixture.line.fall_silent();
    } else {
        fixture.line.fall_silent_after(bytes);
    }
    let commands: [&[&str]; 8] = [
        &["status"],
        &["doctor"],
        &["events"],
        &["dead", "list"],
        &["subscriptions", "list"],
        &["audit"],
        &["record", "--stream", "s", "--type", "T", "--aggregate", "A", "1", "{}"],
        &["replay", "x", "--since", "1h", "--yes"],
    ];
    let began = Instant::now();
    let children = commands.map(|arguments| {
        let mut command = postrider(&fixture.through, arguments);
        (arguments, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    });
    let mut ended = 0;
    for (arguments, child) in children {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if bytes >= 1000 && output.status.success() {
            // It needed no more than that.
            continue;
        }
        ended += 1;
        assert_eq!(output.status.code(), Some(1), "{arguments:?} after {bytes} bytes: {said}");
        assert!(said.contains("not answer"), "{arguments:?} after {bytes} bytes: {said}");
        if arguments[0] != "doctor" {
            assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?} after {bytes} bytes: {said}");
        }
    }
    assert!(ended > 0, "{bytes} bytes are enough for all");
    assert!(began.elapsed() < HALF_A_MINUTE + Duration::from_secs(5), "{bytes} bytes: {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_a_silent_database_end_with_a_sentence_within_half_a_minute() {
    // Silent from the first byte on, while it connects, and once it has connected.
    for bytes in [0, 1, 500, 1000] {
        let (postgres, mysql) = (Fixture::postgres().await, Fixture::mysql().await);
        let postgres = tokio::task::spawn_blocking(move || commands_end(&postgres, bytes));
        let mysql = tokio::task::spawn_blocking(move || commands_end(&mysql, bytes));
        postgres.await.expect("on PostgreSQL");
        mysql.await.expect("on MariaDB");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_on_a_silent_server_ends_with_a_sentence() {
    let fixture = Fixture::mysql().await;
    for bytes in [0, 600] {
        if bytes == 0 {
            fixture.line.fall_silent();
        } else {
            fixture.line.let_new_ones_through();
            fixture.line.fall_silent_after(bytes);
        }
        let began = Instant::now();
        let output = postrider("", &["demo", "--store", &fixture.through]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("not answer") && said.trim_end().lines().count() == 1, "{said}");
        assert!(began.elapsed() < HALF_A_MINUTE + Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
