//! The broker is away for a while.

use std::time::{Duration, Instant};

use postrider::Relay;
use postrider_kafka::Kafka;
use xtask::kafka::{Broker, Options};

use crate::arrivals::{Topic, assert_whole};
use crate::fixture::{Fixture, figures};
use crate::{is_soak, until};

/// L3, C17.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_costs_no_row_and_no_attempt_and_all_comes_in_order_afterwards() {
    let away = Duration::from_secs(if is_soak() { 60 } else { 6 });
    let mut broker = Broker::create(&Options::new()).expect("a broker starts");
    broker.create_topic("orders", 4).expect("a topic");
    let topic = Topic::new(&broker.bootstrap(), "orders", 4);
    let fixture = Fixture::new().await;
    // Shorter than the outage, so that events are tried and given back several times.
    let sink =
        Kafka::builder(&broker.bootstrap()).send_timeout(Duration::from_secs(1)).build().expect("a sink");
    let relay = Relay::new(&fixture.outbox)
        .lease(Duration::from_secs(3))
        .subscribe("kafka", |s| s.sink(sink).longest_pause(Duration::from_millis(500)))
        .start()
        .await
        .expect("started");
    fixture.write(512).join_all().await;
    until("the first are delivered", async || figures(&relay).await.0 == 0).await;
    broker.kill().expect("killed");
    fixture.write(4096).join_all().await;
    let end = Instant::now() + away;
    while Instant::now() < end {
        assert_eq!(figures(&relay).await, (4096, 0), "all are undelivered, none was tried or given up");
        assert_eq!(fixture.delivery_rows().await, 0, "no rows");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    broker.start().expect("started again");
    until("everything is delivered", async || figures(&relay).await.0 == 0).await;
    assert_eq!(fixture.delivery_rows().await, 0, "no rows afterwards either");
    relay.stop().await.expect("stopped");
    let again = assert_whole(&topic.arrivals(), &fixture.versions().await);
    assert_eq!(again, 0, "nothing was in flight when it died");
}
