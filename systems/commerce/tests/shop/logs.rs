//! The log lines, captured from the processes' stderr.

use commerce::adapters::consumers::VIEWS;
use postrider::Uuid;
use postrider_testkit::{Logged, until, until_true};

use crate::feed::Feed;
use crate::topic::committed;
use crate::world::{World, depleted, viewed};

/// The lines of a process that have all of these parts.
fn lines(process: &Logged, parts: &[&str]) -> Vec<String> {
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    process.log().lines().filter(has_all).map(ToOwned::to_owned).collect()
}

/// C14: the relay sums up with counts and position when it did something, and is silent when it did nothing; a retry says when it is next.
#[tokio::test(flavor = "multi_thread")]
async fn the_relay_sums_up_only_when_it_was_active() {
    let world = World::new(&["product-events"]).await;
    let relay = world.relay("one", &[]);
    for user in 0..3 {
        world.publish(viewed(1, user)).await;
    }
    world.until_sent().await;
    let summary =
        ["INFO", "batches=", "delivered=", "retried=0", "dead=0", "position=\"", "subscription=kafka"];
    until_true("it sums up", || !lines(&relay, &summary).is_empty()).await;
    let delivered = |process: &Logged| -> i64 {
        let numbers = lines(process, &summary).into_iter();
        let number = |line: String| {
            let text = line.split(" delivered=").nth(1)?.split_whitespace().next()?.to_owned();
            text.parse::<i64>().ok()
        };
        numbers.filter_map(number).sum()
    };
    until_true("all are in it", || delivered(&relay) == 3).await;
    // It looks ten times a second, and after a while without work it gives its lane back.
    let said = lines(&relay, &["INFO", "delivered="]).len();
    let held = "select count(*) from postrider.lane where lease_owner is not null";
    world.until_number("it has been idle for a while", held, 0).await;
    assert_eq!(lines(&relay, &["INFO", "delivered="]).len(), said, "nothing happened, and nothing is said");
    let failing = world.publish(depleted(9)).await.to_string();
    until_true("a retry says when it is next", || {
        !lines(&relay, &["WARN", &failing, "outcome=\"retry\"", "next_in_seconds=5", "it will be retried"])
            .is_empty()
    })
    .await;
    assert!(lines(&relay, &["productId"]).is_empty(), "no payload in any line");
}

/// C14: an event that was handled is skipped at DEBUG with its type and id; a dead letter is a WARN with its topic and error.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_says_what_it_skips_and_what_it_gives_up() {
    let world = World::new(&["product-events"]).await;
    let feed = Feed::new(&world, "product-events");
    let mut command = world.commerce(&["consumer", VIEWS]);
    command.env("LOG_LEVEL", "debug");
    let consumer = Logged::start(&mut command, world.folder.path(), "views");
    let (group, topic) = (world.name(VIEWS), world.name("product-events"));
    until("it has its partitions", async || committed(&world.brokers, &group, &topic)[0] == 0).await;
    let id = Uuid::now_v7();
    for record in 1..=2 {
        feed.fact(id, &viewed(7, 1));
        feed.flush();
        world.until_committed(VIEWS, "product-events", record).await;
    }
    feed.event(
        Uuid::now_v7(),
        "loopers.product.viewed.v1",
        "7",
        &serde_json::json!({ "productId": "4111-1111" }),
    );
    feed.flush();
    world.until_committed(VIEWS, "product-events", 3).await;
    let skipped = lines(
        &consumer,
        &["DEBUG", "already handled; skipped", &id.to_string(), "loopers.product.viewed.v1"],
    );
    assert_eq!(skipped.len(), 1, "{}", consumer.log());
    let letters = format!("dead_letters=\"{topic}.DLT\"");
    let dead = lines(&consumer, &["WARN", "failed for good", &letters, "error=", &group, "can't decode"]);
    assert_eq!(dead.len(), 1, "{}", consumer.log());
    assert!(lines(&consumer, &["4111-1111"]).is_empty(), "no payload in any line");
}
