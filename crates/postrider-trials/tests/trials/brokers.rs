//! RelayProcesses on their way to Kafka are killed, and the broker goes away and comes back.

use std::time::Duration;

use postrider_trials::KAFKA;
use postrider_trials::relay_options::RelayOptions;
use postrider_trials::test_store::TestStore;
use postrider_trials::topic::{Mark, Topic, keeps_order, loses_nothing, repeats_only_what_was_open};
use postrider_trials::trial::{Trial, is_soak, until};
use postrider_trials::writers::Writers;
use tokio::task::block_in_place;
use xtask::kafka::{Broker, Options};

use crate::{RELAY_PROCESS, on_each};

on_each!(relays_killed_and_a_broker_that_goes_away_lose_and_reorder_nothing);

const BATCH: u32 = 16;
const LANES: u32 = 2;
const PARTITIONS: u16 = 4;

async fn relays_killed_and_a_broker_that_goes_away_lose_and_reorder_nothing<G: TestStore>() {
    let rounds = if is_soak() { 15 } else { 2 };
    let mut broker = block_in_place(|| {
        let broker = Broker::create(&Options::new()).expect("this trial starts a Kafka of its own");
        broker.create_topic("moves", PARTITIONS).expect("a topic");
        broker
    });
    let bootstrap = broker.bootstrap();
    let topic = Topic::new(&bootstrap, "moves", PARTITIONS);
    let to_kafka = |options: &mut RelayOptions| {
        options.brokers = bootstrap.clone();
        (options.batch, options.lanes, options.deaths) = (BATCH, LANES, 1000);
        options.lease = Duration::from_secs(5);
    };
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let writers = Writers::start(&trial.test_store);
    let (mut one, mut other) = (trial.start_ready(to_kafka).await, trial.start_ready(to_kafka).await);
    let (mut marks, mut kills) = (Vec::new(), 0);
    for round in 1..=rounds {
        arrives(&topic, 40).await;
        marks.push(mark(&trial, &topic).await);
        // In order, and in every other round as a crash would.
        block_in_place(|| if round % 2 == 1 { broker.stop() } else { broker.kill() }.expect("it goes away"));
        // What it has in its hands is on the way to a broker that is not there.
        let dying = std::mem::replace(&mut one, other);
        trial.kill_beside(dying);
        block_in_place(|| broker.start().expect("it comes back"));
        other = trial.start_ready(to_kafka).await;
        arrives(&topic, 40).await;
        marks.push(mark(&trial, &topic).await);
        let dying = std::mem::replace(&mut one, other);
        trial.kill_beside(dying);
        other = trial.start_ready(to_kafka).await;
        kills += 2;
    }
    arrives(&topic, 40).await;
    let committed = writers.stop().await;
    trial.until_delivered(KAFKA).await;
    for relay_process in [one, other] {
        assert_eq!(relay_process.stop().await, Some(0), "a stopped relay_process ends well");
    }
    assert!(trial.dead(KAFKA).await.is_empty(), "an outage is held against no event");
    let arrivals = block_in_place(|| topic.arrivals());
    loses_nothing(&arrivals, &committed);
    keeps_order(&arrivals);
    // What a killed relay had in its hands, and what both had there when the broker went away.
    let most = (kills + 2 * rounds) * (BATCH * LANES) as usize;
    let again = repeats_only_what_was_open(&arrivals, &marks, most);
    eprintln!("{} moves, {kills} kills, {rounds} outages, {again} came again", committed.len());
}

/// Waits until so many more records are there.
async fn arrives(topic: &Topic, more: i64) {
    let before = block_in_place(|| topic.count());
    until("records arrive", async || block_in_place(|| topic.count()) >= before + more).await;
}

/// What is done now, and where the topic ends now.
async fn mark<G: TestStore>(trial: &Trial<G>, topic: &Topic) -> Mark {
    let done = trial.done(KAFKA).await;
    Mark { done, ends: block_in_place(|| topic.ends()).expect("the broker is there") }
}
