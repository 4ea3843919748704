//! Publishers that know nothing of Postrider but its SQL: the examples that the documents quote, as they stand there.

mod endpoint;
mod fixture;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use endpoint::Endpoint;
use fixture::{Fixture, IncomingEvent, Running, example, until};

/// How many payments a publisher attempts. One in five is rolled back, after its event was recorded.
const ATTEMPTS: u64 = 200;
const COMMITTED: u64 = ATTEMPTS / 5 * 4;

fn python(script: &str) -> Command {
    let mut command = Command::new(xtask::python::ready().expect("a Python with its driver"));
    command.arg(example(script));
    command
}

/// Node.js finds its packages beside the script: a copy of it in a folder that has them.
fn script_of_node(folder: &Path) -> PathBuf {
    let modules = xtask::node::ready().expect("a Node.js with its driver");
    let script = folder.join("publisher.mjs");
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).expect("a link");
    std::fs::copy(example("node/publisher.mjs"), &script).expect("a copy");
    script
}

/// Runs three publishers at once, on the same orders.
fn three_at_once(fixture: &Fixture, command: impl Fn() -> Command) {
    let start = |number: u32| {
        let mut command = command();
        command.arg(ATTEMPTS.to_string());
        fixture.publisher(&format!("publisher-{number}"), command)
    };
    let mut publishers: Vec<Running> = (0..3).map(start).collect();
    for publisher in &mut publishers {
        let said = publisher.ended();
        let declined = said.lines().filter(|line| line.contains("was declined")).count() as u64;
        assert_eq!(declined, ATTEMPTS - COMMITTED, "rolled back after their event was recorded: {said}");
    }
}

/// Whether what arrived is what was committed: each payment of each order once, in order, and none that was rolled back.
fn check(arrivals: &[IncomingEvent], payments: &[(u64, u64)]) {
    let mut by_order: HashMap<u64, Vec<u64>> = HashMap::new();
    for arrival in arrivals {
        assert_ne!(arrival.attempt % 5, 4, "{arrival:?} was rolled back");
        by_order.entry(arrival.order).or_default().push(arrival.payment);
    }
    for (order, payments) in payments {
        let arrived = by_order.remove(order).unwrap_or_default();
        assert_eq!(arrived, (1..=*payments).collect::<Vec<u64>>(), "the payments of order {order}");
    }
    assert!(by_order.is_empty(), "orders that nobody knows: {by_order:?}");
}

fn lines(text: &str) -> Vec<IncomingEvent> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let event = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        assert_eq!((&event["specversion"], &event["type"]), (&"1.0".into(), &"OrderPaid".into()), "{line}");
        IncomingEvent::of(&event["data"])
    };
    whole.lines().map(event).collect()
}

async fn to_stdout(fixture: Fixture, command: impl Fn() -> Command) {
    let mut relay = fixture.relay("type = \"stdout\"");
    three_at_once(&fixture, command);
    let payments = fixture.payments().await;
    let all: u64 = payments.iter().map(|(_, payments)| payments).sum();
    assert_eq!(all, 3 * COMMITTED);
    until("every committed event arrived", || lines(&relay.out()).len() as u64 >= all);
    // What it had in hand would come now.
    relay.stop();
    check(&lines(&relay.out()), &payments);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_commits_arrives_on_stdout_in_order_and_nothing_else() {
    to_stdout(Fixture::postgres().await, || python("python/publisher.py")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_node_commits_arrives_on_stdout_in_order_and_nothing_else() {
    let fixture = Fixture::postgres().await;
    let script = script_of_node(fixture.folder.path());
    to_stdout(fixture, || {
        let mut command = Command::new("node");
        command.arg(&script);
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_java_commits_arrives_on_stdout_in_order_and_nothing_else() {
    let fixture = Fixture::postgres().await;
    let address = fixture.jdbc();
    to_stdout(fixture, || {
        let mut command = xtask::jdbc::ready().expect("a Java with its driver");
        command.arg(example("java/Publisher.java")).env("DATABASE_URL", &address);
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_python_commits_arrives_at_an_endpoint_in_order_and_nothing_else() {
    let (fixture, endpoint) = (Fixture::postgres().await, Endpoint::start());
    let mut relay = fixture.relay(&format!("type = \"http\"\nurl = \"{}\"", endpoint.url()));
    three_at_once(&fixture, || python("python/publisher.py"));
    let payments = fixture.payments().await;
    until("every committed event arrived", || endpoint.arrivals().len() as u64 >= 3 * COMMITTED);
    relay.stop();
    check(&endpoint.arrivals(), &payments);
}

#[test]
fn what_python_commits_to_sqlite_arrives_in_order_and_nothing_else() {
    let fixture = Fixture::sqlite();
    let mut relay = fixture.relay("type = \"stdout\"");
    let mut command = python("python/publisher_sqlite.py");
    command.arg(fixture.folder.path().join("shop.db")).arg(ATTEMPTS.to_string());
    fixture.publisher("publisher", command).ended();
    until("every committed event arrived", || lines(&relay.out()).len() as u64 >= COMMITTED);
    relay.stop();
    let arrivals = lines(&relay.out());
    let of = |order| arrivals.iter().filter(|arrival| arrival.order == order).count() as u64;
    let payments: Vec<(u64, u64)> = (1..=7).map(|order| (order, of(order))).collect();
    check(&arrivals, &payments);
    assert_eq!(arrivals.len() as u64, COMMITTED);
}
