//! How much memory a relay takes whose events are wide: the process, its sinks, and whatever they copy.

mod support;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider::{NewEvent, mysql, sqlite};
use postrider_testkit::http::{self, Request};
use postrider_testkit::mysql::Database;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, MySqlPool};
use support::{Fixture, Folder, RelayProcess, until_true};
use xtask::kafka::{Broker, Options};

/// The bar, in megabytes.
const MOST: f64 = 128.0;

/// Records events of 1 MB each, of a hundred keys, as any language does.
async fn record(fixture: &Fixture, events: u32) {
    let sql = format!(
        "insert into postrider.event (stream, event_type, aggregate_type, aggregate_id, payload) \
         select 'orders', 'OrderPaid', 'Order', n % 100, json_build_object('number', n, 'note', repeat('x', 990000)) \
         from generate_series(1, {events}) as n"
    );
    sqlx::query(AssertSqlSafe(sql)).execute(&fixture.pool).await.expect("recorded");
}

/// An endpoint that counts events and keeps nothing of them.
struct Endpoint {
    address: SocketAddr,
    count: Arc<AtomicUsize>,
}

impl Endpoint {
    /// One that takes so long for each request.
    fn start(pause: Duration) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let address = http::listen(move |stream| serve(stream, pause, &counted));
        Self { address, count }
    }
}

/// Takes one request; nothing when the connection is over.
fn serve(mut stream: &TcpStream, pause: Duration, count: &AtomicUsize) -> Option<()> {
    let events = String::from_utf8_lossy(&Request::read(stream)?.body).matches("\"number\"").count();
    std::thread::sleep(pause);
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()?;
    count.fetch_add(events, Ordering::SeqCst);
    Some(())
}

/// Settings of a relay with subscriptions of these lanes, to one sink.
fn settings(name: &str, lanes: &[u32], sink: &str) -> String {
    let each = |(number, lanes): (usize, &u32)| {
        format!("[[subscription]]\nname = \"{name} {number}\"\nsink = \"there\"\nlanes = {lanes}\n")
    };
    let subscriptions: String = lanes.iter().enumerate().map(each).collect();
    format!("[http]\nlisten = \"off\"\n{subscriptions}[sink.there]\n{sink}\n")
}

/// Runs a relay with subscriptions of these lanes until an endpoint has all events, and looks how much memory it took.
async fn to_an_endpoint(folder: &Path, url: &str, name: &str, lanes: &[u32], format: &str, events: usize) {
    // Where it is slow, requests run on after their batch is settled.
    let pause = if name == "slow" { Duration::from_millis(150) } else { Duration::ZERO };
    let endpoint = Endpoint::start(pause);
    let sink = format!("type = \"http\"\nurl = \"http://{}/\"\nformat = \"{format}\"", endpoint.address);
    let relay = RelayProcess::with(folder, url, name, &settings(name, lanes, &sink));
    let all = events * lanes.len();
    until_true(&format!("all are delivered: {name}"), || endpoint.count.load(Ordering::SeqCst) >= all).await;
    assert_bar(&relay, name);
}

fn assert_bar(relay: &RelayProcess, name: &str) {
    let most = relay.most_memory();
    println!("{name}: {most:.0} MB");
    assert!(most <= MOST, "{name}: {most:.0} MB, {MOST} allowed; {}", relay.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_events_to_an_endpoint_take_no_more_memory_than_the_bar() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    record(&fixture, 300).await;
    for (name, lanes, format) in [
        ("plain", &[1][..], "binary"),
        ("batched", &[1], "batched"),
        ("several", &[1, 4, 2], "structured"),
        ("slow", &[1, 4, 2], "binary"),
    ] {
        to_an_endpoint(fixture.folder.path(), &fixture.url, name, lanes, format, 300).await;
    }
}

/// An event of 1 MB.
fn wide(number: u32) -> NewEvent {
    let payload = serde_json::json!({ "number": number, "note": "x".repeat(990_000) });
    NewEvent::of("orders", "OrderPaid", "Order", (number % 100).to_string(), &payload).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_events_in_a_file_take_no_more_memory_than_the_bar() {
    let folder = Folder::new();
    let file = folder.path().join("log.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.expect("a file");
    let outbox = sqlite::Outbox::migrated(&pool).await.expect("migrated");
    for number in 0..200 {
        outbox.record_outside_transaction(&wide(number)).await.expect("recorded");
    }
    let url = format!("sqlite:{}", file.display());
    to_an_endpoint(folder.path(), &url, "sqlite", &[1, 2], "binary", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_events_on_mariadb_take_no_more_memory_than_the_bar() {
    let database = Database::new().await;
    let url = database.url();
    let pool = MySqlPool::connect(&url).await.expect("connected");
    let outbox = mysql::Outbox::migrated(&pool).await.expect("migrated");
    for number in 0..200 {
        outbox.record_outside_transaction(&wide(number)).await.expect("recorded");
    }
    let folder = Folder::new();
    to_an_endpoint(folder.path(), &url, "mysql", &[1, 2], "binary", 200).await;
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_events_to_kafka_take_no_more_memory_than_the_bar() {
    let broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 4).expect("a topic");
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    record(&fixture, 300).await;
    let sink = format!("type = \"kafka\"\nbrokers = \"{}\"", broker.bootstrap());
    let relay =
        RelayProcess::with(fixture.folder.path(), &fixture.url, "kafka", &settings("kafka", &[1], &sink));
    let client: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("a client");
    until_true("all are delivered to Kafka", || {
        let end = |partition| {
            client.fetch_watermarks("orders", partition, Duration::from_secs(10)).expect("its end").1
        };
        (0..4).map(end).sum::<i64>() >= 300
    })
    .await;
    assert_bar(&relay, "kafka");
}
