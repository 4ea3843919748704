//! A log is drained while its broker dies.

use std::time::Duration;

use postrider::postgres::Outbox;
use postrider::{Relay, Running};
use postrider_kafka::Kafka;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Topic, assert_whole};
use crate::fixture::{Fixture, figures};
use crate::{is_soak, until};

const BATCH: u32 = 1000;
const PARTITIONS: u16 = 4;

async fn relay(outbox: &Outbox, broker: &Broker) -> Running {
    let sink =
        Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(5)).build().expect("a sink");
    Relay::new(outbox)
        .subscribe("kafka", |s| s.sink(sink).batch(BATCH).longest_pause(Duration::from_millis(500)))
        .start()
        .await
        .expect("started")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_killed_during_a_drain_loses_and_reorders_nothing() {
    let wanted: i64 = if is_soak() { 204_800 } else { 40_960 };
    let mut broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", PARTITIONS).expect("a topic");
    let topic = Topic::new(&broker.bootstrap(), "orders", PARTITIONS.into());
    let fixture = Fixture::new().await;
    // Most of it is there when the relay starts, the rest comes while the broker dies.
    fixture.write(wanted / 2).join_all().await;
    let writers = fixture.write(wanted / 2);
    let relay = relay(&fixture.outbox, &broker).await;
    let mut kills = 0;
    for part in [wanted / 5, wanted * 3 / 5] {
        until("records arrive", async || topic.count() >= part).await;
        assert!(figures(&relay).await.0 > 0, "it dies in the middle of the drain");
        broker.kill().expect("killed");
        kills += 1;
        broker.start().expect("started again");
    }
    writers.join_all().await;
    until("everything is delivered", async || figures(&relay).await.0 == 0).await;
    assert_eq!(fixture.delivery_rows().await, 0, "nothing went wrong with any event");
    relay.stop().await.expect("stopped");
    let again = assert_whole(&topic.arrivals(), &fixture.versions().await);
    assert_eq!(fixture.versions().await.values().sum::<i64>(), wanted);
    assert!(again <= kills * BATCH as usize, "{again} came again: more than was in flight");
}
