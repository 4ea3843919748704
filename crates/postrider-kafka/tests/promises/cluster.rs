//! Three brokers, of which two must have a record before it counts as written.

use std::time::{Duration, Instant};

use postrider::Relay;
use postrider_kafka::Kafka;
use xtask::kafka::Broker;

use crate::arrivals::{Topic, assert_whole};
use crate::fixture::{Fixture, figures};
use crate::until;

/// Small against what is written, so that repeating more than what was in flight shows.
const BATCH: u32 = 200;

/// C13.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_brokers_is_not_missed_and_without_two_all_waits_and_nothing_is_lost() {
    let mut cluster = Broker::cluster(3).expect("three brokers start");
    cluster.create_topics(&[("orders", 3)]).expect("a topic");
    let fixture = Fixture::new().await;
    let sink =
        Kafka::builder(&cluster.bootstrap()).send_timeout(Duration::from_secs(4)).build().expect("a sink");
    let relay = Relay::new(&fixture.outbox)
        .subscribe("kafka", |s| s.sink(sink).batch(BATCH).longest_pause(Duration::from_millis(500)))
        .start()
        .await
        .expect("started");
    fixture.write(1024).join_all().await;
    until("all three take records", async || figures(&relay).await.0 == 0).await;

    let first = cluster.leader("orders", 0).expect("an answer").expect("a leader");
    cluster.broker(first).kill().expect("killed");
    fixture.write(1024).join_all().await;
    until("two go on without the third", async || figures(&relay).await.0 == 0).await;

    let second = (first + 1) % 3;
    cluster.broker(second).kill().expect("killed");
    fixture.write(1024).join_all().await;
    // Longer than a record waits, so that it is tried in vain several times.
    let end = Instant::now() + Duration::from_secs(6);
    while Instant::now() < end {
        let (undelivered, touched) = figures(&relay).await;
        assert!(undelivered > 0 && touched == 0, "one alone takes nothing, and no event pays for it");
        assert_eq!(fixture.delivery_rows().await, 0, "no rows");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.start().expect("all three again");
    until("all comes through", async || figures(&relay).await.0 == 0).await;
    relay.stop().await.expect("stopped");
    let topic = Topic::new(&cluster.bootstrap(), "orders", 3);
    let again = assert_whole(&topic.arrivals(), &fixture.versions().await);
    assert!(again <= 2 * BATCH as usize, "{again} came again: more than was in flight");
}
