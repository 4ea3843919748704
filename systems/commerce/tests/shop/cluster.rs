//! Three brokers, of which two must have a record.

use commerce::processes::settings::TOPICS;
use postrider_testkit::{until, until_true};
use xtask::kafka::Broker;

use crate::world::{World, viewed};

/// C13, C19: the topics as the script makes them are well for `doctor`; one broker may be missing. With two missing nothing counts as
/// sent, because acks=all and two replicas in sync are asked for; nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn with_one_broker_of_three_missing_all_goes_on_and_with_two_everything_waits() {
    let mut cluster = Broker::cluster(3).expect("three brokers start");
    let world = World::on(&cluster.bootstrap()).await;
    let port = cluster.brokers()[0].port();
    let topics = story::topics::parse(TOPICS).expect("topics");
    let topic = topics.iter().find(|topic| topic.name == "product-events").expect("a topic");
    let settings: Vec<(&str, &str)> =
        topic.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let name = world.name(&topic.name);
    xtask::kafka::topics::create(port, &[(&name, topic.partitions)], &settings).expect("a topic");
    for broker in cluster.brokers() {
        xtask::kafka::topics::wait_until_complete(broker.port(), &[&name]).expect("a topic on all brokers");
    }
    let relay = world.relay("one", &[]);
    world.publish(viewed(1, 1)).await;
    world.until_sent().await;
    let file = world.relay_file("doctor", &[]);
    let found = world.postrider(&["doctor", "--json", "--config", &file]).output().expect("it runs");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains("3 partitions, 3 replicas, 3 in sync, min.insync.replicas = 2"), "{found}");
    cluster.broker(2).kill().expect("killed");
    let second = world.publish(viewed(2, 1)).await;
    until("one may be missing", async || world.state(second).await == "done").await;
    cluster.broker(1).kill().expect("killed");
    let third = world.publish(viewed(3, 1)).await;
    until_true("the relay notices", || relay.log().contains("the destination is unavailable")).await;
    assert_ne!(world.state(third).await, "done", "one replica is not enough");
    cluster.start().expect("started again");
    until("it is sent at last", async || world.state(third).await == "done").await;
    assert_eq!(world.number("select count(*) from outbox_failed").await, 0);
}
