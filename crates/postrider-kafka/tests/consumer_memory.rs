//! How much memory a consumer takes whose records are wide, on a real broker.

mod support;

use std::time::Duration;

use postrider::Received;
use postrider::testing::Outbox;
use postrider_kafka::Consumer;
use support::{Feed, Positions, process_of_test, topics, until};

const PARTITIONS: u16 = 8;
const EACH: usize = 40;
/// What the process that consumes is told: the brokers.
const TASK: &str = "POSTRIDER_TEST_CONSUMER_MEMORY";

/// The process that consumes, until it is ended. Its handlers take a moment, so that what can be taken ahead of them is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process that another test starts"]
async fn a_process_that_consumes() {
    let brokers = std::env::var(TASK).expect("its task");
    let handler = async |_: Received<String>| tokio::time::sleep(Duration::from_millis(20)).await;
    let consumer =
        Consumer::new(&Outbox::new(), &brokers, "wide").topics(["wide"]).on_type("Counted", handler);
    consumer.run_until(std::future::pending()).await.expect("it runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_records_of_many_partitions_take_no_more_memory_than_the_bar() {
    let brokers = topics(&[("wide", PARTITIONS)]);
    let mut feed = Feed::new(&brokers, "wide");
    let note = format!("\"{}\"", "x".repeat(990_000));
    for number in 0..usize::from(PARTITIONS) * EACH {
        let id = number.to_string();
        let headers = [
            ("ce_specversion", "1.0"),
            ("ce_id", id.as_str()),
            ("ce_source", "/feed"),
            ("ce_type", "Counted"),
            ("content-type", "application/json"),
        ];
        feed.raw(&format!("key-{number}"), &note, &headers);
        if number % 10 == 9 {
            feed.flush();
        }
    }
    feed.flush();
    let process = process_of_test("a_process_that_consumes", TASK, &brokers);
    let mut positions = Positions::new(&brokers, "wide", "wide", i32::from(PARTITIONS));
    let all = i64::try_from(usize::from(PARTITIONS) * EACH).expect("a number");
    let positions = std::cell::RefCell::new(&mut positions);
    until("all is handled", async || {
        let done: i64 = positions.borrow_mut().now().iter().map(|offset| (*offset).max(0)).sum();
        done >= all
    })
    .await;
    let most = process.most_memory();
    println!("{most:.0} MB");
    assert!(most <= 128.0, "{most:.0} MB, 128 allowed");
}
